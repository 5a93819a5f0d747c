"""Recording: a loop becomes hot and is deferred; windows are flushed where values are needed;
branches are recorded."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from behaviour import deferred, hot, run_script, same, synchronize, torch_lazy, wait_for_compiles

pytestmark = pytest.mark.recording


def step(x: torch.Tensor) -> torch.Tensor:
    return ((x * 2).tanh() + x).sum(0)


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


WITHOUT_AN_IDLE_CORE = """
import hashlib, os, threading, time
cores = sorted(os.sched_getaffinity(0))[:{cores}]
os.sched_setaffinity(0, set(cores))
import torch, torch_lazy
x = torch.ones(4, device="lazy")
torch_lazy.synchronize()
ended = False

def be_busy():
    data = bytes(1 << 20)
    while not ended:
        hashlib.sha256(data)  # without the GIL

def step():
    y = x
    for _ in range(100):
        y = y * 1.01
    torch_lazy.synchronize()

# Some more than cores: other processes may take their part.
threads = [threading.Thread(target=be_busy, daemon=True) for _ in range({threads})]
for thread in threads:
    thread.start()
for _ in range(3):  # seen for the second time, and when cores were looked at for the second time
    step()
    time.sleep(0.2)
print("seen three times:", torch_lazy.compile_count())
deadline = time.monotonic() + 60
while not torch_lazy.compile_count() and time.monotonic() < deadline:
    step()
print("seen often:", torch_lazy.compile_count() > 0)
ended = True
for thread in threads:
    thread.join()
"""


def tells_idle_time() -> bool:
    "As not in every sandbox."
    words = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    return any(line[0] == "cpu0" and int(line[4]) > 0 for line in words if line)


@pytest.mark.parametrize(
    ("cores", "threads"),
    [
        pytest.param(1, 0, id="one core"),
        pytest.param(
            2,
            8,
            id="a busy team",
            marks=pytest.mark.skipif(not tells_idle_time(), reason="idle cores are not told"),
        ),
    ],
)
def test_without_an_idle_core_a_window_is_compiled_when_it_has_taken_time(cores, threads):
    done = run_script(WITHOUT_AN_IDLE_CORE.format(cores=cores, threads=threads))

    assert done.stdout.splitlines() == ["seen three times: 0", "seen often: True"], done.stderr


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


def test_a_window_that_makes_only_views_runs_nothing(x):
    def corner(x):
        return x.t()[1, :2][0]

    hot(corner, x)
    torch_lazy.reset_metrics()

    assert corner(x).item() == x.cpu()[0, 1].item()

    assert torch_lazy.metrics()["windows"].get("hot") == 1
    assert torch_lazy.metrics()["windows_run"] == 0


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


def test_what_follows_an_operation_of_another_size_each_time_is_deferred(device):
    weights = torch.randn(6).to(device)

    def decay(labels: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        y = weights * labels.sum()
        for _ in range(40):
            y = y * 0.5 + weights
        return y

    def labels(length: int) -> torch.Tensor:
        return torch.arange(length, dtype=torch.float32)

    for length in range(3, 20):
        torch_lazy.reset_metrics()
        result = decay(labels(length).to(device), weights)
        synchronize()
        wait_for_compiles()

    metrics = torch_lazy.metrics()
    assert metrics["flushes"] == {"change": 1, "synchronize": 1}
    assert metrics["windows"]["hot"] == 1
    assert metrics["deferred"] > 60
    same(result.cpu(), decay(labels(length), weights.cpu()))


def test_what_does_not_read_a_growing_cache_is_deferred(device):
    weights = torch.randn(4, 4) / 2  # roundings do not grow

    def attend(x: torch.Tensor, weights: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            for _ in range(5):
                x = torch.tanh(x @ weights)
            x = x + torch.softmax(x @ cache.t(), -1) @ cache
        return x

    def step(length: int) -> None:
        x, cache = torch.randn(2, 4), torch.randn(length, 4)
        result = attend(x.to(device), weights.to(device), cache.to(device))
        torch.testing.assert_close(result.cpu(), attend(x, weights, cache))
        wait_for_compiles()

    for length in range(3, 20):
        step(length)
    torch_lazy.reset_metrics()
    step(20)

    metrics = torch_lazy.metrics()
    assert metrics["flushes"]["change"] == 6
    assert metrics["deferred"] > 0.6 * metrics["recorded"]
    # What reads the cache is the same in all rounds, and never again.
    assert metrics["compiles"] == 0


def test_parts_of_a_loop_with_a_branch_are_deferred(device):
    weights = torch.randn(6).to(device)
    choices = random.Random(5)

    def choose(weights: torch.Tensor, coins: list[bool]) -> torch.Tensor:
        y = weights
        for coin in coins:
            for _ in range(5):
                y = (y * 0.5).tanh() + weights
            y = y.sin() if coin else y.roll(1)
        return y

    def step() -> None:
        coins = [choices.random() < 0.5 for _ in range(12)]
        same(choose(weights, coins).cpu(), choose(weights.cpu(), coins))
        wait_for_compiles()

    for _ in range(15):
        step()
    torch_lazy.reset_metrics()
    step()

    metrics = torch_lazy.metrics()
    assert metrics["windows"] == {"hot": 13}
    assert metrics["deferred"] == metrics["recorded"]


def test_a_loop_with_few_paths_becomes_one_window(device):
    weights = torch.randn(6).to(device)

    def step(path: int) -> None:
        y = weights
        for part in range(4):
            for _ in range(4):
                y = (y * 0.5).tanh() + weights
            y = y.sin() if part == path else y.cos()
        synchronize()
        wait_for_compiles()

    for i in range(60):
        step(i % 4)
    torch_lazy.reset_metrics()
    step(2)

    assert torch_lazy.metrics()["windows"] == {"hot": 1}
    assert torch_lazy.metrics()["flushes"] == {"synchronize": 1}


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
