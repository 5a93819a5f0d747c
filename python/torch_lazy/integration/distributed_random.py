"""Random operators on distributed tensors (``DTensor``) on device ``lazy``.

DTensor makes the numbers of all ranks those of one tensor by an offset in the generator's state,
which generators like CUDA's have. Where lazy tensors live on the CPU their generator is the CPU's:
ranks draw from it as they do on a mesh of CPUs.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import torch

from torch_lazy.integration.at_import import when_imported


def _draw_as_on_the_cpu(module: ModuleType) -> None:
    original = getattr(module, "is_rng_supported_mesh", None)
    if original is None:
        return

    @functools.wraps(original)
    def is_rng_supported_mesh(mesh: Any) -> bool:
        from torch_lazy import execution_device

        if mesh.device_type == "lazy" and execution_device().type == "cpu":
            return False
        return original(mesh)

    module.is_rng_supported_mesh = is_rng_supported_mesh


def install() -> None:
    """Changes both modules that know the function, when a script imports them.

    Where another version of PyTorch has no such function nothing is changed.
    """
    if torch.distributed.is_available():
        for name in ("_random", "_dispatch"):
            when_imported(f"torch.distributed.tensor.{name}", _draw_as_on_the_cpu)
