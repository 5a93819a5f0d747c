"""What counts as rounding where a result differs from the CPU's."""

from __future__ import annotations

import torch

from torch_lazy.conformance.double_reference import as_close_as_eager

EXACT = torch.tensor([1.0, 2.0], dtype=torch.float64)
EAGER = torch.tensor([1.0, 2.5])


def test_results_no_further_than_twice_eagers_error_are_rounding():
    assert as_close_as_eager(torch.tensor([2.0, 2.0]), EAGER, EXACT)
    assert not as_close_as_eager(torch.tensor([1.0, 3.1]), EAGER, EXACT)


def test_nothing_but_the_exact_result_is_as_close_as_an_exact_one():
    eager = EXACT.float()

    assert as_close_as_eager(eager, eager, EXACT)
    assert not as_close_as_eager(eager + 1e-6, eager, EXACT)


def test_nan_and_infinities_stay_where_they_are():
    exact = torch.tensor([float("nan"), float("inf"), 1.0], dtype=torch.float64)
    eager = exact.float() + 0.5

    assert as_close_as_eager(exact.float(), eager, exact)
    assert not as_close_as_eager(torch.tensor([0.0, float("inf"), 1.0]), eager, exact)
    assert not as_close_as_eager(torch.tensor([float("nan"), -float("inf"), 1.0]), eager, exact)
    assert not as_close_as_eager(torch.full((3,), float("nan")), eager, exact)


def test_other_dtypes_and_shapes_are_no_rounding():
    assert not as_close_as_eager(EAGER.double(), EAGER, EXACT)
    assert not as_close_as_eager(EAGER, EAGER, EXACT.float())
    assert not as_close_as_eager(EAGER, EAGER, EXACT[:1])
