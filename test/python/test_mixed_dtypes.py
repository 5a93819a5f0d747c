"""Operands of several dtypes meet in the result's: where that is a half type, they are rounded to
it before anything is computed in float."""

from __future__ import annotations

import pytest
import torch
from behaviour import hot

HALF, BRAIN = torch.float16, torch.bfloat16


def full(number, dtype, device, dims=1):
    return torch.full((64,) * dims, number, dtype=dtype).to(device)


CASES = {
    "integers": lambda d: full(2048.0, HALF, d) - full(2049, torch.int64, d),
    "a float without dimensions": lambda d: (
        full(2048.0, HALF, d) - full(2049.0, torch.float32, d, dims=0)
    ),
    "in place": lambda d: full(256.0, BRAIN, d).sub_(full(257, torch.int64, d)),
    "remainder": lambda d: full(2048.0, HALF, d) % full(2049, torch.int64, d),
    "power": lambda d: full(2049.0, torch.float32, d, dims=0) ** full(1.0, HALF, d),
    "maximum": lambda d: torch.maximum(full(2.0, HALF, d), full(2049, torch.int64, d)),
    "clamp": lambda d: full(2.0, HALF, d).clamp(min=full(2049, torch.int64, d)),
    "addcmul": lambda d: torch.addcmul(
        full(1.0, BRAIN, d), full(1.0, BRAIN, d), full(257, torch.int64, d)
    ),
    "a loss": lambda d: torch.nn.functional.mse_loss(
        full(2048.0, HALF, d), full(2049, torch.int64, d), reduction="none"
    ),
    "quotient": lambda d: full(2048.0, HALF, d) / full(70001, torch.int64, d),
    "power by a number": lambda d: full(-1.5, HALF, d) ** 2049,
    "logit by a number": lambda d: full(1.0, HALF, d).logit(1e-7),
    # ATen takes the second one of a product or quotient as it is where it is one element, and
    # weights that are numbers.
    "product with an integer": lambda d: full(3.0, HALF, d) * torch.full((1,), 2049).to(d),
    "quotient by an integer": lambda d: full(3.0, HALF, d) / torch.full((1,), 70001).to(d),
    "truncated quotient by one element": lambda d: torch.div(
        torch.arange(1, 65).half().to(d), full(0.3, HALF, d)[:1], rounding_mode="trunc"
    ),
    "interpolation": lambda d: torch.lerp(full(1.0, BRAIN, d), full(0.0, BRAIN, d), 0.999),
    "product with a float without dimensions": lambda d: (
        full(3.0, HALF, d) * full(2049.0, torch.float32, d, dims=0)
    ),
    "product of a float without dimensions": lambda d: (
        full(2049.0, torch.float32, d, dims=0) * full(3.0, HALF, d)
    ),
    "quotient by a float without dimensions": lambda d: (
        full(3.0, HALF, d) / full(2049.0, torch.float32, d, dims=0)
    ),
}


@pytest.mark.on_cpu("CUDA's kernels keep what has no dimensions")
@pytest.mark.parametrize("act", CASES.values(), ids=CASES)
def test_operands_are_rounded_to_the_half_type_of_the_result(act):
    assert hot(lambda: act("lazy")).cpu().equal(act("cpu"))


@pytest.mark.parametrize("dtype", [HALF, BRAIN])
def test_a_quotient_that_is_truncated_is_rounded_before(device, dtype):
    a = torch.arange(1, 65).to(dtype)
    b = (full(3.0, dtype, "cpu") / 10).to(dtype)

    def divide(a, b):
        return torch.div(a, b, rounding_mode="trunc")

    assert hot(divide, a.to(device), b.to(device)).cpu().equal(divide(a, b))


@pytest.mark.parametrize("loss", ["mse_loss", "smooth_l1_loss"])
def test_the_gradient_of_a_loss_of_several_dtypes_is_computed_in_float(device, loss):
    def gradient(where):
        x = full(2048.0, HALF, where).requires_grad_()
        target = full(2049.0, torch.float32, where)
        getattr(torch.nn.functional, loss)(x, target, reduction="none").sum().backward()
        return x.grad

    assert hot(gradient, device).cpu().equal(gradient("cpu"))
