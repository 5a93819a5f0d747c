"""Device ``lazy`` in PyTorch's lists of devices for optimizers.

``foreach=True``, ``fused=True`` and ``capturable=True`` ask these functions whether a device can do
it, and so does ``clip_grad_norm_``. The default of an optimizer is that of the device that lazy
tensors live on: on CUDA ``foreach``, on the CPU one parameter after the other. Lists would save a
tenth to a fifth of a step of some dozens of small parameters, most of which is Python's loop over
them, but they are not eager's program: they write ``p.grad`` (SGD with Nesterov momentum), differ
where parameters share memory and in half precision, refuse tensors as betas, and take a quarter
longer where a group has one parameter.

Dynamo compiles every ``step()`` as capturable, and makes states so on the devices that it lists:
counters of steps are tensors beside the parameters. On another device ``NAdam`` would multiply a
counter of the CPU by a tensor of the device.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
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

    # As torch.compiler.assume_constant_result would, which imports the compiler: Dynamo, which
    # traces optimizers, does not know how to trace a question to the extension module.
    devices._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return devices


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
