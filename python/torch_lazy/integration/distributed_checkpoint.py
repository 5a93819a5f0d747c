"""``torch.distributed.checkpoint.save`` of lazy tensors where PyTorch has a GPU.

Its writer of files then copies to the CPU what is on the type of device of that GPU, on a stream of
its own, and expects everything else to be on the CPU already. Lazy tensors are: they are copied as
the writer asks for them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from torch_lazy.integration.at_import import when_imported


def install() -> None:
    """Changes what loads tensors for the writer, now or when a script imports it."""
    when_imported("torch.distributed.checkpoint.filesystem", _let_lazy_tensors_be_loaded)


def _let_lazy_tensors_be_loaded(module: ModuleType) -> None:
    loader = getattr(module, "_OverlappingCpuLoader", None)
    if loader is None:
        return
    original = loader.__init__

    @functools.wraps(original)
    def init(self: Any, resolve_fun: Callable[..., torch.Tensor], *args: Any, **named: Any) -> None:
        def on_the_cpu(item: Any) -> torch.Tensor:
            tensor = resolve_fun(item)
            return tensor.detach().cpu() if tensor.device.type == "lazy" else tensor

        original(self, on_the_cpu, *args, **named)

    loader.__init__ = init
