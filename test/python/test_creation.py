"""Tensors that are made like others, or in the place of others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from behaviour import each_run, run_hot, torch_lazy

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


# ATen keeps the sizes of an out argument that has as many elements.
OF_OTHER_SIZES = {
    "rows": lambda out: out,
    "one row": lambda out: out.view(1, 8),
    "a column": lambda out: out.view(8, 1),
    "columns": lambda out: out.view(4, 2).t(),
    "half of the columns": lambda out: out.view(2, 4)[:, :2],
    "a number": lambda out: out[0, 0],
}
RANGES = {
    "arange": lambda n, out: torch.arange(n, out=out),
    "linspace": lambda n, out: torch.linspace(1, 3, n, out=out),
    "logspace": lambda n, out: torch.logspace(0, 1, n, out=out),
}


@pytest.mark.parametrize("make", RANGES.values(), ids=RANGES)
@pytest.mark.parametrize("part", OF_OTHER_SIZES.values(), ids=OF_OTHER_SIZES)
def test_an_out_argument_keeps_its_sizes(device, part: Callable, make: Callable):
    def program(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        inside = part(out)
        make(inside.numel(), inside)
        return out * x

    x = torch.full((2, 4), 3.0)

    results = each_run(program, x.to(device), runs=5)

    for result in results:
        torch.testing.assert_close(result.cpu(), program(x))


# Of a tensor of two rows of four.
MAKE_IN_PLACE = {
    "a range": lambda out: torch.arange(1, 9, 2, out=out[0]),
    "a range of fractions": lambda out: torch.arange(0.5, 4.5, out=out[0]),
    "a range in a column": lambda out: torch.arange(2, out=out[:, 1]),
    "the identity": lambda out: torch.eye(2, 4, out=out),
    "steps": lambda out: torch.linspace(0, 1, 4, out=out[1]),
    "a number": lambda out: torch.full((2, 4), 7, out=out),
}


@pytest.mark.recording
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bfloat16])
@pytest.mark.parametrize("make", MAKE_IN_PLACE.values(), ids=MAKE_IN_PLACE)
def test_what_is_made_in_an_out_argument_is_compiled(make: Callable, dtype):
    def program(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x, dtype=dtype)
        make(out)
        return out * x

    x = torch.full((2, 4), 3.0)
    failed = torch_lazy.metrics()["fallbacks"].get("window not compiled", 0)

    result = run_hot(program, x)

    torch.testing.assert_close(result.cpu(), program(x))
    assert torch_lazy.metrics()["fallbacks"].get("window not compiled", 0) == failed
