"""Operations that fail on their data, alone and in the middle of a deferred window: the error is
raised, what came before is kept, what came after is not made up, and work goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

import torch

import torch_lazy
from torch_lazy.conformance.as_on_the_cpu import finish, require_same
from torch_lazy.conformance.program_runner import REPETITIONS
from torch_lazy.conformance.section import (
    Options,
    by_name,
    needs_operators_that_raise_for_indices,
    require,
    section_of_checks,
)

# On three rows and indices.
_BAD_INDEX = {
    "index_select": lambda rows, at: rows.index_select(0, at),
    "gather": lambda rows, at: rows.gather(0, at[:, None]),
    "embedding": lambda rows, at: torch.nn.functional.embedding(at, rows),
    "indexing": lambda rows, at: rows[at],
    "index_add_": lambda rows, at: torch.zeros_like(rows).index_add_(0, at, rows[: len(at)]),
    "scatter": lambda rows, at: rows.scatter(0, at[:, None], 0.0),
}
_GOOD, _BAD = torch.tensor([0, 2]), torch.tensor([0, 3])


def _error_of(act: Callable[[], object]) -> Exception | None:
    try:
        act()
        torch_lazy.synchronize()
    except Exception as error:
        return error
    return None


def _is_raised(operation: Callable, options: Options) -> None:
    """Where eager on the CPU raises, so does the device, by the next sync at the latest."""
    needs_operators_that_raise_for_indices()
    on_cpu = torch.arange(6.0).view(3, 2)
    expected = _error_of(lambda: operation(on_cpu, _BAD))
    require(expected is not None, "the CPU takes the index")
    rows = on_cpu.to("lazy")
    good, bad = _GOOD.to("lazy"), _BAD.to("lazy")

    def step(at: torch.Tensor) -> torch.Tensor:
        return operation(rows * 1, at * 1) + 1  # indices that are pending themselves

    for _ in range(REPETITIONS):
        require_same(step(good), operation(on_cpu, _GOOD) + 1)
        finish()
    error = _error_of(lambda: step(bad).cpu())
    require(error is not None, "an index out of range gave a result, expected an error")
    known = isinstance(error, (type(expected), IndexError))
    require(known, f"raised {type(error).__name__}, eager {type(expected).__name__}")
    require_same(step(good), operation(on_cpu, _GOOD) + 1, "after the error: ")


def a_failure_in_the_middle_loses_nothing(options: Options) -> None:
    """Writes before the failing operation stand; what those behind it would have changed is as it
    was, or refused to readers until it is overwritten."""
    needs_operators_that_raise_for_indices()
    rows = torch.arange(6.0).view(3, 2).to("lazy")
    before, behind = torch.zeros(2).to("lazy"), torch.zeros(2).to("lazy")
    good, bad = _GOOD.to("lazy"), _BAD.to("lazy")

    def step(at: torch.Tensor) -> torch.Tensor:
        before.add_(1)
        found = rows.index_select(0, at * 1)  # indices that are pending themselves
        behind.add_(found.sum(0))
        return found

    for _ in range(REPETITIONS):
        step(good)
        finish()
    found = step(bad)
    error = _error_of(torch_lazy.synchronize)
    require(error is not None, "synchronize() passed over an index out of range")
    require_same(before, torch.full((2,), REPETITIONS + 1.0), "a write before the failure: ")
    require(_error_of(found.cpu) is not None, "the result of a failed operation could be read")
    if _error_of(behind.cpu) is None:
        unchanged = REPETITIONS * torch.tensor([4.0, 6.0])
        require_same(behind, unchanged, "a write behind the failure: ")
    behind.fill_(5)
    require_same(behind, torch.full((2,), 5.0), "overwritten after the failure: ")
    require_same(step(good), torch.tensor([[0.0, 1.0], [4.0, 5.0]]), "after the failure: ")
    behind_now = torch.tensor([5.0, 5.0]) + torch.tensor([4.0, 6.0])
    require_same(behind, behind_now, "written after the failure: ")


def a_wrong_call_raises_at_once(options: Options) -> None:
    """Between deferred operations, which are kept."""
    x = torch.ones(2, 3).to("lazy")
    for _ in range(REPETITIONS):
        pending = x * 2
        error = _error_of(lambda: x + torch.ones(4).to("lazy"))
        require(isinstance(error, RuntimeError), f"sizes that do not broadcast: {error!r}")
        require_same(pending + 1, torch.full((2, 3), 3.0))
        finish()


def an_impossible_allocation_raises(options: Options) -> None:
    x = torch.ones(3).to("lazy")
    pending = x * 2
    error = _error_of(lambda: torch.empty(1 << 58, device="lazy").fill_(1))
    require(error is not None, "four exbibytes were allocated")
    require(
        isinstance(error, RuntimeError), f"raised {type(error).__name__}, expected RuntimeError"
    )
    require_same(pending + 1, torch.full((3,), 3.0), "after the error: ")


def an_exception_of_the_program_leaves_work_intact(options: Options) -> None:
    """The program leaves a window in the middle by an exception of its own."""
    total = torch.zeros(3).to("lazy")
    x = torch.ones(3).to("lazy")

    def step(interrupted: bool) -> None:
        total.add_(x * 2)
        if interrupted:
            raise KeyError("the program's own")
        total.add_(x)

    for run in range(8):
        with contextlib.suppress(KeyError):
            step(interrupted=run == 6)
        finish()
    require_same(total, torch.full((3,), 7 * 3.0 + 2.0))


SECTION = section_of_checks(
    "failures",
    "bad indices, errors in the middle of a window, impossible allocations",
    {
        **{f"bad-index-of-{n}": partial(_is_raised, f) for n, f in _BAD_INDEX.items()},
        **by_name(
            a_failure_in_the_middle_loses_nothing,
            a_wrong_call_raises_at_once,
            an_impossible_allocation_raises,
            an_exception_of_the_program_leaves_work_intact,
        ),
    },
)
