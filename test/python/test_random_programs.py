"""Random tensor programs behave on the device as on the CPU: values, metadata, aliasing, gradients
and errors."""

from __future__ import annotations

import program_runner
import pytest
from program_builder import Program, Step
from program_generator import generate
from program_runner import check_program, run_program
from random_programs import listing, shrink

SEEDS = range(60)  # the command `python random_programs.py --programs 1000` goes further


@pytest.mark.parametrize("seed", SEEDS)
def test_program_behaves_as_on_the_cpu(seed, device):
    program = generate(seed)

    found = check_program(program, device)

    assert found is None, f"{found}\n{listing(program, device)}"


def test_a_seed_always_makes_the_same_program():
    assert generate(3) == generate(3)


def test_a_program_has_forty_operations_and_a_branch():
    program = generate(5)

    operations = [s for s in program.steps if ".to(device)" not in s.code]
    assert len(operations) >= 35
    assert program.branch[: program.branch_at] == program.steps[: program.branch_at]
    assert program.branch != program.steps


def _program(*lines: str) -> Program:
    return Program(0, tuple(Step(line, "index" in line) for line in lines))


def _wrong_on_device(monkeypatch, correct: str, wrong: str) -> None:
    """Makes the second of each two runs, which is the device's, execute another statement."""

    def run(steps, device, repetition=0, expected=None):
        if expected is not None:
            steps = [Step(s.code.replace(correct, wrong), s.may_fail) for s in steps]
        return run_program(steps, device, repetition, expected)

    monkeypatch.setattr(program_runner, "run_program", run)


@pytest.mark.parametrize(
    ("correct", "wrong", "seen"),
    [
        ("v1.add_(1)", "v1.add_(1.001)", "value"),
        ("v1.add_(1)", "v1 = v1.add(1)", "version"),
        ("v1.t()", "v1.t().contiguous()", "strides"),
        ("v2[0]", "v2[0].clone()", "strides"),
        ("v1.add_(1)", "v1.add_(1).view(99)", "observations"),
        ("v3.sum()", "v3.sum().requires_grad_()", "requires_grad"),
    ],
)
def test_the_harness_sees_what_differs(monkeypatch, correct, wrong, seen):
    program = _program(
        "v1 = torch.randn(3, 4, generator=G(1)).to(device)",
        "v2 = v1.t()",
        "v1.add_(1)",
        "v3 = v2[0]",
        "v4 = v3.sum()",
    )
    _wrong_on_device(monkeypatch, correct, wrong)

    found = check_program(program, "cpu")

    assert found is not None
    assert seen in found.what


def test_the_harness_shrinks_a_failing_program_to_what_matters(monkeypatch):
    program = _program(
        "v1 = torch.randn(3, 4, generator=G(1)).to(device)",
        "v2 = v1 * 2",
        "v3 = v2.t()",
        "v3.tanh_()",
        "v4 = v1 + 1",
        "v5 = v4.sum()",
    )
    _wrong_on_device(monkeypatch, "v3.tanh_()", "v3.sin_()")

    small, _ = shrink(program, "cpu", check_program(program, "cpu"), seconds=30)

    assert [s.code for s in small.steps] == [program.steps[i].code for i in (0, 1, 2, 3)]


def test_a_failure_on_data_may_surface_later_on_the_device(monkeypatch):
    """As a deferring device does it: the statement passes, a later synchronization raises the same
    error."""
    lines = [
        "v1 = torch.arange(3).to(device)",
        "v2 = v1.index_select(0, v1 + run)",
        "v3 = v1 * 2",
        "v4 = v1 + 1",
    ]
    program = _program(*lines)
    _wrong_on_device(monkeypatch, "v4 = v1 + 1", "v4 = v1.index_select(0, v1 + run)")
    late = _program(lines[0], "v2 = v1", *lines[2:])
    expected = run_program(program.steps, "cpu", run=1)

    actual = program_runner.run_program(late.steps, "cpu", 1, expected)

    assert expected.fatal is not None
    assert expected.fatal[0] == 1
    assert program_runner.compare(expected, actual, "late") is None
    assert (
        program_runner.compare(expected, run_program(late.steps, "cpu", 1, expected), "never")
        is not None
    )


def test_printed_tensors_are_compared_without_the_devices_name():
    """On another device the same text is longer, so its lines break elsewhere."""
    here = "tensor([1.0000, 2.0000], dtype=torch.float64, grad_fn=<MulBackward0>)"
    there = (
        "tensor([1.0000, 2.0000],\n       device='lazy:0', dtype=torch.float64,\n"
        "       grad_fn=<MulBackward0>)"
    )
    machine = program_runner.Interpreter("cpu", 0)

    machine.observe(here)
    machine.observe(there)

    assert machine.trace.events[0] == machine.trace.events[1]
