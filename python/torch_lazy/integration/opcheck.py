"""``torch.library.opcheck`` with lazy tensors.

One of its checks, of how an operator's gradient is registered, lists the types of devices that it
knows. Here it is told of CPU tensors, and the operator runs on the device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from torch_lazy.integration.at_import import when_imported


class _OnTheDevice(torch._ops.OpOverload):
    """An operator that runs with the arguments of its making, whatever it is called with.

    Where it returns one of them, that is the corresponding one of the call. Of its base it has what
    the check asks for: the class, the name, and that it can be called.
    """

    def __init__(self, op: Any, args: Any, kwargs: Any) -> None:
        self._on_device = op
        self._args = args
        self._kwargs = kwargs

    def name(self) -> str:
        return self._on_device.name()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        ours = pytree.arg_tree_leaves(*self._args, **self._kwargs)
        theirs = pytree.arg_tree_leaves(*args, **kwargs)
        called_with = {id(mine): yours for mine, yours in zip(ours, theirs, strict=True)}
        results = self._on_device(*self._args, **self._kwargs)
        return pytree.tree_map(lambda result: called_with.get(id(result), result), results)


def _on_the_cpu(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().cpu().requires_grad_(tensor.requires_grad)


def _with_lazy(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def check(op: Any, args: Any, kwargs: Any) -> None:
        tensors = [x for x in pytree.arg_tree_leaves(*args, **kwargs) if torch.is_tensor(x)]
        if not any(tensor.device.type == "lazy" for tensor in tensors):
            return original(op, args, kwargs)
        if torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "AutogradLazy"):
            return None
        copies = pytree.tree_map_only(torch.Tensor, _on_the_cpu, (args, kwargs))
        return original(_OnTheDevice(op, args, kwargs), *copies)

    return check


def _replace(tests: ModuleType) -> None:
    name = "autograd_registration_check"
    if hasattr(tests, name):
        setattr(tests, name, _with_lazy(getattr(tests, name)))


def install() -> None:
    """Replaces the check, once PyTorch has imported it."""
    when_imported("torch.testing._internal.optests.autograd_registration", _replace)
