"""Recording: a loop becomes hot and is deferred; windows are flushed where values are needed;
branches are recorded."""

from __future__ import annotations

import pytest
import torch
from behaviour import hot, run_script, same, synchronize, torch_lazy, wait_for_compiles

pytestmark = pytest.mark.recording


def step(x: torch.Tensor) -> torch.Tensor:
    return ((x * 2).tanh() + x).sum(0)


def deferred(fn, *args) -> int:
    """Operations that `fn` left pending, not run at the call."""
    synchronize()
    before = torch_lazy.metrics()["deferred"]
    result = fn(*args)
    count = torch_lazy.metrics()["deferred"] - before
    del result
    synchronize()
    return count


@pytest.fixture
def x(device):
    return torch.randn(3, 4).to(device)


def test_the_first_pass_runs_eagerly(device):
    other = torch.randn(5, 7, 2).to(
        device
    )  # a shape of its own, so that no other test made it known
    torch_lazy.reset_metrics()

    assert deferred(step, other) == 0
    assert torch_lazy.metrics()["eager"] >= 4
    assert torch_lazy.metrics()["recorded"] >= 4


def test_a_repeated_window_is_deferred_and_equal(x):
    expected = step(x.cpu())

    result = hot(step, x)

    assert deferred(step, x) == 4
    same(result.cpu(), expected)
    same(step(x).cpu(), expected)


def test_windows_are_counted_by_state(device):
    value = torch.randn(2, 9).to(device)
    synchronize()
    torch_lazy.reset_metrics()

    hot(step, value, runs=5)

    windows = torch_lazy.metrics()["windows"]
    assert windows["cold"] >= 1
    assert windows["warm"] >= 1
    assert windows["hot"] >= 2


def test_only_known_windows_are_compiled(device):
    value = torch.randn(11, 2).to(device)
    synchronize()
    before = torch_lazy.compile_count()

    hot(step, value, runs=1)
    assert torch_lazy.compile_count() == before

    hot(step, value, runs=6)
    after = torch_lazy.compile_count()
    assert after > before

    hot(step, value, runs=6)
    assert torch_lazy.compile_count() == after


def test_the_time_of_compiles_is_told_by_pass(x):
    torch_lazy.reset_metrics()

    hot(lambda: (x + 1.75).exp().tan())

    assert torch_lazy.metrics()["compile_ns"]["graph"] > 0


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


SYNCS = {
    "item": lambda t: t.sum().item(),
    "bool": lambda t: bool((t > 0).any()),
    "print": str,
    "copy": lambda t: t.cpu(),
    "tolist": lambda t: t.tolist(),
    "data-dependent shape": lambda t: t.nonzero(),
}


@pytest.mark.parametrize("sync", SYNCS.values(), ids=SYNCS)
def test_a_needed_value_flushes_the_window_and_is_counted(x, sync):
    hot(step, x)
    torch_lazy.reset_metrics()

    sync(step(x))

    metrics = torch_lazy.metrics()
    assert sum(metrics["flushes"].values()) >= 1
    assert sum(metrics["syncs"].values()) >= 1


def test_reasons_differ(x):
    def reasons(act):
        synchronize()
        torch_lazy.reset_metrics()
        act(step(x))
        return {reason for reason, count in torch_lazy.metrics()["syncs"].items() if count}

    assert reasons(lambda t: t.sum().item()) != reasons(lambda t: torch_lazy.synchronize())


def test_operators_that_sync_are_counted_by_name(x):
    torch_lazy.reset_metrics()

    for _ in range(5):
        x.nonzero()
        torch.unique(x)

    syncs = torch_lazy.metrics()["syncs"]
    assert syncs["aten::nonzero"] == 5
    assert syncs["aten::_unique2"] == 5


def test_metadata_needs_no_value(x):
    hot(step, x)
    synchronize()
    torch_lazy.reset_metrics()

    y = step(x)
    assert (
        y.shape,
        y.stride(),
        y.dtype,
        y.device,
        y.is_contiguous(),
        y._version,
        y.dim(),
        y.numel(),
    ) == ((4,), (1,), torch.float32, x.device, True, 0, 1, 4)

    assert torch_lazy.metrics()["windows_run"] == 0


