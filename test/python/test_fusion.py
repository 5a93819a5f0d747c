"""Random programs of what the kernel generator fuses agree with the CPU, and run as compiled."""

import random

import fusion_programs
import pytest
import torch
from behaviour import same_on
from fusion_builder import FusionProgram
from fusion_generator import fusion_program
from fusion_programs import Seen, check_fusion_program, disagreement, script, shrink
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SEEDS = st.integers(0, 2**32 - 1)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=SEEDS)
def test_random_fusion_programs_agree_with_the_cpu(device, seed):
    program = fusion_program(random.Random(seed))

    found = check_fusion_program(program, device)

    assert found is None, f"seed {seed}: {found}\n{script(program, device)}"


def _program(*steps, outputs, tolerance=2e-5):
    names = ["i0", *outputs]
    return FusionProgram(
        ("i0 = torch.randn((3, 4), generator=G(1 + run)).to(device)",),
        steps,
        tuple(outputs),
        dict.fromkeys(names, tolerance),
        dict.fromkeys(names, 0.0),
    )


def _wrong_on_second_call(monkeypatch, right, wrong):
    """Every other run, which is the device's, computes something else."""
    run, count = fusion_programs.run_fusion_program, []

    def altered(program, device, index):
        count.append(index)
        if len(count) % 2 == 0:
            steps = tuple(wrong if s == right else s for s in program.steps)
            program = FusionProgram(
                program.inputs, steps, program.outputs, program.tolerances, program.scales
            )
        return run(program, device, index)

    monkeypatch.setattr(fusion_programs, "run_fusion_program", altered)


@pytest.mark.parametrize(
    ("wrong", "seen"),
    [
        ("v0 = i0 * 2 + 0.1", "12 of 12 elements"),
        ("v0 = i0.double() * 2", "dtype"),
        ("v0 = i0.sum(0)", "shape"),
        ("v0 = (i0.t().contiguous() * 2).t()", "strides"),
        ("v0 = i0 * 2; i0.zero_()", "i0"),
        ("v0 = missing", "NameError"),
    ],
)
def test_the_harness_sees_what_differs(monkeypatch, wrong, seen):
    program = _program("v0 = i0 * 2", outputs=["v0"])
    _wrong_on_second_call(monkeypatch, "v0 = i0 * 2", wrong)

    found = check_fusion_program(program, "cpu")

    assert seen in found


def test_rounding_within_the_tolerance_is_no_difference():
    one = torch.tensor([100.0, 1.0])
    close = one + torch.tensor([0.0, 1e-3])

    assert disagreement(Seen(one, (1,)), Seen(close, (1,)), 2e-5, 0.0) is None
    assert disagreement(Seen(one, (1,)), Seen(close, (1,)), 2e-6, 0.0) is not None
    assert disagreement(Seen(one, (1,)), Seen(close, (1,)), 2e-6, 1e3) is None


def test_nan_and_infinity_are_equal_to_themselves_only():
    odd = Seen(torch.tensor([float("nan"), float("inf"), 1.0]), (1,))
    finite = Seen(torch.tensor([0.0, 1e30, 1.0]), (1,))

    assert disagreement(odd, odd, 0.0, 0.0) is None
    assert "2 of 3" in disagreement(odd, finite, 0.5, 0.0)


def test_selections_of_inputs_and_integers_are_compared_exactly():
    for seed in range(30):
        program = fusion_program(random.Random(seed))
        names = fusion_programs.run_fusion_program(program, "cpu", 0)
        for name, seen in names.items():
            if not seen.value.dtype.is_floating_point:
                assert program.tolerances[name] == 0.0


def test_a_failing_program_is_shrunk_to_what_matters(monkeypatch):
    program = _program(
        "v0 = i0 + 1", "v1 = i0 * 2", "v2 = v1.sin()", "v3 = v0 * v0", outputs=["v3", "v2"]
    )
    _wrong_on_second_call(monkeypatch, "v1 = i0 * 2", "v1 = i0 * 3")
    found = check_fusion_program(program, "cpu")

    small, _ = shrink(program, "cpu", found, seconds=30)

    assert "v1 = i0 * 2" in small.steps
    assert "v3 = v0 * v0" not in small.steps


def test_a_piece_that_two_cats_have_is_in_both(device):
    def program(where):
        x = torch.arange(9.0, device=where).view(3, 3)
        p, q = x.exp(), x.sin()
        a = torch.cat([p, q], 0)
        return torch.cat([a.t(), p], 1)

    same_on(device, program)


def test_halves_that_change_places_meet_in_one_tensor(device):
    def rotated(t, cos, sin):
        a, b = t.chunk(2, -1)
        return t * cos + torch.cat([-b, a], -1) * sin

    def program(where):
        heads = torch.linspace(-1, 1, 96, device=where).view(2, 3, 2, 8).transpose(1, 2)
        angles = torch.linspace(0, 3, 24, device=where).view(3, 8)
        turned = rotated(heads, angles.cos(), angles.sin())
        rows = turned.transpose(1, 2).reshape(2, 3, 16)
        return torch.cat([rows, rows.exp(), heads.transpose(1, 2).reshape(2, 3, 16)], -1)

    same_on(device, program)
