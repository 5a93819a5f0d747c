"""Tied parameters stay tied when a module moves to device ``lazy`` or away from it.

``Module._apply`` sets a parameter's data in place where the old and the new tensor are of one kind,
as between CPU and CUDA, and makes a new parameter otherwise, once for each place where the module
holds it. PyTorch's list of kinds (``_has_compatible_shallow_copy_type``) knows no lazy tensors, so
a parameter that two modules share would become two.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch

_nested = threading.local()

_Place = tuple[torch.nn.Module, str]


def _tied(module: torch.nn.Module) -> list[tuple[torch.nn.Parameter, list[_Place]]]:
    """Parameters that the module holds in several places, and the places."""
    places: dict[int, tuple[torch.nn.Parameter, list[_Place]]] = {}
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                places.setdefault(id(parameter), (parameter, []))[1].append((part, name))
    return [entry for entry in places.values() if len(entry[1]) > 1]


def _keep_tied(original: Callable[..., torch.nn.Module]) -> Callable[..., torch.nn.Module]:
    @functools.wraps(original)
    def _apply(self: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
        if getattr(_nested, "active", False):
            return original(self, *args, **kwargs)
        tied = _tied(self)
        _nested.active = True
        try:
            result = original(self, *args, **kwargs)
        finally:
            _nested.active = False
        for parameter, places in tied:
            first, name = places[0]
            moved = first._parameters[name]
            if moved is None or "lazy" not in (parameter.device.type, moved.device.type):
                continue
            for part, other in places[1:]:
                part._parameters[other] = moved
        return result

    return _apply


def install() -> None:
    """Wraps ``torch.nn.Module._apply``; call once."""
    torch.nn.Module._apply = _keep_tied(torch.nn.Module._apply)  # type: ignore[method-assign]
