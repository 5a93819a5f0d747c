"""The module ``torch.NAME`` of a device that a backend brings without kernels of PyTorch's.

PyTorch's own Python code asks it for what it asks ``torch.cuda`` for. Operators of the device run
on the CPU, and so its random numbers are the CPU's.
"""

from __future__ import annotations

import os
import types
from typing import Any

import torch


def _register(name: str) -> None:
    """Called by the core, before the device of that name is first used."""
    if not hasattr(torch, name):
        torch._register_device_module(name, _RuntimeDevice(name))


class _RuntimeDevice(types.ModuleType):
    """The module of a device."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.{name}", f"Device {name!r}, whose operators run on the CPU.")
        self._process = os.getpid()

    # ---- devices

    def is_available(self) -> bool:
        """True: it is registered where there is one."""
        return True

    def is_initialized(self) -> bool:
        """True: there is nothing to initialize later."""
        return True

    def device_count(self) -> int:
        """As the backend says."""
        from torch_lazy import _C

        return _C.offload_device_count()

    def current_device(self) -> int:
        """Index of the current device of this thread."""
        return torch.accelerator.current_device_index()

    def set_device(self, device: int | str | torch.device) -> None:
        """Makes a device the current one of this thread."""
        torch.accelerator.set_device_index(device)

    def synchronize(self, device: int | str | torch.device | None = None) -> None:
        """Waits until all work has run, and raises the error of what failed."""
        torch.accelerator.synchronize(device)

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """``(0, 0)``: it has none of the features that CUDA numbers."""
        return (0, 0)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        """Those of the CPU, on which operators run."""
        return [torch.bfloat16, torch.float16]

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """True: operators compute in bfloat16, as on the CPU."""
        return True

    def _is_in_bad_fork(self) -> bool:
        return os.getpid() != self._process

    # ---- random numbers

    def manual_seed(self, seed: int) -> None:
        """Seeds the CPU's generator, from which the device draws."""
        torch.default_generator.manual_seed(seed)

    manual_seed_all = manual_seed

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        """The state of the CPU's generator, from which the device draws."""
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        """Sets the state of the CPU's generator, from which the device draws."""
        torch.set_rng_state(state)

    # ---- memory

    def memory_stats(self, device: Any = None) -> dict[str, int]:
        """Bytes of the device that tensors have, now and at most, over all devices.

        What is freed goes back to the backend, so that nothing more is reserved.
        """
        from torch_lazy import _C

        stats: dict[str, int] = {}
        for name, count in _C.offload_memory_stats().items():
            when = name.split(".")[1]
            for kind in ("allocated_bytes", "reserved_bytes"):
                stats[f"{kind}.{when}"] = stats[f"{kind}.all.{when}"] = count
        return stats

    def memory_allocated(self, device: Any = None) -> int:
        """Bytes of the device that tensors have."""
        return self.memory_stats()["allocated_bytes.current"]

    def max_memory_allocated(self, device: Any = None) -> int:
        """The most of that since :meth:`reset_peak_memory_stats`."""
        return self.memory_stats()["allocated_bytes.peak"]

    memory_reserved = memory_allocated
    max_memory_reserved = max_memory_allocated

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        """Lets the peak begin at what is in use now."""
        from torch_lazy import _C

        _C.reset_peak_offload_memory()

    reset_max_memory_allocated = reset_peak_memory_stats
    reset_max_memory_cached = reset_peak_memory_stats

    def empty_cache(self) -> None:
        """Does nothing: what is freed goes back to the backend at once."""
