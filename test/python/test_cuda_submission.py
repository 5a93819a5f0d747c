"""When windows reach a device of CUDA's, and as what: early runs, and graphs of kernels.

On the device that test/fake_cuda makes, whose streams are idle when all they were given is done.
"""

from __future__ import annotations

from test_fake_cuda import run_on_device

# A window of several kernels and library calls, whose length depends on the argument.
_PROGRAM = """
import time
import torch_lazy

torch.manual_seed(0)
WEIGHTS = [torch.randn(8, 8) / 3 for _ in range(6)]

def program(x, weights, layers=6, scale=1.0):
    for weight in weights[:layers]:
        x = torch.softmax((x @ weight).tanh() * scale + 1, -1)
        x = x - x.mean(0) + x.flip(1)
    if layers < 6:
        time.sleep(0.02)  # the device begins meanwhile
    return x.sum() + x.amax(0).sum()

def run(times, layers=6, scale=lambda i: 1.0):
    on_lazy = [weight.to("lazy") for weight in WEIGHTS]
    for i in range(times):
        x = torch.randn(16, 8)
        got = program(x.to("lazy"), on_lazy, layers, scale(i)).item()
        expected = program(x, WEIGHTS, layers, scale(i)).item()
        assert abs(got - expected) <= 1e-4 * abs(expected), (i, got, expected)
        torch_lazy._C.wait_for_compiles(60.0)

"""


def test_an_idle_device_begins_with_a_window_before_it_is_recorded():
    script = """
run(12)
runs = torch.lazy.metrics()["early_runs"]
print(runs.get("finished", 0) >= 5, "dropped" in runs, torch.lazy.metrics()["fallbacks"])
"""

    assert run_on_device(_PROGRAM + script) == ["True False {}"]


def test_a_thread_of_its_own_begins_while_the_program_records():
    script = """
import os, pathlib
run(12)
threads = [path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm")]
print("lazy early runs" in threads or len(os.sched_getaffinity(0)) == 1)
"""

    assert run_on_device(_PROGRAM + script) == ["True"]


def test_no_run_begins_early_where_that_is_turned_off():
    script = """
run(12)
print(torch.lazy.metrics()["early_runs"], torch.lazy.metrics()["windows"]["hot"] > 5)
"""

    assert run_on_device(_PROGRAM + script, TORCH_LAZY_EARLY_OPERATIONS="0") == ["{} True"]


def test_what_was_begun_is_dropped_where_the_window_becomes_another_one():
    script = """
run(8)
run(8, layers=5)  # begins as the others do, and ends earlier
run(8)
runs = torch.lazy.metrics()["early_runs"]
print(runs.get("dropped", 0) >= 1, runs["finished"] >= 8)
"""

    assert run_on_device(_PROGRAM + script) == ["True True"]


def test_numbers_that_change_reach_early_runs_and_graphs():
    script = """
run(30, scale=lambda i: 1.0 + i / 10)
print(torch.lazy.metrics()["early_runs"]["finished"] > 10, fake_cuda.graph_launches() > 0)
"""

    assert run_on_device(_PROGRAM + script) == ["True True"]


def test_kernels_with_nothing_between_them_are_launched_as_graphs():
    script = """
run(40)
print(fake_cuda.graph_launches() > 0, torch.lazy.metrics()["fallbacks"])
"""

    assert run_on_device(_PROGRAM + script) == ["True {}"]


def test_a_write_behind_the_window_s_reads_is_not_seen_by_what_began_early():
    script = """
state, x = torch.ones(16, 8), torch.randn(16, 8)
on_lazy = state.to("lazy"), x.to("lazy")
def step(state, x):
    y = x
    for _ in range(12):
        y = torch.softmax(y * state + 1, -1).cumsum(1) @ torch.eye(8, device=y.device)
    state.mul_(0.5).add_(y.mean(0))
    return (y + state).sum().item()
for i in range(16):
    got, expected = step(*on_lazy), step(state, x)
    assert abs(got - expected) <= 1e-3 * abs(expected), (i, got, expected)
    torch_lazy._C.wait_for_compiles(60.0)
torch.testing.assert_close(on_lazy[0].cpu(), state)
print(torch.lazy.metrics()["early_runs"].get("finished", 0) > 4)
"""

    assert run_on_device(_PROGRAM + script) == ["True"]