def test_defer_never_runs_everything_eagerly(x):
    hot(step, x)
    torch_lazy.config.defer = "never"
    try:
        assert deferred(step, x) == 0
        same(step(x).cpu(), step(x.cpu()))
    finally:
        torch_lazy.config.defer = "hot"
    assert deferred(step, x) == 4


def test_a_window_with_tensors_of_the_cpu_among_its_arguments_is_compiled(x):
    factor, rows = torch.tensor(3.0), torch.tensor([1, 0])
    torch_lazy.reset_metrics()

    y = hot(lambda: (x * factor)[rows] + 1)

    same(y.cpu(), (x.cpu() * factor)[rows] + 1)
    assert "window not compiled" not in torch_lazy.metrics()["fallbacks"]


def test_on_one_core_a_window_is_compiled_when_it_has_taken_time():
    done = run_script("""
import os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import torch, torch_lazy
x = torch.ones(4, device="lazy")
torch_lazy.synchronize()

def step():
    y = x
    for _ in range(200):
        y = y * 1.01
    torch_lazy.synchronize()

step(), step()
time.sleep(0.3)
print("seen twice:", torch_lazy.compile_count())
deadline = time.monotonic() + 60
while not torch_lazy.compile_count() and time.monotonic() < deadline:
    step()
print("seen often:", torch_lazy.compile_count() > 0)
""")

    assert done.stdout.splitlines() == ["seen twice: 0", "seen often: True"], done.stderr


def test_waiting_for_compiles_does_not_wait_until_they_pay():
    done = run_script("""
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import torch, torch_lazy
x = torch.ones(4, device="lazy")
torch_lazy.synchronize()
for _ in range(2):
    (x * 2 + 1).exp()
    torch_lazy.synchronize()
torch_lazy.wait_for_compiles()
print(torch_lazy.compile_count())
""")

    assert done.stdout.split() == ["1"], done.stderr


def test_config_refuses_an_unknown_value():
    with pytest.raises(ValueError, match=r"hot.*never|never.*hot"):
        torch_lazy.config.defer = "sometimes"
    assert torch_lazy.config.defer == "hot"


def test_mark_step_of_upstreams_lazy_is_a_flush(x):
    import torch._lazy

    hot(step, x)
    synchronize()
    torch_lazy.reset_metrics()

    y = step(x)
    torch._lazy.mark_step()

    assert torch_lazy.metrics()["windows_run"] >= 1
    same(y.cpu(), step(x.cpu()))


def test_a_long_loop_without_a_sync_is_flushed_by_itself(device):
    value = torch.randn(4, 4).to(device)
    synchronize()
    torch_lazy.reset_metrics()

    y = value
    for i in range(3000):
        y = (y * 0.5).tanh() + value
        if i % 500 == 0:
            wait_for_compiles()

    assert sum(torch_lazy.metrics()["flushes"].values()) >= 1
    expected = value.cpu()
    for _ in range(3000):
        expected = (expected * 0.5).tanh() + value.cpu()
    same(y.cpu(), expected)
    assert torch_lazy.metrics()["deferred"] > 1000


def test_random_operators_draw_the_cpus_numbers(device):
    def draw(where):
        torch.manual_seed(7)
        x = torch.ones(4, device=where)
        dropped = torch.nn.functional.dropout(x, 0.5)
        return dropped, torch.rand_like(x), torch.randn(3, device=where), x.bernoulli(0.3)

    for _ in range(5):
        same([t.cpu() for t in draw(device)], draw("cpu"))
        wait_for_compiles()


def test_random_numbers_differ_from_pass_to_pass(device):
    draws = [
        tuple(hot(lambda: torch.rand(4, device=device) + 0, runs=1).tolist()) for _ in range(8)
    ]

    assert len(set(draws)) == 8


def test_an_unknown_operator_is_run_and_counted(x):
    library = torch.library.Library("behaviour_tests", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda t: t * 2, "CPU")
    torch_lazy.reset_metrics()

    with pytest.warns(UserWarning, match="behaviour_tests::twice"):
        y = torch.ops.behaviour_tests.twice(x + 1)

    same(y.cpu(), (x.cpu() + 1) * 2)
    assert any("behaviour_tests::twice" in name for name in torch_lazy.metrics()["fallbacks"])
