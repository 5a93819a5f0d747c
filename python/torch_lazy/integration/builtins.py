"""Replacing a function of PyTorch's own that its compilers know by identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def replace_builtin(name: str, replacement: Callable[..., Any]) -> None:
    """Puts the replacement in the place of ``torch.<name>``, for PyTorch's compilers, too.

    Dynamo knows those that are no operators as ``torch._C.<name>``. TorchScript's compiler has a
    table of them, which PyTorch made before the plugin was loaded. Scripts of the CPU's call these
    functions in modules that both compile.
    """
    original = getattr(torch, name)
    for module in (torch, torch._C):
        if getattr(module, name, None) is original:
            setattr(module, name, replacement)
    operator = torch.jit._builtins._find_builtin(original)
    if operator is not None:
        torch.jit._builtins._register_builtin(replacement, operator)
