"""Random numbers that kernels draw: `config.rng = "philox"`, which the other tests switch off."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from behaviour import each_run, torch_lazy
from torch.utils.checkpoint import checkpoint

pytestmark = pytest.mark.recording


@pytest.fixture(autouse=True)
def _philox():
    torch_lazy.config.rng = "philox"
    yield
    torch_lazy.config.rng = "eager"


def dropped(device: str, p: float = 0.5) -> torch.Tensor:
    return F.dropout(torch.ones(64, 33, device=device) * 1, p)


def test_a_seed_draws_the_same_at_the_call_and_in_a_compiled_window(device):
    def draw():
        torch.manual_seed(7)
        return dropped(device).cpu()

    cold, *_, hot = each_run(draw)

    assert torch.equal(cold, hot)
    assert torch_lazy.metrics()["deferred"] > 0


def test_every_run_of_a_window_draws_anew(device):
    draws = each_run(lambda: dropped(device).cpu())

    assert len({tuple(draw.flatten().tolist()) for draw in draws}) == len(draws)


def test_dropout_keeps_the_share_it_is_told_to_and_scales_it(device):
    kept = each_run(lambda: dropped(device, 0.25).cpu())[-1]

    assert kept.unique().tolist() == pytest.approx([0, 1 / 0.75])
    assert (kept > 0).float().mean().item() == pytest.approx(0.75, abs=0.05)


def test_the_gradient_goes_where_dropout_let_the_value_through(device):
    def step():
        x = torch.ones(50, 20, device=device, requires_grad=True)
        y = F.dropout(x, 0.3)
        y.sum().backward()
        return y.detach().cpu(), x.grad.cpu()

    for y, gradient in each_run(step):
        assert torch.equal(y, gradient)


@pytest.mark.parametrize("drop", [F.dropout, F.dropout1d, F.alpha_dropout])
def test_dropout_in_a_function_transform_draws_what_it_draws_outside(device, drop):
    x = torch.ones(4, 64, 33).to(device)
    torch.manual_seed(3)
    expected, outside = torch.autograd.functional.vjp(
        lambda x: drop(x, 0.3, training=True), x, torch.ones_like(x)
    )

    torch.manual_seed(3)
    value, pull_back = torch.func.vjp(lambda x: drop(x, 0.3, training=True), x)

    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(pull_back(torch.ones_like(x))[0], outside)


def test_dropout_stays_in_the_window(device):
    x = torch.rand(8, 8).to(device)
    each_run(lambda: (F.dropout(F.gelu(x), 0.5) + x).sum().item())
    torch_lazy.reset_metrics()

    (F.dropout(F.gelu(x), 0.5) + x).sum().item()

    assert torch_lazy.metrics()["windows"] == {"hot": 1}


@pytest.mark.on_cpu("the default generator of another device is its own")
def test_a_restored_generator_draws_again_what_it_drew(device):
    state = torch.get_rng_state()
    first = dropped(device).cpu()
    torch.set_rng_state(state)

    assert torch.equal(dropped(device).cpu(), first)


def test_a_checkpointed_block_drops_the_same_elements_when_it_is_recomputed(device):
    x = torch.ones(40, 40, device=device, requires_grad=True)

    y = checkpoint(lambda t: F.dropout(t, 0.5), x, use_reentrant=False)
    y.sum().backward()

    assert torch.equal(x.grad.cpu(), y.detach().cpu())


def test_a_generator_of_the_callers_own_is_drawn_from(device):
    def draw():
        own = torch.Generator().manual_seed(3)
        return torch.empty(100, device=device).bernoulli_(0.5, generator=own).cpu()

    before = torch.get_rng_state()
    assert torch.equal(draw(), draw())
    assert torch.equal(torch.get_rng_state(), before)


def test_strided_and_other_dtypes_are_filled(device):
    def draw(dtype):
        torch.manual_seed(1)
        base = torch.full((12, 10), 5, dtype=dtype, device=device)
        base.t()[2:7, ::2].bernoulli_(0.5)
        return base.cpu()

    for dtype in (torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.float64):
        cold, *_, hot = each_run(lambda dtype=dtype: draw(dtype))
        assert torch.equal(cold, hot), dtype


def test_a_probability_out_of_range_raises_as_on_the_cpu(device):
    with pytest.raises(RuntimeError) as on_cpu:
        torch.empty(3).bernoulli_(1.5)
    with pytest.raises(RuntimeError) as on_device:
        torch.empty(3, device=device).bernoulli_(1.5)

    assert str(on_device.value) == str(on_cpu.value)


def test_other_random_operators_draw_the_cpus_numbers(device):
    def draw(where):
        torch.manual_seed(5)
        return torch.rand(4, device=where), torch.randn(4, device=where)

    for on_device, on_cpu in zip(draw(device), draw("cpu"), strict=True):
        assert torch.equal(on_device.cpu(), on_cpu)


def test_an_unknown_source_of_random_numbers_is_refused():
    with pytest.raises(ValueError, match="rng must be 'philox' or 'eager', not 'mersenne'"):
        torch_lazy.config.rng = "mersenne"
