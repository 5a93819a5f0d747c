"""What an operator warns of is heard at the line that calls it, once a call, also where the
operation is deferred and where it became part of a kernel."""

from __future__ import annotations

import warnings

import pytest
import torch
from behaviour import RUNS_UNTIL_HOT, synchronize, wait_for_compiles


def assign_by_byte_mask(device: str) -> torch.Tensor:
    x = torch.arange(4.0, device=device)
    mask = torch.tensor([1, 0, 1, 0], dtype=torch.uint8, device=device)
    x[mask] = torch.ones(2, device=device)
    return x * 2


def resize_out(device: str) -> torch.Tensor:
    out = torch.empty(2, device=device)
    torch.add(torch.ones(3, device=device), 1, out=out)
    return out


def variance_of_one(device: str) -> torch.Tensor:
    return (torch.ones(1, device=device) + 1).var(0)


WARNING = [assign_by_byte_mask, resize_out, variance_of_one]


def heard(act, device: str) -> tuple[list, list]:
    """What is heard by the end of the call, and by the end of its window: category, text without
    the line of C++, line of the program."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = act(device)
        at_the_call = len(caught)
        synchronize()
    del result
    told = [(w.category, str(w.message).split("(Triggered")[0], w.lineno) for w in caught]
    return told[:at_the_call], told


@pytest.mark.parametrize("act", WARNING)
def test_a_warning_is_heard_at_the_call_and_once(device, act):
    expected, _ = heard(act, "cpu")
    assert expected

    for _ in range(RUNS_UNTIL_HOT + 1):
        assert heard(act, device) == (expected, expected)
        wait_for_compiles()


def test_a_warning_that_is_an_error_raises_at_the_call(device):
    for _ in range(RUNS_UNTIL_HOT + 1):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="degrees of freedom"):
                variance_of_one(device)
        synchronize()
        wait_for_compiles()


def test_windows_after_a_guard_failure_repeat_no_warning(device):
    def step(branch: bool) -> torch.Tensor:
        y = variance_of_one(device)
        return y - 1 if branch else y + 1

    for _ in range(RUNS_UNTIL_HOT):
        heard(lambda _: step(False), device)
        wait_for_compiles()

    at_the_call, in_all = heard(lambda _: step(True), device)

    assert len(at_the_call) == len(in_all) == 1
