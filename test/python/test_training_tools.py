"""What training loops do around an optimizer's step: clip, scale, average, schedule."""

from __future__ import annotations

import pytest
import torch
from behaviour import EXECUTION_DEVICE, wait_for_compiles
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, get_total_norm, parametrizations
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

pytestmark = pytest.mark.recording


def make_net(device: str) -> nn.Sequential:
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).to(device)


def inputs(step: int, device: str) -> torch.Tensor:
    return torch.randn(7, 6, generator=torch.Generator().manual_seed(step)).to(device)


def with_gradients(device: str) -> nn.Sequential:
    net = make_net(device)
    (net(inputs(0, device)) * 10).square().sum().backward()
    return net


def gradients(net: nn.Module) -> list[torch.Tensor]:
    return [parameter.grad.cpu() for parameter in net.parameters()]


@pytest.mark.parametrize("foreach", [None, True, False])
@pytest.mark.parametrize("norm", [2.0, 1.0, float("inf")])
def test_gradients_are_clipped_by_their_norm(foreach, norm):
    def clipped(device):
        net = with_gradients(device)
        total = clip_grad_norm_(net.parameters(), 0.5, norm, foreach=foreach)
        return total.cpu(), gradients(net)

    for _ in range(4):
        torch.testing.assert_close(clipped("lazy"), clipped("cpu"))
        wait_for_compiles()


@pytest.mark.parametrize("foreach", [None, True, False])
def test_gradients_are_clipped_by_their_value(foreach):
    def clipped(device):
        net = with_gradients(device)
        clip_grad_value_(net.parameters(), 0.5, foreach=foreach)
        return gradients(net)

    for _ in range(4):
        torch.testing.assert_close(clipped("lazy"), clipped("cpu"))
        wait_for_compiles()


def test_the_total_norm_is_the_cpus():
    def total(device):
        norm = get_total_norm([p.grad for p in with_gradients(device).parameters()], foreach=True)
        return norm.cpu()

    torch.testing.assert_close(total("lazy"), total("cpu"))


def test_a_norm_that_is_not_finite_is_refused():
    net = with_gradients("lazy")
    net[0].weight.grad.fill_(float("inf"))

    with pytest.raises(RuntimeError, match="non-finite"):
        clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)


@pytest.mark.parametrize("multi_avg_fn", [None, get_ema_multi_avg_fn(0.9)], ids=["SWA", "EMA"])
def test_weights_are_averaged(multi_avg_fn):
    def averaged(device):
        net = make_net(device)
        average = AveragedModel(net, multi_avg_fn=multi_avg_fn)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(6):
            optimizer.zero_grad()
            net(inputs(step, device)).square().mean().backward()
            optimizer.step()
            average.update_parameters(net)
            wait_for_compiles()
        return [value.cpu() for value in average.state_dict().values()]

    torch.testing.assert_close(averaged("lazy"), averaged("cpu"))


def test_statistics_of_an_averaged_model_are_made_anew():
    def statistics(device):
        average = AveragedModel(nn.Sequential(nn.BatchNorm1d(6)).to(device))
        update_bn([inputs(step, "cpu") for step in range(4)], average, device=device)
        return average.module[0].running_var.cpu()

    torch.testing.assert_close(statistics("lazy"), statistics("cpu"))


SCHEDULES = {
    "OneCycleLR": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.5, total_steps=8),
    "CyclicLR": lambda o: torch.optim.lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=2),
    "ExponentialLR": lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9),
    "ReduceLROnPlateau": lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=1),
}


