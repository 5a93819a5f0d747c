"""Nested tensors in their default layout, made on device ``lazy`` of parts that are not there.

PyTorch lets only storages of devices that it lists into strided nested tensors, and where the parts
come from the CPU nothing of this device runs before its assertion. They are made on the CPU, then.
"""

from __future__ import annotations

import functools
from typing import Any

import torch


def _is_device(value: Any) -> bool:
    return isinstance(value, torch.device | str)


def _on_cpu(value: Any) -> Any:
    return "cpu" if _is_device(value) else value


def _replace(module: Any, name: str, parts_name: str) -> None:
    """Where another version of PyTorch has no such function nothing is changed."""
    make = getattr(module, name, None)
    if make is None:
        return

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

    setattr(module, name, replacement)


def install() -> None:
    """Wraps what ``nested_tensor`` and ``as_nested_tensor`` call; call once."""
    _replace(torch._C._nested, "nested_tensor", "data")
    _replace(torch, "_nested_tensor_from_tensor_list", "list")
