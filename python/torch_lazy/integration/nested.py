"""Nested tensors in their default layout, made on device ``lazy`` of parts that are not there.

PyTorch lets only storages of devices that it lists into strided nested tensors, and where the parts
come from the CPU nothing of this device runs before its assertion. They are made on the CPU, then.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torch_lazy.integration.builtins import replace_builtin


def _is_device(value: Any) -> bool:
    return isinstance(value, torch.device | str)


def _on_cpu(value: Any) -> Any:
    return "cpu" if _is_device(value) else value


def _with_parts_elsewhere(make: Callable[..., torch.Tensor], parts_name: str) -> Any:
    """The function, which makes a tensor of this device on the CPU where no part is there."""

    @functools.wraps(make)
    def replacement(*args: Any, **kwargs: Any) -> torch.Tensor:
        parts = args[0] if args else kwargs.get(parts_name, ())
        named = [torch.device(d) for d in (*args, *kwargs.values()) if _is_device(d)]
        lazy = [device for device in named if device.type == "lazy"]
        if not lazy or any(isinstance(x, torch.Tensor) and x.device.type == "lazy" for x in parts):
            return make(*args, **kwargs)
        requires_grad = kwargs.pop("requires_grad", False)
        made = make(*map(_on_cpu, args), **{k: _on_cpu(v) for k, v in kwargs.items()})
        moved = made.to(lazy[0])
        return moved.requires_grad_() if requires_grad else moved

    return replacement


def install() -> None:
    """Wraps what ``nested_tensor`` and ``as_nested_tensor`` call; call once."""
    nested = torch._C._nested
    nested.nested_tensor = _with_parts_elsewhere(nested.nested_tensor, "data")
    make = getattr(torch, "_nested_tensor_from_tensor_list", None)
    if make is not None:  # not every version of PyTorch has it
        replace_builtin("_nested_tensor_from_tensor_list", _with_parts_elsewhere(make, "list"))
