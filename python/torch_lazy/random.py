"""Random numbers of the device, with the habits of ``torch.cuda``.

The device draws from the generators of the device that lazy tensors live on, which are PyTorch's of
the CPU where that is the CPU or has none. Its default generators are theirs: what is seeded or
restored here is so for that device, and ``torch.manual_seed`` seeds both.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from torch_lazy.device import Device, device_count, device_index


def _generator(device: Device = None) -> torch.Generator:
    index = device_index(device)
    from torch_lazy import _C

    return _C.default_generator(index)


def default_generators() -> tuple[torch.Generator, ...]:
    """What ``torch.lazy.default_generators`` is: a generator for each device."""
    return tuple(_generator(index) for index in range(device_count()))


def manual_seed(seed: int) -> None:
    """Seeds the current device's default generator."""
    _generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds the default generators of all devices."""
    for generator in default_generators():
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seeds the current device's default generator with a number from the system."""
    _generator().seed()


def seed_all() -> None:
    """Seeds the default generators of all devices with one number from the system."""
    seed()
    manual_seed_all(initial_seed())


def initial_seed() -> int:
    """The number that the current device's default generator was seeded with."""
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
