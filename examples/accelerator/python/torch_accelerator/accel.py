"""The module `torch.accel`: what PyTorch's own Python code, and a user, asks a device for."""

from __future__ import annotations

import contextlib
import os

import torch

_process = os.getpid()


def get_amp_supported_dtype() -> list[torch.dtype]:
    """None: there is no autocast on the device, and `torch.autocast` warns that it does nothing."""
    return []


def is_available() -> bool:
    """True: the device is made of the CPU."""
    return True


def device_count() -> int:
    """Two, which share memory and queue."""
    return 2


def current_device() -> int:
    """The index of the current device of this thread."""
    return torch.accelerator.current_device_index()


def set_device(device: int | str | torch.device) -> None:
    """Makes a device the current one of this thread."""
    torch.accelerator.set_device_index(device)


class device(contextlib.AbstractContextManager[None]):
    """Makes a device the current one for a block."""

    def __init__(self, device: int | str | torch.device) -> None:
        self._device = device

    def __enter__(self) -> None:
        self._before = current_device()
        set_device(self._device)

    def __exit__(self, *exception: object) -> None:
        set_device(self._before)


def synchronize(device: object = None) -> None:
    """Waits until all commands have run, and raises the error of one that failed."""
    torch.ops.torch_accelerator.synchronize()


def manual_seed(seed: int) -> None:
    """Seeds the CPU's generator, from which the device draws."""
    torch.default_generator.manual_seed(seed)


manual_seed_all = manual_seed


def get_rng_state(device: object = "accel") -> torch.Tensor:
    """The state of the CPU's generator, from which the device draws."""
    return torch.get_rng_state()


def set_rng_state(state: torch.Tensor, device: object = "accel") -> None:
    """Sets the state of the CPU's generator, from which the device draws."""
    torch.set_rng_state(state)


def _is_in_bad_fork() -> bool:
    return os.getpid() != _process
