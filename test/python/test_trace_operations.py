"""What happens to a script that has more windows than `config.trace_operations` has room for."""

from __future__ import annotations

import itertools

from behaviour import run_script

# Each number of elements is a window of its own, of a few operations.
WINDOWS = """
import torch

def window(elements, device="lazy"):
    x = torch.linspace(0.0, 1.0, elements, device=device)
    return ((x * 2 + 1).sin() * x).exp().sum().item()

def run(sizes, rounds):
    for _ in range(rounds):
        for elements in sizes:
            window(elements)
        torch.lazy.wait_for_compiles()

def hot_windows(sizes):
    before = torch.lazy.metrics()["windows"].get("hot", 0)
    run(sizes, 1)
    return torch.lazy.metrics()["windows"].get("hot", 0) - before
"""


def printed(code: str, **environment: str) -> list[str]:
    done = run_script(WINDOWS + code, anew=False, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_windows_that_do_not_fit_are_not_compiled_again_and_again():
    code = """
sizes = range(2, 102)
run(sizes, 10)
compiles = torch.lazy.compile_count()
run(sizes, 30)
print(torch.lazy.compile_count() - compiles, hot_windows(sizes))
print(torch.lazy.metrics()["fallbacks"]["window not kept"] > 0)
"""
    compiles, hot, counted = printed(code, TORCH_LAZY_TRACE_OPERATIONS="200")

    assert int(compiles) == 0
    assert 10 < int(hot) < 60
    assert counted == "True"


def test_windows_of_what_a_script_did_before_make_room_for_new_ones():
    code = """
run(range(2, 102), 10)
now = range(1002, 1022)
run(now, 100)
print(hot_windows(now), len(now))
"""
    hot, windows = printed(code, TORCH_LAZY_TRACE_OPERATIONS="200")

    assert hot == windows


def test_values_are_the_same_whatever_leaves_the_cache():
    code = """
for phase in range(4):
    for round in range(40):
        for elements in range(2 + 15 * phase, 22 + 15 * phase):
            got, expected = window(elements), window(elements, "cpu")
            assert abs(got - expected) <= 1e-5 * expected, (elements, got, expected)
        torch.lazy.wait_for_compiles()
    print(torch.lazy.metrics()["windows"]["hot"])
"""
    hot = [int(windows) for windows in printed(code, TORCH_LAZY_TRACE_OPERATIONS="100")]

    assert all(before + 100 < after for before, after in itertools.pairwise(hot)), hot


def test_what_leaves_the_cache_is_the_same_in_each_run_of_a_deterministic_script():
    code = """
torch.use_deterministic_algorithms(True)
for phase in range(3):
    for round in range(30):
        for elements in range(2 + 15 * phase, 22 + 15 * phase):
            window(elements)
metrics = torch.lazy.metrics()
print(metrics["windows"], metrics["fallbacks"])
"""
    runs = [printed(code, TORCH_LAZY_TRACE_OPERATIONS="100") for _ in range(2)]

    assert runs[0] == runs[1]
    assert "'hot'" in "".join(runs[0])
