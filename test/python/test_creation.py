"""Tensors that are made like others have the sizes, strides and dtype that they have on the CPU."""

from __future__ import annotations

import pytest
import torch

SOURCES = {
    "dense": lambda t: t,
    "permuted": lambda t: t.permute(2, 0, 1),
    "sliced": lambda t: t[:, ::2],
    "sliced and permuted": lambda t: t[:, ::2].permute(2, 0, 1),
    "expanded": lambda t: t[:, :1].expand(4, 6, 8),
    "channels last": lambda t: t[None].to(memory_format=torch.channels_last),
}
MAKE = {
    "empty_like": torch.empty_like,
    "zeros_like": torch.zeros_like,
    "rand_like": torch.rand_like,
    "of another dtype": lambda t: torch.empty_like(t, dtype=torch.float64),
    "contiguous": lambda t: torch.empty_like(t, memory_format=torch.contiguous_format),
    "new_empty": lambda t: t.new_empty(t.shape),
}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_strides_are_the_cpus(device, source, make):
    def program(where: str) -> torch.Tensor:
        return make(source(torch.ones(4, 6, 8, device=where)))

    made, expected = program(device), program("cpu")

    assert (made.shape, made.stride(), made.dtype) == (
        expected.shape,
        expected.stride(),
        expected.dtype,
    )
    assert made.device.type == torch.device(device).type
