"""`torch.lazy.profile()`: what it says of a program, and that it agrees with the counters."""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter, defaultdict
from pathlib import Path

import pytest
import torch
from behaviour import hot, run_script, torch_lazy

pytestmark = pytest.mark.recording


def step(x: torch.Tensor, w: torch.Tensor, scale: float = 2.0) -> float:
    return ((x @ w).tanh() * scale).sum().item()


STEP_LINE = f"{Path(__file__).name}:{step.__code__.co_firstlineno + 1}"


sizes = itertools.count(19)  # a window of another size is another window, which is not hot yet


@pytest.fixture
def inputs(device) -> tuple[torch.Tensor, torch.Tensor]:
    """Of a product that is a library call."""
    size = next(sizes)
    return torch.randn(3, size).to(device), torch.randn(size, 8000).to(device)


def many_states(x: torch.Tensor, w: torch.Tensor) -> None:
    """Cold, warm and hot windows, and one that leaves its trace."""
    for _ in range(5):
        step(x, w)
        torch_lazy.wait_for_compiles()
    (x @ w).tanh().exp().sum().item()


def test_a_profile_counts_what_the_metrics_count(inputs):
    with torch_lazy.profile() as p:
        many_states(*inputs)

    summary = p.summary
    assert set(summary.states) == {"cold", "warm", "hot", "guard failed"}
    assert summary.states == Counter(p.counters["windows"])
    assert summary.flushes == Counter(p.counters["flushes"])
    waits: Counter[str] = Counter()
    for sync in summary.syncs:
        waits[sync.reason] += sync.count
    assert waits == Counter(p.counters["syncs"])
    assert p.counters["recorded"] == sum(
        window.count * window.operations for window in summary.windows
    )


def test_deferred_operations_run_in_runs_whose_time_is_the_metrics(inputs):
    with torch_lazy.profile() as p:
        many_states(*inputs)

    runs = [event for event in p.events if event.kind == "run"]
    assert sum(run.operations for run in runs) == p.counters["deferred"]
    assert p.summary.running >= p.counters["run_ns"] > 0.5 * p.summary.running
    assert sum(step.time for step in p.summary.steps) <= p.counters["run_ns"]
    assert sum(share.time for share in p.summary.shares(p.duration)) == p.duration


@pytest.mark.kernels
def test_windows_steps_and_syncs_name_their_lines(inputs):
    hot(step, *inputs)

    with torch_lazy.profile() as p:
        step(*inputs)

    (window,) = p.summary.windows
    (kernel,) = (s for s in p.summary.steps if s.kind == "kernel")
    wait = next(s for s in p.summary.syncs if s.reason == "aten::_local_scalar_dense")
    assert str(window.line) == STEP_LINE
    assert window.graph in {graph.hash for graph in torch_lazy.graphs()}
    assert str(kernel.lines[0]) == STEP_LINE
    assert kernel.bytes == 4 * (3 * 8000 + 1)
    assert wait.line is not None
    assert wait.line.source == "return ((x @ w).tanh() * scale).sum().item()"


def test_waits_on_one_line_are_added_up(inputs):
    x, w = inputs

    with torch_lazy.profile() as p:
        values = [(x + 1).sum().item(), (w + 1).sum().item()]

    (wait,) = (s for s in p.summary.syncs if s.reason == "aten::_local_scalar_dense")
    assert wait.count == len(values)


@pytest.mark.kernels
def test_equal_windows_of_two_places_keep_their_own_lines(inputs):
    x, w = inputs

    def elsewhere() -> float:
        return ((x @ w).tanh() * 2.0).sum().item()

    hot(step, x, w)
    hot(elsewhere)

    with torch_lazy.profile() as p:
        step(x, w)
        elsewhere()

    kernels = [s for s in p.summary.steps if s.kind == "kernel"]
    assert len({kernel.lines for kernel in kernels}) == 2
    assert len({kernel.name for kernel in kernels}) == 1


def test_nothing_is_logged_before_and_after(inputs):
    hot(step, *inputs)
    with torch_lazy.profile() as p:
        pass
    step(*inputs)

    assert {event.kind for event in p.events} <= {"sync"}
    assert p.counters.get("recorded", 0) == 0
    assert "Nothing was recorded on device lazy" in str(p)


def test_a_guard_failure_says_what_differed(inputs):
    x, w = inputs
    hot(step, x, w)

    with torch_lazy.profile() as p:
        (x @ w).tanh().cosh().sum().item()

    (failure,) = p.summary.guard_failures
    assert "expected aten::mul.Tensor" in failure.why
    assert "recorded aten::cosh" in failure.why
    assert "left the known traces" in str(p)


def test_compiles_are_shown_on_their_thread(device):
    x = torch.randn(2, 23).to(device)

    with torch_lazy.profile() as p:
        hot(lambda: (x.sin() * 3).sum().item())

    assert p.summary.compiles
    for compile in p.summary.compiles:
        assert compile.thread != p.thread
        assert p.thread_names[compile.thread] == "compiles"
        assert compile.line is not None
        assert compile.operations == 3