def test_a_graph_that_cannot_be_made_is_counted_and_kernels_are_launched_one_by_one():
    script = """
import warnings
warnings.simplefilter("ignore")
fake_cuda.fail(graphs=0)
run(40)
print(torch.lazy.metrics()["fallbacks"], fake_cuda.graph_launches() > 0)
"""

    assert run_on_device(_PROGRAM + script) == ["{'graph of kernels': 1} False"]


def test_threads_on_streams_of_their_own_share_an_executable_whose_runs_begin_early():
    script = """
import threading
run(6)
wrong = []
def work():
    with torch.cuda.stream(torch.cuda.Stream()):
        try:
            run(12)
        except AssertionError as error:
            wrong.append(error)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(wrong, torch.lazy.metrics()["early_runs"]["finished"] > 0)
"""

    assert run_on_device(_PROGRAM + script) == ["[] True"]


def test_a_write_by_another_thread_behind_an_early_stage_is_not_seen_by_it():
    script = """
import threading

def step(weight, write):
    x = torch.ones(8, 8, device=weight.device)
    for _ in range(12):
        x = torch.softmax(x @ weight, -1)
    thread = threading.Thread(target=write, args=(weight,))
    thread.start()
    thread.join()
    return (x + weight).sum().item()

def write(weight):
    weight.mul_(-0.9).add_(0.05)

weight = torch.randn(8, 8)
on_lazy = weight.to("lazy")
for i in range(20):
    got, expected = step(on_lazy, write), step(weight, write)
    assert abs(got - expected) <= 1e-4 * max(1, abs(expected)), (i, got, expected)
    torch_lazy._C.wait_for_compiles(60.0)
torch.testing.assert_close(on_lazy.cpu(), weight)
print(torch.lazy.metrics()["early_runs"].keys() <= {"finished", "dropped"})
"""

    assert run_on_device(_PROGRAM + script, TORCH_LAZY_EARLY_OPERATIONS="4") == ["True"]


def test_what_operators_warn_of_is_said_as_often_where_the_window_began_early():
    script = """
import warnings

mask = torch.ones(8, 8, dtype=torch.uint8, device="lazy")
values = torch.full((64,), 0.5, device="lazy")
def step():
    x = torch.ones(8, 8, device="lazy")
    for i in range(12):
        x = torch.softmax(x @ x, -1)
        if i == 4:
            x[mask] = values  # masks of bytes are deprecated
    return x.sum().item()
counts = []
for _ in range(12):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        step()
    counts.append(sum("uint8" in str(warning.message) for warning in said))
    torch_lazy._C.wait_for_compiles(60.0)
print(set(counts), torch.lazy.metrics()["early_runs"].get("finished", 0) > 5)
"""

    assert run_on_device(_PROGRAM + script, TORCH_LAZY_EARLY_OPERATIONS="2") == ["{1} True"]


def test_an_index_out_of_range_is_told_once_where_what_was_begun_is_dropped():
    script = """
table, weight = torch.randn(10, 8, device="lazy"), torch.eye(8, device="lazy")
def step(indices, layers):
    x = table[indices.to("lazy")]
    for _ in range(layers):
        x = torch.softmax(x @ weight, -1)
    time.sleep(0.02)  # the device begins meanwhile
    return x.sum().item()
good, bad = torch.tensor([1, 2, 9]), torch.tensor([1, 20, 9])
for _ in range(8):
    step(good, 8)
    torch_lazy._C.wait_for_compiles(60.0)
errors = 0
for indices in (bad, good, good):
    try:
        step(indices, 7)  # begins as the others do
    except (IndexError, RuntimeError) as error:
        errors += 1
print(errors, torch.lazy.metrics()["early_runs"].get("dropped", 0) >= 1)
"""

    assert run_on_device(_PROGRAM + script, TORCH_LAZY_EARLY_OPERATIONS="4") == ["1 True"]


def test_a_graph_that_another_thread_captures_is_not_spoilt_by_compiles_and_graphs_of_kernels():
    script = """
run(4, layers=2)
compiles, graphs = torch.lazy.metrics()["compiles"], fake_cuda.graph_launches()
fake_cuda.capture(True)
run(12)
torch.nn.functional.dropout(torch.ones(9, device="lazy") * 2).sum().item()
print(fake_cuda.capture(False), torch.lazy.metrics()["fallbacks"])
print(torch.lazy.metrics()["compiles"] > compiles, fake_cuda.graph_launches() > graphs)
"""

    assert run_on_device(_PROGRAM + script) == ["False {}", "True True"]
