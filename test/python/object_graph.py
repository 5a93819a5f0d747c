"""Random nested objects with tensors in them, and what can be told of such an object: values,
metadata, devices, and which tensors are the same or share memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from behaviour import differences
from torch import nn

DTYPES = (
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.int64,
    torch.bool,
    torch.complex64,
)
SHAPES = ((), (0,), (5,), (3, 4), (2, 0, 3), (2, 3, 4), (2, 3, 4, 2))


class ObjectGraph:
    """Makes an object. The same seed gives the same object on every device, and a few of its
    tensors are on the CPU always."""

    def __init__(self, seed: int, device: str, modules: bool):
        self.random = random.Random(seed)
        self.device = device
        self.modules = modules
        self.tensors: list[torch.Tensor] = []

    def make(self) -> dict[str, Any]:
        for _ in range(self.random.randint(2, 5)):
            self.tensors.append(self.fresh())
        return {
            "first": self.container(depth=3),
            "second": self.container(depth=2),
            "tensors": self.tensors,
        }

    def container(self, depth: int) -> Any:
        parts = [
            self.container(depth - 1) if depth and self.random.random() < 0.4 else self.leaf()
            for _ in range(self.random.randint(1, 4))
        ]
        kind = self.random.choice((list, tuple, dict))
        return {f"key{i}": part for i, part in enumerate(parts)} if kind is dict else kind(parts)

    def leaf(self) -> Any:
        choices: list[Callable[[], Any]] = [self.fresh, self.again, self.view, self.parameter]
        choices += [self.view, self.number, self.computed]
        if self.modules:
            choices.append(self.module)
        return self.random.choice(choices)()

    def number(self) -> float:
        return self.random.random()

    def fresh(self) -> torch.Tensor:
        shape, dtype = self.random.choice(SHAPES), self.random.choice(DTYPES)
        tensor = torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype)
        if len(shape) == 4 and self.random.random() < 0.5:
            tensor = tensor.contiguous(memory_format=torch.channels_last)
        tensor = tensor.to("cpu" if self.random.random() < 0.3 else self.device)
        if dtype.is_floating_point and self.random.random() < 0.3:
            tensor.requires_grad_()
        return tensor

    def again(self) -> torch.Tensor:
        return self.random.choice(self.tensors)

    def computed(self) -> torch.Tensor:
        """A value that may still be pending."""
        self.tensors.append(self.again().detach() + 1)
        return self.tensors[-1]

    def view(self) -> torch.Tensor:
        base = self.again().detach()
        kinds: list[Callable[[torch.Tensor], torch.Tensor]] = [
            lambda t: t.reshape(-1),
            lambda t: t.unsqueeze(0).expand(2, *t.shape),
        ]
        if base.dim():
            kinds += [lambda t: t.transpose(0, -1), lambda t: t[..., 1:], lambda t: t[::2]]
        if base.is_complex():
            kinds.append(torch.conj)
        self.tensors.append(self.random.choice(kinds)(base))
        return self.tensors[-1]

    def parameter(self) -> nn.Parameter:
        data = self.again().detach()
        return nn.Parameter(data, requires_grad=data.is_floating_point())

    def module(self) -> nn.Module:
        torch.manual_seed(self.random.randint(0, 9))
        net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2))
        net[2].weight = net[0].weight
        return net.to(self.device)


def tensors_of(thing: Any) -> Iterator[torch.Tensor]:
    """Every tensor at every place where it is, always in the same order."""
    if isinstance(thing, torch.Tensor):
        yield thing
    elif isinstance(thing, nn.Module):
        for part in thing.modules():
            yield from part._parameters.values()
            yield from part._buffers.values()
    elif isinstance(thing, dict):
        for value in thing.values():
            yield from tensors_of(value)
    elif isinstance(thing, (list, tuple)):
        for value in thing:
            yield from tensors_of(value)


def skeleton(thing: Any) -> Any:
    """The object without its tensors."""
    if isinstance(thing, (torch.Tensor, nn.Module)):
        return type(thing).__name__
    if isinstance(thing, dict):
        return {key: skeleton(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return type(thing)(skeleton(value) for value in thing)
    return thing


def _classes(names: list[Any]) -> list[int]:
    """For each name the place where it came first."""
    first: dict[Any, int] = {}
    return [first.setdefault(name, i) for i, name in enumerate(names)]


def same_objects(tensors: list[torch.Tensor]) -> list[int]:
    return _classes([id(tensor) for tensor in tensors])


def same_memory(tensors: list[torch.Tensor]) -> list[int]:
    """Storages without bytes are no memory to share."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    return _classes([s._cdata if s.nbytes() else -i - 1 for i, s in enumerate(storages)])


def compare(actual: Any, expected: Any, devices: list[str]) -> None:
    """Asserts that an object is the expected one, which is on the CPU, with its tensors on
    `devices`."""
    assert skeleton(actual) == skeleton(expected)
    found, wanted = list(tensors_of(actual)), list(tensors_of(expected))
    assert [tensor.device.type for tensor in found] == devices
    for i, (one, other) in enumerate(zip(found, wanted, strict=True)):
        assert not differences(one, other), f"tensor {i}: {differences(one, other)}"
    assert same_objects(found) == same_objects(wanted)
    assert same_memory(found) == same_memory(wanted)
