"""Guards: what differs between two recordings is not mistaken, and a branch is learnt."""

from __future__ import annotations

import pytest
import torch
from behaviour import (
    EXECUTION_DEVICE,
    deferred,
    hot,
    same,
    synchronize,
    torch_lazy,
    wait_for_compiles,
)

pytestmark = pytest.mark.recording


def step(x: torch.Tensor) -> torch.Tensor:
    return ((x * 2).tanh() + x).sum(0)


@pytest.fixture
def x(device):
    return torch.randn(3, 4).to(device)


def test_changed_values_are_used_not_remembered(device):
    def run(i):
        value = torch.full((3, 4), float(i)).to(device)
        return step(value).cpu()

    for i in range(8):
        same(run(i), step(torch.full((3, 4), float(i))))
        wait_for_compiles()


@pytest.mark.parametrize(
    "change",
    [
        lambda x: torch.randn(4, 4).to(x.device),
        lambda x: x.double(),
        lambda x: x.t().contiguous().t(),
        lambda x: torch.randn(6, 4).to(x.device)[::2],
        lambda x: torch.randn(9).to(x.device)[1:].view(2, 4),
        lambda x: torch.zeros(0, 4, device=x.device),
    ],
    ids=["shape", "dtype", "strides", "gaps", "offset", "empty"],
)
def test_an_input_that_looks_different_is_not_mistaken(x, change):
    hot(step, x)
    other = change(x)

    same(step(other).cpu(), step(other.cpu()))


def test_an_index_on_the_cpu_that_lies_otherwise_gives_a_result_laid_out_otherwise(device):
    table = torch.arange(256).view(16, 16)
    orders = [table[:4, :4].t(), table[:8:2, :8:2], table[:4, :4], table[:1, :4].expand(4, 4)]

    def act(x, index):
        taken = x[index]
        return taken, taken + 1, x[index, table[:4, :4].t()] if x.dim() > 1 else taken

    for x in (torch.arange(256.0), torch.arange(65536.0).view(256, 256)):
        for index in orders:
            same(hot(act, x.to(device), index), act(x.to(EXECUTION_DEVICE), index))
        for index in orders:  # each known by now
            same(act(x.to(device), index), act(x.to(EXECUTION_DEVICE), index))


def test_aliased_inputs_are_not_mistaken_for_separate_ones(device):
    def update(a, b):
        a.add_(1)
        return b * 2

    hot(update, torch.ones(3).to(device), torch.ones(3).to(device))
    shared = torch.ones(4).to(device)

    assert update(shared[:3], shared[1:]).tolist() == [4, 4, 2]
    assert update(shared, shared).tolist() == [6, 6, 6, 4]


def test_scalars_are_compared_by_type_and_bits(x):
    def scale(s):
        return (x.long() * s).add(x.long())

    hot(scale, 1)

    for s in (1, 1.0, True, 2, -0.0):
        same(scale(s).cpu(), (x.cpu().long() * s).add(x.cpu().long()))


@pytest.mark.parametrize("state", ["default dtype", "grad mode", "deterministic"])
def test_a_changed_global_state_is_not_ignored(device, state):
    def build():
        return torch.ones(2, device=device) / 3 + torch.full((2,), 0.1, device=device)

    hot(build)
    if state == "default dtype":
        torch.set_default_dtype(torch.float64)
    elif state == "grad mode":
        torch.set_grad_enabled(False)
    else:
        torch.use_deterministic_algorithms(True)
    try:
        result = build()
        expected = torch.ones(2) / 3 + torch.full((2,), 0.1)
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
        torch.use_deterministic_algorithms(False)

    same(result.cpu(), expected)


def test_deterministic_algorithms_have_executables_of_their_own(device):
    value = torch.randn(2, 11).to(device)
    hot(step, value)
    compiled = torch_lazy.compile_count()

    torch.use_deterministic_algorithms(True)
    try:
        result = hot(step, value)
    finally:
        torch.use_deterministic_algorithms(False)

    assert torch_lazy.compile_count() == compiled + 1
    same(result.cpu(), step(value.cpu()))


def test_a_failed_guard_runs_the_prefix_and_records_the_branch(device):
    value = torch.randn(3, 8).to(device)

    def branchy(flag):
        y = value * 2 + 1
        z = y.sin()
        return z.cos() if flag else (z.tanh() * 3).sum()

    hot(branchy, True)
    synchronize()
    torch_lazy.reset_metrics()

    same(branchy(False).cpu(), ((value.cpu() * 2 + 1).sin().tanh() * 3).sum())
    assert torch_lazy.metrics()["windows"]["guard failed"] >= 1

    hot(branchy, False)
    assert deferred(branchy, False) == 6
    assert deferred(branchy, True) == 4
    same(branchy(True).cpu(), (value.cpu() * 2 + 1).sin().cos())


def test_a_window_that_stops_early_is_right(x):
    hot(lambda: (x + 1) * 2 - 3)

    partial = x + 1

    same(partial.cpu(), x.cpu() + 1)


def test_values_dropped_before_the_flush_do_not_matter(x):
    def chain(keep):
        a = x + 1
        b = a * 2
        c = b.sin()
        return (a, b, c) if keep else (c,)

    hot(chain, False)

    same(
        [t.cpu() for t in chain(True)], [x.cpu() + 1, (x.cpu() + 1) * 2, ((x.cpu() + 1) * 2).sin()]
    )
    same([t.cpu() for t in hot(chain, True)], [t.cpu() for t in chain(True)])


def test_what_goes_on_with_ever_other_sizes_does_not_undo_what_stands_before_it(device):
    def begin(x):
        for _ in range(10):
            x = (x * 0.5).tanh()
        return x

    def go_on(x, length):
        return (begin(x)[:, None] + torch.ones(length, device=x.device)).sum()

    x = torch.randn(12)
    value = x.to(device)
    hot(lambda: begin(value).cpu())
    for length in range(2, 14):
        same(go_on(value, length).cpu(), go_on(x, length))
        wait_for_compiles()

    def flushed_before_other_sizes() -> int:
        """What other tests recorded before decides which of the two it is."""
        flushes = torch_lazy.metrics()["flushes"]
        return sum(flushes.get(reason, 0) for reason in ("branch", "change"))

    before = flushed_before_other_sizes()
    assert deferred(lambda: go_on(value, 20)) >= 20
    assert flushed_before_other_sizes() == before + 1
