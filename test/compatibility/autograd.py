"""Autograd and transforms of functions."""

from __future__ import annotations

import torch


def double_backward(device: str):
    """`torch.autograd.grad` with `create_graph`: a gradient penalty"""
    x = torch.arange(1.0, 4.0).to(device).requires_grad_()
    (gradient,) = torch.autograd.grad(x.pow(3).sum(), x, create_graph=True)
    gradient.norm().backward()
    return x.grad


def custom_function(device: str):
    """`torch.autograd.Function`"""

    class Clipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(-1, 1)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * (x.abs() <= 1)

    x = torch.linspace(-2, 2, 5).to(device).requires_grad_()
    Clipped.apply(x).sum().backward()
    return x.grad


def checkpointing(device: str):
    """`torch.utils.checkpoint`: what runs again in backward drops what it dropped in forward"""
    model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Tanh()).to(device)
    x = torch.zeros(64).to(device).requires_grad_()
    y = torch.utils.checkpoint.checkpoint(lambda t: model(t + 1), x, use_reentrant=False)
    y.sum().backward()
    dropped = y == 0
    return [bool((x.grad[dropped] == 0).all()), bool((x.grad[~dropped] != 0).all())]


def saved_tensor_hooks(device: str):
    """`saved_tensors_hooks` and `save_on_cpu`"""
    x = torch.arange(1.0, 4.0).to(device).requires_grad_()
    with torch.autograd.graph.save_on_cpu():
        y = x.exp() * x
    y.sum().backward()
    return x.grad


def transforms(device: str):
    """`torch.func`: `vmap`, `grad`, `jacrev`, `functional_call`"""
    x = torch.arange(6.0).view(2, 3).to(device)
    f = lambda row: (row.sin() * row).sum()  # noqa: E731
    per_row = torch.func.vmap(torch.func.grad(f))(x)
    jacobian = torch.func.jacrev(lambda row: row.cumsum(0) * 2)(x[0])
    model = torch.nn.Linear(3, 2).to(device)
    weights = {name: torch.ones_like(p) for name, p in model.named_parameters()}
    return [per_row, jacobian, torch.func.functional_call(model, weights, (x,)).detach()]


def forward_mode(device: str):
    """Forward-mode derivatives: `torch.func.jvp`, `torch.autograd.forward_ad`"""
    x, tangent = torch.arange(3.0).to(device), torch.ones(3).to(device)
    return torch.func.jvp(lambda t: t.sin() * t, (x,), (tangent,))


def anomaly(device: str):
    """`torch.autograd.detect_anomaly` names the operation that made a NaN"""
    x = torch.zeros(2).to(device).requires_grad_()
    try:
        with torch.autograd.detect_anomaly(check_nan=True):
            (x.sqrt() * 0).sum().backward()
    except RuntimeError as error:
        return str(error)
    return "nothing"


def gradients_checked(device: str):
    """`torch.autograd.gradcheck`"""
    x = torch.rand(3, dtype=torch.double).to(device).requires_grad_()
    return torch.autograd.gradcheck(lambda t: t.exp() * t.sin(), (x,))


def hooks(device: str):
    """Hooks on tensors, `retain_grad`, and gradients accumulated over batches"""
    x = torch.ones(3).to(device).requires_grad_()
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda gradient: gradient * 3)
    for _ in range(2):
        (y * y).sum().backward(retain_graph=True)
    return [x.grad, y.grad]


def inference_mode(device: str):
    """`torch.inference_mode` and `torch.no_grad`"""
    x = torch.arange(3.0).to(device).requires_grad_()
    with torch.inference_mode():
        y = x.exp()
    with torch.no_grad():
        x.add_(1)
    return [y.is_inference(), y.cpu().clone(), x.detach()]
