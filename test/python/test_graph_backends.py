"""A backend with a compiler of graphs is given the parts of a window that it takes
(test/vendor_backend/graph_backend.cpp)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from example_accelerator import run_random_programs
from vendor import install, run_with

pytestmark = pytest.mark.recording

PROGRAM = """
def step(x, w):
    scores = (x @ w.t()).softmax(1)
    return (scores.cumsum(1) * 2 + scores).sin()

def hot(*inputs):
    for _ in range(5):
        result = step(*inputs)
        torch.lazy.synchronize()
        torch.lazy.wait_for_compiles()
    return result

torch.manual_seed(0)
x, w = torch.randn(4, 6), torch.randn(5, 6)
result = hot(x.to("lazy"), w.to("lazy"))
torch.testing.assert_close(result.cpu(), step(x, w))
print(torch.lazy.metrics()["fallbacks"])
"""


@pytest.fixture
def packages(vendor_libraries, tmp_path) -> Path:
    """A folder of installed packages: the one that brings `graphs`."""
    install(tmp_path, "graphs", vendor_libraries / "libgraph_backend.so", "graphs_package")
    return tmp_path


def run(packages: Path, code: str, **environment: str) -> tuple[list[str], str]:
    """The lines that the script prints, and what it writes to stderr."""
    done = run_with(packages, code, TORCH_LAZY_BACKEND="graphs", **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def test_a_window_that_is_taken_whole_is_one_command(packages):
    lines, debug = run(packages, PROGRAM, TORCH_LAZY_DEBUG="3")

    assert lines == ["{}"]
    assert "1 commands, 0 kernels, 0 library calls, 0 copies" in debug


def test_what_is_not_taken_runs_between_the_parts_and_is_named(packages):
    lines, debug = run(packages, PROGRAM, VENDOR_REFUSES="aten::cumsum", TORCH_LAZY_DEBUG="3")

    assert lines == ["{'aten::cumsum by ATen': 1}"]
    assert "2 commands, 0 kernels, 1 library calls, 0 copies" in debug


def test_a_part_that_is_refused_runs_node_by_node_and_is_named(packages):
    lines, _ = run(packages, PROGRAM, VENDOR_REFUSES="aten::cumsum", VENDOR_MOST_NODES="4")

    fallbacks = ast.literal_eval(lines[0])
    assert fallbacks["graph of 6 operators by ATen"] == 1
    assert fallbacks["aten::mm by ATen"] == 1
    assert "aten::sin by ATen" not in fallbacks


def test_an_index_out_of_range_is_raised_as_in_eager(packages):
    lines, _ = run(
        packages,
        """
table = torch.randn(5, 3).to("lazy")
def look_up(rows):
    return (table.exp()[rows.to("lazy")] * 2).sum().item()
for _ in range(5):
    look_up(torch.tensor([0, 4]))
    torch.lazy.wait_for_compiles()
try:
    look_up(torch.tensor([0, 5]))
except IndexError as error:
    print(str(error).splitlines()[0])
print(look_up(torch.tensor([1])) > 0)
""",
    )

    assert "out of" in lines[0]
    assert lines[1:] == ["True"]


@pytest.mark.parametrize("profile", ["programs", "fusion"])
@pytest.mark.parametrize("refuses", ["", "seed 1", "seed 2"])
def test_random_programs_behave_as_on_the_cpu(packages, profile, refuses):
    environment = {"VENDOR_REFUSES": refuses, "TORCH_LAZY_BACKEND": "graphs"}

    run_random_programs(packages, "lazy", profile, 30, **environment)