@pytest.mark.parametrize("rate", [0.1, torch.tensor(0.1)], ids=["number", "tensor"])
@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES.keys())
def test_a_schedule_changes_the_rate(schedule, rate):
    def train(device):
        net = make_net(device)
        # The rate may be in a tensor of the device where the optimizer can be captured.
        is_tensor = isinstance(rate, torch.Tensor)
        optimizer = torch.optim.Adam(
            net.parameters(),
            lr=rate.clone().to(device) if is_tensor else rate,
            capturable=is_tensor and device == "lazy",
        )
        scheduler = schedule(optimizer)
        rates = []
        for step in range(6):
            optimizer.zero_grad()
            loss = net(inputs(step, device)).square().mean()
            loss.backward()
            optimizer.step()
            is_plateau = isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
            scheduler.step(*[loss.item()] * is_plateau)
            rates.append(float(optimizer.param_groups[0]["lr"]))
            wait_for_compiles()
        return rates, [parameter.detach().cpu() for parameter in net.parameters()]

    torch.testing.assert_close(train("lazy"), train("cpu"), rtol=1e-4, atol=1e-5)


PARAMETRIZATIONS = {
    "weight_norm": parametrizations.weight_norm,
    "spectral_norm": parametrizations.spectral_norm,
    "orthogonal": parametrizations.orthogonal,
}


@pytest.mark.parametrize("parametrize", PARAMETRIZATIONS.values(), ids=PARAMETRIZATIONS.keys())
def test_a_parametrized_layer_trains(parametrize):
    def train(device):
        torch.manual_seed(5)
        layer = parametrize(nn.Linear(6, 6)).to(device)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            layer(inputs(step, device)).square().mean().backward()
            optimizer.step()
            wait_for_compiles()
        return layer.weight.detach().cpu()

    torch.testing.assert_close(train("lazy"), train("cpu"), rtol=1e-4, atol=1e-5)


def scaled_training(scaler: torch.amp.GradScaler, device: str) -> tuple:
    """Six steps, of which the third overflows."""
    net = make_net(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    scales, changed = [], []
    for step in range(6):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = net(inputs(step, device)).square().mean()
        scaler.scale(loss).backward()
        if step == 2:
            net[0].bias.grad.fill_(float("inf"))
        scaler.unscale_(optimizer)
        clip_grad_norm_(net.parameters(), 1.0)
        before = net[0].weight.detach().clone()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        changed.append(not torch.equal(net[0].weight, before))
        wait_for_compiles()
    return scales, changed, [parameter.detach().cpu() for parameter in net.parameters()]


def test_a_scaler_of_gradients_skips_steps_that_overflow():
    def scaler(device):
        return torch.amp.GradScaler(device, init_scale=64.0, growth_interval=2)

    scales, changed, found = scaled_training(scaler("lazy"), "lazy")
    expected_scales, _, expected = scaled_training(scaler("cpu"), "cpu")

    assert scales == expected_scales == [64, 128, 64, 64, 128, 128]
    assert changed == [True, True, False, True, True, True]
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)


def test_torch_lazy_amp_has_the_names_of_cuda():
    scaler = torch.lazy.amp.GradScaler(init_scale=64.0, growth_interval=2)
    x = torch.ones(2, 2, device="lazy")

    with torch.lazy.amp.autocast():
        half = x @ x
    with torch.lazy.amp.autocast(enabled=False):
        single = x @ x

    assert scaled_training(scaler, "lazy")[0] == [64, 128, 64, 64, 128, 128]
    assert half.dtype == torch.get_autocast_dtype(EXECUTION_DEVICE)
    assert single.dtype == torch.float32


def test_a_custom_function_casts_its_inputs():
    class Twice(torch.autograd.Function):
        @staticmethod
        @torch.lazy.amp.custom_fwd(cast_inputs=torch.float32)
        def forward(ctx, x):
            assert not torch.is_autocast_enabled("lazy")
            return x * 2

        @staticmethod
        @torch.lazy.amp.custom_bwd
        def backward(ctx, gradient):
            return gradient * 2

    x = torch.ones(3, dtype=torch.bfloat16, device="lazy", requires_grad=True)

    with torch.lazy.amp.autocast():
        y = Twice.apply(x)
    y.sum().backward()

    assert y.dtype == torch.float32
    assert x.grad.tolist() == [2, 2, 2]
