"""``safetensors`` files opened with ``device="lazy"``.

``safetensors.safe_open`` is compiled and has a list of devices. Here it opens the file on the CPU,
and what is read goes to device ``lazy``. The library may never be imported, or later than this
plugin, so its function is exchanged when the library is imported.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from torch_lazy.integration.at_import import when_imported

_NAME = "safetensors"


class _Opened:
    """An open file, or a slice of a tensor in it, whose tensors are on a device ``lazy``."""

    def __init__(self, on_the_cpu: Any, device: torch.device) -> None:
        self._on_the_cpu = on_the_cpu
        self._device = device

    def __enter__(self) -> _Opened:
        self._on_the_cpu.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._on_the_cpu.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._on_the_cpu, name)

    def __getitem__(self, index: Any) -> torch.Tensor:
        return self._on_the_cpu[index].to(self._device)

    def get_tensor(self, name: str) -> torch.Tensor:
        return self._on_the_cpu.get_tensor(name).to(self._device)

    def get_tensors(self, *args: Any) -> dict[str, torch.Tensor]:
        tensors = self._on_the_cpu.get_tensors(*args)
        return {name: tensor.to(self._device) for name, tensor in tensors.items()}

    def get_slice(self, name: str) -> _Opened:
        return _Opened(self._on_the_cpu.get_slice(name), self._device)


def _safe_open(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def safe_open(
        filename: Any, framework: str, device: str | int | torch.device = "cpu", **kwargs: Any
    ) -> Any:
        if str(device).partition(":")[0] != "lazy":
            return original(filename, framework, device=device, **kwargs)
        from torch_lazy.device import device_index

        there = torch.device("lazy", device_index(torch.device(device)))
        if framework not in ("pt", "torch", "pytorch"):
            raise ValueError(
                f"device lazy is PyTorch's, but the file was opened for framework {framework!r}: "
                'say framework="pt"'
            )
        return _Opened(original(filename, framework, device="cpu", **kwargs), there)

    return safe_open


def _exchange(library: ModuleType) -> None:
    safe_open = library.safe_open
    library.safe_open = _safe_open(safe_open)
    # Where it was imported by name before.
    loaded = sys.modules.get(f"{_NAME}.torch")
    if loaded is not None and getattr(loaded, "safe_open", None) is safe_open:
        loaded.safe_open = library.safe_open


def install() -> None:
    """Exchanges ``safetensors.safe_open``, now or when it is imported."""
    when_imported(_NAME, _exchange)
