"""Results that differ because both are rounded: the same computation in double decides."""

from __future__ import annotations

import torch


def as_close_as_eager(actual: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor) -> bool:
    """Whether `actual` is at most twice as far from `exact`, a result in double, as the CPU's
    `expected` is. All have one shape; NaN and the infinities have to be the same in all."""
    if exact.dtype != torch.float64 or exact.shape != expected.shape:
        return False
    if not (actual.dtype == expected.dtype and expected.dtype.is_floating_point):
        return False
    a, e = actual.double(), expected.double()
    finite = e.isfinite()
    if not bool((a.isfinite() == finite).all() and (exact.isfinite() == finite).all()):
        return False
    if not torch.equal(a[~finite].nan_to_num(nan=0.0), e[~finite].nan_to_num(nan=0.0)):
        return False
    if not bool(finite.any()):
        return True
    error, error_of_eager = ((t - exact)[finite].abs().max() for t in (a, e))
    return bool(error <= 2 * error_of_eager)
