"""Windows with views of another dtype than their storage, or with conj or neg bits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import torch_lazy


def _rotary(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Rotary embeddings as products of complex numbers."""
    turned = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * torch.polar(
        torch.ones_like(angles), angles
    )
    return torch.view_as_real(turned).flatten(-2).tanh()


def _bits(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    return (x.view(torch.int32) & 0x7FFFFFFF).view(torch.float32).sqrt()


def _conjugates(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    spectrum = torch.fft.rfft(x + angles.sum())
    return (spectrum * spectrum.conj()).real + spectrum.conj().imag.exp()


@pytest.mark.parametrize("program", [_rotary, _bits, _conjugates])
def test_they_are_compiled_and_agree_with_the_cpu(
    program: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
):
    x, angles = torch.randn(3, 5, 8), torch.randn(5, 4)
    on_lazy = x.to("lazy"), angles.to("lazy")
    torch_lazy.reset_metrics()

    for _ in range(4):
        result = program(*on_lazy).cpu()
        torch_lazy.wait_for_compiles()

    torch.testing.assert_close(result, program(x, angles))
    assert torch_lazy.metrics()["fallbacks"] == {}
    assert torch_lazy.metrics()["windows"]["hot"] == 2


def test_gradients_pass_through_them():
    def gradient(device: str) -> torch.Tensor:
        torch.manual_seed(0)
        x = torch.randn(3, 5, 8).to(device).requires_grad_()
        _rotary(x * 2, torch.ones(5, 4).to(device)).sum().backward()
        return x.grad.cpu()

    torch_lazy.reset_metrics()
    for _ in range(4):
        actual = gradient("lazy")
        torch_lazy.wait_for_compiles()

    torch.testing.assert_close(actual, gradient("cpu"))
    assert torch_lazy.metrics()["fallbacks"] == {}


def test_what_is_written_through_them_is_seen_by_all():
    def program(device: str) -> torch.Tensor:
        x = torch.ones(4, 2).to(device) * 3
        z = torch.view_as_complex(x)
        before = z * 1
        x.add_(1)
        z.mul_(1j)
        return torch.cat([x.flatten(), torch.view_as_real(before).flatten()]).cpu()

    for _ in range(4):
        actual = program("lazy")
        torch_lazy.wait_for_compiles()

    assert torch.equal(actual, program("cpu"))


@pytest.mark.filterwarnings("ignore:.*does not compile a window")
@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.view_as_real(x[::2])[:, 0].resize_(3) * 1,
        lambda x: x[::2].conj().resize_(3) * 1,
        lambda x: torch.as_strided_copy(torch.view_as_real(x)[2:].view(torch.int32), (3,), (1,), 0),
        lambda x: torch.view_as_real(x)[2:].view(torch.int32).as_strided((3,), (1,), 1) + 0,
    ],
    ids=["resize_", "resize_ of a conjugate", "as_strided_copy", "as_strided"],
)
def test_what_looks_beside_their_elements_finds_those_of_the_memory(
    program: Callable[[torch.Tensor], torch.Tensor],
):
    x = torch.randn(8, dtype=torch.complex64)
    on_lazy = x.to("lazy")

    for _ in range(4):
        torch.full((14,), 777.0, device="lazy").sum().item()  # what is freed is found again
        result = program(on_lazy).cpu()
        torch_lazy.wait_for_compiles()

    assert torch.equal(result, program(x))
