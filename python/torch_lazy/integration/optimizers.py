"""Device ``lazy`` in PyTorch's lists of devices for optimizers.

``foreach=True``, ``fused=True`` and ``capturable=True`` ask these functions whether a device can do
it, and so does ``clip_grad_norm_``. The default of an optimizer is ``foreach``, as on CUDA. On the
CPU eager's is one parameter after the other. Deferred, both are the same kernels, but what a step
of a small network takes is mostly Python's time, and half of that the optimizer's loop: with lists
a step of an encoder of 36 parameters takes 20 % less, of a perceptron of 8 parameters 9 %.

Dynamo compiles every ``step()`` as capturable, and makes states so on the devices that it lists:
counters of steps are tensors beside the parameters. On another device ``NAdam`` would multiply a
counter of the CPU by a tensor of the device.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch.optim.swa_utils
from torch.utils import _foreach_utils

from torch_lazy import _C
from torch_lazy.integration.at_import import when_imported

_LISTS = (
    "_get_foreach_kernels_supported_devices",
    "_get_fused_kernels_supported_devices",
    "_get_capturable_supported_devices",
)


def _with_lazy(original: Callable[..., list[str]]) -> Callable[..., list[str]]:
    @functools.wraps(original)
    def devices(*args: Any, **kwargs: Any) -> list[str]:
        return [*original(*args, **kwargs), "lazy"]

    return devices


def _with_lazy_where_listed(original: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """With device lazy where the device is listed that lazy tensors live on."""

    @functools.wraps(original)
    def devices(*args: Any, **kwargs: Any) -> list[str]:
        listed = original(*args, **kwargs)
        return [*listed, "lazy"] if _C.chosen_execution_device() in listed else listed

    return devices


# Whose two forms compute the same bits on the CPU, and whose loop does more for a parameter than
# lists take: SGD's does not. AdamW is Adam.
_BY_LISTS = ("adadelta", "adagrad", "adam", "adamax", "rmsprop", "rprop")

# Of all parameters together. Where a step is not deferred, lists make temporaries as large as all
# of them; larger networks spend their time in kernels, whatever the form.
_MOST_BYTES = 256 << 20


def _gain_by_lists(parameters: Sequence[torch.Tensor | None]) -> bool:
    """Whether all are lazy tensors that live on the CPU, and small enough."""
    if _C.chosen_execution_device() != "cpu":
        return False
    bytes_ = 0
    for parameter in parameters:
        if type(parameter) not in (torch.nn.Parameter, torch.Tensor):
            return False
        if parameter.device.type != "lazy" or parameter.layout != torch.strided:
            return False
        bytes_ += parameter.nbytes
    return bytes_ <= _MOST_BYTES


def _with_lists(original: Callable[..., tuple[bool, bool]]) -> Callable[..., tuple[bool, bool]]:
    """The choice of a form where the program has made none: fused, foreach."""

    @functools.wraps(original)
    def default(
        params: Sequence[torch.Tensor | None], differentiable: bool, use_fused: bool = False
    ) -> tuple[bool, bool]:
        fused, foreach = original(params, differentiable, use_fused)
        return fused, foreach or (not (fused or differentiable) and _gain_by_lists(params))

    return default


def _modules() -> list[ModuleType]:
    """Modules that import the functions by name, so that each has to be told."""
    optimizers = [module for name, module in sys.modules.items() if name.startswith("torch.optim.")]
    return [_foreach_utils, *optimizers]


def _make_capturable(optimizer: torch.optim.Optimizer) -> None:
    """Marks the groups of lazy parameters that have no states yet, as Dynamo marks CUDA's."""
    for group in optimizer.param_groups:
        parameters = group["params"]
        if "capturable" in group and all(
            p.device.type == "lazy" and p not in optimizer.state for p in parameters
        ):
            group["capturable"] = True


def _make_capturable_in_dynamo(module: ModuleType) -> None:
    """Where another version of Dynamo decides in another way nothing is changed."""
    variable = module.OptimizerVariable
    original = getattr(variable, "_set_capturable", None)
    if original is None:
        return

    @functools.wraps(original)
    def set_capturable(self: Any, tx: Any) -> None:
        _make_capturable(self.value)
        original(self, tx)

    variable._set_capturable = set_capturable


def install() -> None:
    """Replaces the functions wherever PyTorch looks them up; call once."""
    when_imported("torch._dynamo.variables.optimizer", _make_capturable_in_dynamo)
    for name in _BY_LISTS:
        module = sys.modules[f"torch.optim.{name}"]
        module._default_to_fused_or_foreach = _with_lists(module._default_to_fused_or_foreach)
    replacements: dict[Callable[..., list[str]], Callable[..., list[str]]] = {}
    for module in _modules():
        for name in _LISTS:
            original = vars(module).get(name)
            if original is None:
                continue
            if module.__name__ == "torch.optim.optimizer" and name == _LISTS[0]:
                # There it is the default that is chosen by the list.
                setattr(module, name, _with_lazy_where_listed(original))
                continue
            if original not in replacements:
                replacements[original] = _with_lazy(original)
            setattr(module, name, replacements[original])
