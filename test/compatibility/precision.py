"""Dtypes and mixed precision."""

from __future__ import annotations

import torch


def _train(device: str, dtype: torch.dtype, scaler: bool):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scale = torch.amp.GradScaler(device, init_scale=8.0, enabled=scaler)
    x = torch.randn(4, 8).to(device)
    losses = []
    for _ in range(3):
        with torch.autocast(device, dtype=dtype):
            loss = model(x).float().square().mean()
        optimizer.zero_grad()
        scale.scale(loss).backward()
        scale.step(optimizer)
        scale.update()
        losses.append(loss.item())
    return losses


def autocast_bfloat16(device: str):
    """`torch.autocast(device, dtype=torch.bfloat16)`"""
    return _train(device, torch.bfloat16, scaler=False)


def autocast_float16(device: str):
    """`torch.autocast(device, dtype=torch.float16)` with `GradScaler`"""
    return _train(device, torch.float16, scaler=True)


def bfloat16_module(device: str):
    """A module in bfloat16 as a whole"""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.SiLU()).to(device, torch.bfloat16)
    return model(torch.ones(2, 8).to(device, torch.bfloat16)).detach().float()


def complex_numbers(device: str):
    """Complex tensors, `torch.fft`, `torch.stft`"""
    torch.manual_seed(0)
    x = torch.randn(64).to(device)
    spectrum = torch.stft(x, 16, window=torch.hann_window(16).to(device), return_complex=True)
    return [torch.fft.irfft(torch.fft.rfft(x)), spectrum.abs()]


def float8(device: str):
    """Conversions to and from float8"""
    x = torch.linspace(-3, 3, 7).to(device)
    return x.to(torch.float8_e4m3fn).to(torch.float32)


def small_integers(device: str):
    """uint16, uint32 and uint64 tensors: making, converting, copying"""
    x = torch.arange(5).to(torch.uint16).to(device)
    return [x.to(torch.int32) * 2, x.to(torch.uint64).cpu().tolist()]


def default_device(device: str):
    """`torch.set_default_device`, `with torch.device(...)` and `torch.set_default_dtype`"""
    with torch.device(device):
        x = torch.ones(3)
    torch.set_default_dtype(torch.float64)
    try:
        y = torch.zeros(2, device=device)
    finally:
        torch.set_default_dtype(torch.float32)
    return [x.device.type == device, str(y.dtype)]


def seeds(device: str):
    """`torch.manual_seed`, `torch.Generator(device)`, `fork_rng`; the CPU's numbers"""
    torch.manual_seed(3)
    x = torch.randn(3, device=device)
    generator = torch.Generator(device).manual_seed(4)
    y = torch.rand(3, generator=generator, device=device)
    with torch.random.fork_rng():
        torch.rand(5, device=device)
    return [x, y, torch.randperm(5, device=device), torch.bernoulli(x.abs().clamp(max=1))]


def distributions(device: str):
    """`torch.distributions`: sampling, log probabilities, KL"""
    torch.manual_seed(0)
    mean = torch.zeros(3).to(device).requires_grad_()
    normal = torch.distributions.Normal(mean, 1.0)
    sample = normal.rsample((4,))
    other = torch.distributions.Normal(torch.ones(3).to(device), 2.0)
    divergence = torch.distributions.kl_divergence(normal, other)
    chosen = torch.distributions.Categorical(logits=sample.detach()).sample()
    return [sample.detach(), normal.log_prob(sample).detach(), divergence.detach(), chosen]
