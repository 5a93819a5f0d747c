"""No growth over many windows: of the process, of the device's memory, of what is compiled."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import torch

import torch_lazy
from torch_lazy.conformance.section import (
    DoesNotApply,
    Options,
    by_name,
    needs_operators_that_raise_for_indices,
    require,
    section_of_checks,
)

_MEGABYTE = 1 << 20
_ELEMENTS = _MEGABYTE // 4  # of a float tensor
_WARM_UP, _WINDOWS = 60, 200


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        raise DoesNotApply("this system does not tell the memory of a process in /proc") from None
    return pages * os.sysconf("SC_PAGE_SIZE")


def _device_bytes() -> int:
    """Counted by the device, where it counts."""
    try:
        return torch_lazy.memory_allocated()
    except NotImplementedError:
        return 0


def _repeat(step: Callable[[int], object], windows: int, first: int = 0) -> None:
    for window in range(first, first + windows):
        step(window)
        torch_lazy.synchronize()
        if window < _WARM_UP:
            torch_lazy.wait_for_compiles()


def _require_no_growth(step: Callable[[int], object], what: str) -> None:
    """A leak of one tensor of a MiB in each fourth window would be found."""
    _repeat(step, _WARM_UP)
    host, device = _resident_bytes(), _device_bytes()
    _repeat(step, _WINDOWS, _WARM_UP)
    limit = _WINDOWS // 4 * _MEGABYTE
    for where, grown in (
        ("the process", _resident_bytes() - host),
        ("the device's memory", _device_bytes() - device),
    ):
        require(
            grown < limit,
            f"{where} grew by {grown // _MEGABYTE} MiB in {_WINDOWS} windows of {what}",
        )


def hot_windows_keep_nothing(options: Options) -> None:
    x = torch.randn(_ELEMENTS).to("lazy")
    _require_no_growth(lambda window: (x * 2 + 1).relu(), "one output of 1 MiB")


def writes_keep_nothing(options: Options) -> None:
    kept = torch.zeros(_ELEMENTS).to("lazy")
    _require_no_growth(lambda window: kept.mul_(0.5).add_(kept.neg()), "writes to 1 MiB")


def copies_keep_nothing(options: Options) -> None:
    source = torch.randn(_ELEMENTS)
    _require_no_growth(lambda window: (source.to("lazy") + 1).cpu(), "copies of 1 MiB")


def views_and_gradients_keep_nothing(options: Options) -> None:
    x = torch.randn(512, 512).to("lazy").requires_grad_()

    def step(window: int) -> None:
        x.grad = None
        (x.t()[1:] * x[1:].tanh()).sum().backward()

    _require_no_growth(step, "gradients of 1 MiB")


def failures_keep_nothing(options: Options) -> None:
    needs_operators_that_raise_for_indices()
    x = torch.randn(_ELEMENTS).to("lazy")
    good, bad = torch.tensor([0, 1]).to("lazy"), torch.tensor([0, _ELEMENTS]).to("lazy")

    def step(window: int) -> None:
        try:
            made = x * 2
            made.index_select(0, (bad if window % 5 == 4 else good) * 1)
            torch_lazy.synchronize()
        except (IndexError, RuntimeError):
            pass

    _require_no_growth(step, "1 MiB, of which each fifth fails")


def what_repeats_is_compiled_once(options: Options) -> None:
    x = torch.randn(64).to("lazy")

    def step(window: int) -> torch.Tensor:
        return (x * 2 + window % 3).relu()

    _repeat(step, _WARM_UP)
    before = torch_lazy.compile_count()
    _repeat(step, _WINDOWS, _WARM_UP)
    more = torch_lazy.compile_count() - before
    require(more == 0, f"{more} windows were compiled after {_WARM_UP} repetitions, expected none")


SECTION = section_of_checks(
    "memory",
    "nothing grows over many windows",
    by_name(
        hot_windows_keep_nothing,
        writes_keep_nothing,
        copies_keep_nothing,
        views_and_gradients_keep_nothing,
        failures_keep_nothing,
        what_repeats_is_compiled_once,
    ),
    seconds=120.0,
)
