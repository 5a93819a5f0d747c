"""Floats of 8 bits: kernels read and write them, with the bits of eager."""

from __future__ import annotations

import pytest
import torch
from behaviour import hot

import torch_lazy

FORMATS = [torch.float8_e4m3fn, torch.float8_e5m2]
SOURCES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.cpu().view(torch.uint8)


def values(dtype: torch.dtype) -> torch.Tensor:
    """Of all sizes that the formats have and beyond, with what is no number."""
    torch.manual_seed(0)
    spread = torch.randn(5000, dtype=torch.float64) * torch.exp2(torch.randint(-20, 18, (5000,)))
    special = torch.tensor([0.0, -0.0, 448, 464, 465, 480, 57344, 61440, 1e30, float("nan")])
    return torch.cat([spread, special, -special, torch.tensor([float("inf")])]).to(dtype)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("source", SOURCES)
def test_rounding_in_hot_windows_has_the_bits_of_eager(device, source, format) -> None:
    x = values(source)

    made = hot(lambda x: (x * 2).to(format), x.to(device))

    assert torch.equal(bits(made), bits((x * 2).to(format)))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("target", [*SOURCES, torch.int32])
def test_what_is_read_has_the_values_of_eager(device, format, target) -> None:
    x = torch.arange(256, dtype=torch.uint8).view(format)
    if not target.is_floating_point:
        x = x[x.float().isfinite()]

    made = hot(lambda x: x.to(target) * 2, x.to(device))

    expected = x.to(target) * 2
    assert made.dtype == expected.dtype
    torch.testing.assert_close(made.cpu(), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("format", FORMATS)
def test_data_moves_unchanged(device, format) -> None:
    def move(x):
        joined = torch.cat([x[7:], x, x[:7]]).reshape(2, 256).t().contiguous()
        picked = torch.where(joined[:, :1].float() > 0, joined, joined[0])
        picked[3:5] = 1.5
        return picked, joined.clone(), torch.zeros_like(x)

    x = torch.arange(256, dtype=torch.uint8).view(format)

    for made, expected in zip(hot(move, x.to(device)), move(x), strict=True):
        assert made.stride() == expected.stride()
        assert torch.equal(bits(made), bits(expected))


def test_a_format_without_a_zero_takes_the_value_that_it_has_for_false(device) -> None:
    def there_and_back(x):
        return (x > 5).to(torch.float8_e8m0fnu).float()

    x = torch.arange(16.0)

    assert torch.equal(hot(there_and_back, x.to(device)).cpu(), there_and_back(x))


@pytest.mark.kernels
def test_a_scaled_quantization_and_its_inverse_are_kernels_alone(device) -> None:
    def quantized(x):
        scale = x.abs().amax(dim=1, keepdim=True) / 448
        return (x / scale).clamp(-448, 448).to(torch.float8_e4m3fn), scale

    def error(x):
        q, scale = quantized(x)
        return (q.to(torch.float32) * scale - x).abs().mean()

    x = torch.randn(64, 200)
    lazy = x.to(device)
    hot(error, lazy)
    with torch_lazy.profile() as profile:
        made = error(lazy)
        torch.testing.assert_close(made.cpu(), error(x))

    assert not [step for step in profile.summary.steps if step.name.startswith("aten::")]
