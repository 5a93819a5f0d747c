"""Random tensor programs behave on the device as on the CPU: values, metadata, aliasing, gradients
and errors."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from torch_lazy.conformance import program_runner
from torch_lazy.conformance.program import Bound, Program, Step, in_double
from torch_lazy.conformance.program_comparison import EXACT, Trace, compare, within
from torch_lazy.conformance.program_generator import generate
from torch_lazy.conformance.program_runner import check_program, run_program
from torch_lazy.conformance.random_programs import listing, shrink

# The command `python -m torch_lazy.conformance.random_programs` goes further.
SEEDS = [("programs", seed) for seed in range(60)] + [("fusion", seed) for seed in range(60)]


@pytest.mark.parametrize(("profile", "seed"), SEEDS)
def test_program_behaves_as_on_the_cpu(profile, seed, device):
    program = generate(seed, profile)

    found = check_program(program, device)

    assert found is None, f"{found}\n{listing(program, device)}"


@pytest.mark.parametrize("profile", ["programs", "fusion"])
def test_a_seed_always_makes_the_same_program(profile):
    assert generate(3, profile) == generate(3, profile)


def test_a_program_has_forty_operations_and_a_branch():
    program = generate(5)

    operations = [s for s in program.steps if ".to(device)" not in s.code]
    assert len(operations) >= 35
    assert program.branch[: program.branch_at] == program.steps[: program.branch_at]
    assert program.branch != program.steps


def test_selections_of_inputs_and_integers_have_to_be_equal_in_fusion_programs():
    for seed in range(30):
        program = generate(seed, "fusion")
        _, _, state = run_program(program.steps, "cpu").events[-1]
        for name, seen in state.items():
            if not seen["value"].dtype.is_floating_point:
                assert program.bounds[name].tolerance == 0.0


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
    assert compare(expected, actual, "late") is None
    never = run_program(late.steps, "cpu", 1, expected)
    assert compare(expected, never, "never") is not None


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


@pytest.mark.recording
def test_a_run_that_was_not_compiled_is_seen_where_it_has_to_be(device):
    lines = [
        "v1 = torch.ones(3, 4).to(device)",
        "synchronize()",
        "v2 = torch.cat([v1] * (run + 1))",
    ]
    program = _program(*lines)

    found = check_program(replace(program, compiles=True), device)

    assert check_program(program, device) is None
    assert found is not None
    assert found.is_uncompiled


def test_rounding_within_the_bound_is_no_difference():
    one = torch.tensor([100.0, 1.0])
    close = one + torch.tensor([0.0, 1e-3])

    assert within(one, close, Bound(2e-5)).all()
    assert within(one, close, Bound(2e-6, 1e3)).all()
    assert not within(one, close, Bound(2e-6)).all()


def test_nan_and_infinity_are_equal_to_themselves_only():
    odd = torch.tensor([float("nan"), float("inf"), 1.0])
    finite = torch.tensor([0.0, 1e30, 1.0])

    assert within(odd, odd, Bound(0.0)).all()
    assert within(odd, finite, Bound(0.5)).tolist() == [False, False, True]


@pytest.mark.skipif(EXACT, reason="the reference backend's values are equal")
def test_a_value_as_close_to_the_one_in_double_as_eagers_is_rounding():
    value = [Trace([(0, "observed", torch.tensor([v]))]) for v in (1.0, 1.01, 1.03)]
    exact = Trace([(0, "observed", torch.tensor([1.005], dtype=torch.float64))])
    other_way = Trace([(0, "observed elsewhere", exact.events[0][2])])

    assert compare(value[0], value[1], "1", in_double=lambda: exact) is None
    assert compare(value[0], value[2], "1", in_double=lambda: exact) is not None
    assert compare(value[0], value[1], "1", in_double=lambda: other_way) is not None


def test_the_double_version_draws_the_same_numbers():
    lines = [
        "v1 = torch.randn((3,), generator=G(1), dtype=torch.float).to(torch.float32)",
        "v2 = v1.to(torch.bfloat16)",
        "v3 = v1.view(torch.float32)",
        "v1.normal_(0, 2)",
    ]

    double = in_double(_program(*lines).steps)

    assert [step.code for step in double] == [
        "v1 = torch.randn((3,), generator=G(1), dtype=torch.float).to(torch.float64)",
        "v2 = v1.to(torch.float64)",
        "v3 = v1.view(torch.float32)",
    ]
