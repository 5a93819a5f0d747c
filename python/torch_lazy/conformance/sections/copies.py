"""Copies in every direction: between the host and the device and on it, of all dtypes and layouts,
with a cast, into parts, of pending results."""

from __future__ import annotations

from functools import partial

import torch

import torch_lazy
from torch_lazy.conformance.as_on_the_cpu import finish, require_as_on_the_cpu, require_same
from torch_lazy.conformance.section import Options, by_name, section_of_checks

_DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64]
_DTYPES += [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]

_LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.t(),
    "strided": lambda t: t[::2, 1:],
    "expanded": lambda t: t[:1].expand(3, 6),
    "0-dim": lambda t: t[1, 2],
    "empty": lambda t: t[:0],
}


def _sample(dtype: torch.dtype) -> torch.Tensor:
    return (torch.arange(24).view(4, 6) % 7).to(dtype)


def _copies(dtype: torch.dtype, options: Options) -> None:
    """Through the device and back, each way that a program has to say it."""
    for layout, view in _LAYOUTS.items():
        source = view(_sample(dtype))
        there = source.to("lazy")
        into_lazy = torch.zeros(source.shape, dtype=dtype).to("lazy")
        into_lazy.copy_(source)
        on_lazy = torch.zeros(source.shape, dtype=dtype).to("lazy")
        on_lazy.copy_(view(_sample(dtype).to("lazy")))
        late = source.to("lazy", non_blocking=True)
        into_cpu = torch.zeros(source.shape, dtype=dtype)
        into_cpu.copy_(there)
        back_late = there.to("cpu", non_blocking=True)
        torch_lazy.synchronize()
        plain = source.clone(memory_format=torch.contiguous_format)
        require_same(there.cpu(), source.to("cpu", copy=True), f"{layout}, to the device: ")
        require_same([into_lazy, on_lazy, into_cpu], [plain] * 3, f"{layout}, copy_: ")
        require_same([late, back_late], [source.to("cpu", copy=True)] * 2, f"{layout}, late: ")


def casts_on_the_way(options: Options) -> None:
    source = torch.tensor([-2.5, 0.0, 1.0, 3.75])
    for dtype in (torch.float64, torch.float16, torch.int32, torch.bool):
        there = source.to("lazy")
        target = torch.zeros(4, dtype=dtype).to("lazy")
        target.copy_(source)
        results = [source.to("lazy", dtype), there.to(dtype), there.to("cpu", dtype), target]
        require_same(results, [source.to(dtype)] * 4, f"{dtype}: ")


def a_copy_has_what_its_source_had(options: Options) -> None:
    """A source that is written afterwards, on the host or on the device."""
    for _ in range(4):
        host = torch.arange(4.0)
        there = host.to("lazy")
        host.fill_(-1)
        pending = there * 2
        kept = pending.clone()
        seen = pending.cpu()
        pending.zero_()
        require_same([there, kept, seen], [torch.arange(4.0), *[torch.arange(4.0) * 2] * 2])
        finish()


def new_data_reaches_hot_windows(options: Options) -> None:
    """A buffer on the device that is filled anew before each run."""

    def make(device: str):
        buffer = torch.zeros(3, 4).to(device)

        def step() -> torch.Tensor:
            buffer.copy_(torch.randn(3, 4))
            buffer[1] = torch.randn(4)
            return buffer * 2 + torch.randn(3, 1).to(device)

        return step

    require_as_on_the_cpu(make, runs=6)


def parts_are_copied_into_parts(options: Options) -> None:
    def make(device: str):
        source = torch.randn(6, 8).to(device)

        def step() -> list[torch.Tensor]:
            target = torch.zeros(8, 6, device=device)
            target[1:4, ::2].copy_(source[::2, 2:5])
            target.t()[:, 7].copy_(source[:, 0])
            host = torch.zeros(8)
            host[::2].copy_(source[3, 1:5])
            return [target, host]

        return step

    require_as_on_the_cpu(make)


def numbers_come_to_the_host(options: Options) -> None:
    for run in range(4):
        x = torch.arange(3.0).to("lazy") + run
        total = x.sum()
        found = [total.item(), float(total), int(total), bool(total > 2), x.tolist(), str(x.cpu())]
        on_cpu = torch.arange(3.0) + run
        sum_ = on_cpu.sum()
        expected = [
            sum_.item(),
            float(sum_),
            int(sum_),
            bool(sum_ > 2),
            on_cpu.tolist(),
            str(on_cpu),
        ]
        require_same(found, expected, f"run {run + 1}: ")
        finish()


SECTION = section_of_checks(
    "copies",
    "copies between host and device and on the device",
    {
        **{f"{str(dtype).removeprefix('torch.')}": partial(_copies, dtype) for dtype in _DTYPES},
        **by_name(
            casts_on_the_way,
            a_copy_has_what_its_source_had,
            new_data_reaches_hot_windows,
            parts_are_copied_into_parts,
            numbers_come_to_the_host,
        ),
    },
)
