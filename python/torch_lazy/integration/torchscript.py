"""``torch.jit.load`` with ``map_location`` on device ``lazy``.

PyTorch's reader of TorchScript files has a list of devices. Here the file is read to the CPU, and
the module goes to the device.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.jit import _serialization


def install() -> None:
    """Exchanges ``torch.jit.load``."""
    original = torch.jit.load
    if hasattr(original, "_takes_lazy"):
        return

    @functools.wraps(original)
    def load(
        f: Any, map_location: str | torch.device | None = None, *rest: Any, **named: Any
    ) -> torch.jit.ScriptModule:
        if map_location is None or torch.device(map_location).type != "lazy":
            return original(f, map_location, *rest, **named)
        return original(f, "cpu", *rest, **named).to(map_location)

    load._takes_lazy = True
    torch.jit.load = _serialization.load = load
