"""Random numbers of the device, with the habits of ``torch.cuda``.

The device draws from PyTorch's generators of the CPU. Its default generator is the CPU's default
generator: what is seeded or restored here is so for the CPU, and ``torch.manual_seed`` seeds both.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from torch_lazy.device import Device, check_device, device_count


def _generator(device: Device = None) -> torch.Generator:
    check_device(device)
    from torch_lazy import _C

    return _C.default_generator()


def default_generators() -> tuple[torch.Generator, ...]:
    """What ``torch.lazy.default_generators`` is: a generator for each device."""
    return tuple(_generator(index) for index in range(device_count()))


def manual_seed(seed: int) -> None:
    """Seeds the default generator."""
    _generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds the default generators of all devices; there is one."""
    manual_seed(seed)


def seed() -> None:
    """Seeds the default generator with a number from the system."""
    _generator().seed()


def seed_all() -> None:
    """Seeds the default generators of all devices with one number from the system."""
    seed()


def initial_seed() -> int:
    """The number that the default generator was seeded with."""
    return _generator().initial_seed()


def get_rng_state(device: Device = "lazy") -> torch.Tensor:
    """State of the default generator, a tensor of bytes on the CPU."""
    return _generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """States of the default generators of all devices."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: torch.Tensor, device: Device = "lazy") -> None:
    """Restores a state that :func:`get_rng_state` returned."""
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Restores states that :func:`get_rng_state_all` returned."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