def test_threads_are_told_apart(inputs):
    hot(step, *inputs)
    workers = [threading.Thread(target=hot, args=(step, *inputs), name=f"w{i}") for i in range(2)]

    with torch_lazy.profile() as p:
        for worker in workers:
            worker.start()
        numbers = [worker.native_id for worker in workers]
        for worker in workers:
            worker.join()

    by_thread = Counter(event.thread for event in p.events if event.kind == "window")
    assert by_thread == dict.fromkeys(numbers, 4)


def test_an_error_of_the_program_is_raised_and_ends_the_profile(inputs):
    def fail() -> None:
        step(*inputs)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), torch_lazy.profile() as p:
        fail()

    assert p.summary.states.total() == 1
    with torch_lazy.profile():
        pass


def test_an_error_that_was_deferred_is_raised_when_the_profile_is_left(device):
    table = torch.randn(5, 3).to(device)

    def look_up(row: int) -> torch.Tensor:
        index = torch.tensor([0, row]).to(device)
        return (table * 3).index_select(0, index.abs())  # indices that are pending

    hot(look_up, 1)

    with pytest.raises(IndexError), torch_lazy.profile() as p:
        lost = look_up(9)
    del lost

    assert [event.kind for event in p.events if event.kind == "run"]
    for event in p.events:
        assert event.begin <= event.end


def test_one_profile_at_a_time(device):
    with (
        torch_lazy.profile() as p,
        pytest.raises(RuntimeError, match="another one is on"),
        torch_lazy.profile(),
    ):
        pass
    with pytest.raises(RuntimeError, match="make another one"):
        p.__enter__()


@pytest.mark.kernels
def test_pytorchs_profiler_may_be_on_as_well(inputs):
    hot(step, *inputs)

    with torch.profiler.profile() as other, torch_lazy.profile() as p:
        step(*inputs)

    assert {event.kind for event in p.events} == {"sync", "run", "kernel", "library call", "window"}
    assert "torch_lazy::deferred" in {event.name for event in other.events()}


def test_fallbacks_are_found(device):
    library = torch.library.Library("profiled", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    x = torch.randn(4).to(device)

    with torch_lazy.profile() as p, pytest.warns(UserWarning, match="profiled::twice"):
        torch.ops.profiled.twice(x)

    assert p.counters["fallbacks"] == {"profiled::twice": 1}
    assert "profiled::twice was called 1 time" in str(p)


def test_text_names_windows_and_kernels(inputs):
    hot(step, *inputs)

    with torch_lazy.profile() as p:
        step(*inputs)

    assert STEP_LINE in str(p)
    assert "1 hot" in str(p)
    assert "aten::mm" in str(p)


@pytest.mark.kernels
def test_a_chrome_trace_nests_on_each_thread(inputs, tmp_path):
    with torch_lazy.profile() as p:
        many_states(*inputs)

    p.chrome_trace(tmp_path / "trace.json")

    entries = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    slices = defaultdict(list)
    for entry in entries:
        if entry["ph"] == "X":
            slices[entry["tid"]].append((entry["ts"], -entry["dur"]))
    for on_thread in slices.values():
        ends: list[float] = []
        for begin, negative in sorted(on_thread):
            while ends and ends[-1] <= begin:
                ends.pop()
            assert not ends or begin - negative <= ends[-1] + 1e-3  # nanoseconds, in microseconds
            ends.append(begin - negative)
    names = {entry["name"] for entry in entries}
    assert {"kernel_tanh_mul_sum", "aten::mm", "guard failed"} <= names
    assert sum(entry["ph"] == "b" for entry in entries) == p.summary.states.total()


def test_a_constant_that_changes_with_each_step_is_found(device):
    x = torch.randn(31, 37).to(device)

    with torch_lazy.profile() as p:
        for row in range(6):
            (x * 2)[row].sum().item()

    text = " ".join(str(p).split())
    assert "6 windows of 3 operations from test_profile.py:" in text
    assert "an index or an integer in it is another one each time" in text


def test_shapes_that_come_back_are_found(device):
    with torch_lazy.profile() as p:
        for size in 2 * [41, 42, 43, 44, 45] + [46]:
            hot(lambda x: (x * 5).sum().item(), torch.randn(size).to(device))

    assert "followed 6 different graphs" in str(p)


@pytest.mark.on_cpu("a forked child has no device but the CPU")
def test_a_forked_child_is_not_in_the_profile_and_may_have_its_own(device):
    done = run_script(
        f"""
import os, torch, torch_lazy
torch.set_num_threads(1)
with torch_lazy.profile() as p:
    child = os.fork()
    if child == 0:
        with torch_lazy.profile() as own:
            torch.ones(3, device={device!r}).sum().item()
        os._exit(own.summary.states.total() != 1)
    _, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), p.summary.states.total())
"""
    )

    assert done.stdout.split() == ["0", "0"], done.stderr
