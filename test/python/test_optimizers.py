"""Optimizers on the device train as on the CPU, with every implementation that they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from behaviour import deferred, synchronize, wait_for_compiles
from torch import nn
from torch.optim.optimizer import _default_to_fused_or_foreach
from torch.testing._internal.common_optimizers import optim_db

pytestmark = pytest.mark.recording  # the CPU has no capturable=True

STEPS = 6
IMPLEMENTATIONS = ("foreach", "fused", "capturable")
INFOS = {info.optim_cls.__name__: info for info in optim_db if not info.only_supports_sparse_grads}


def starts() -> list[torch.Tensor]:
    """Matrices: Muon takes nothing else."""
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(shape, generator=generator) for shape in ((4, 3), (2, 5))]


def moved(value: Any, device: str) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    return tuple(moved(v, device) for v in value) if isinstance(value, tuple) else value


def train(make: Callable[..., torch.optim.Optimizer], device: str) -> list[torch.Tensor]:
    """Parameters after some steps; every step is a window of its own, hot from the fourth on."""
    parameters = [nn.Parameter(start.to(device)) for start in starts()]
    optimizer = make(parameters)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = sum(((p - 1) ** 2 * (1 + p.detach().abs())).mean() for p in parameters)
        loss.backward()
        return loss

    for _ in range(STEPS):
        closure()
        optimizer.step(closure if isinstance(optimizer, torch.optim.LBFGS) else None)
        synchronize()
        wait_for_compiles()
    return [parameter.detach().cpu() for parameter in parameters]


def cases(implementation: str) -> list[Any]:
    """One for each optimizer that has it and each of PyTorch's samples of its arguments."""
    found = []
    for name, info in INFOS.items():
        if implementation not in ("for-loop", "default", *info.supported_impls):
            continue
        # Those of CUDA: they have capturable=True and rates in tensors.
        samples = info.optim_inputs_func(device="cuda")
        takes_foreach = "foreach" in info.supported_impls
        for sample in samples[:1] if implementation == "default" else samples:
            arguments = dict(sample.kwargs)
            if implementation in ("foreach", "fused"):
                arguments[implementation] = True
            elif implementation == "for-loop" and takes_foreach:
                arguments["foreach"] = False
            # A rate in a tensor and lists need capturable=True, which fused implies.
            if implementation == "fused" or "fused" not in arguments:
                found.append(pytest.param(name, arguments, id=f"{name}: {sample.desc}"))
    return found


def agrees_with_the_cpu(name: str, arguments: dict[str, Any], device: str) -> None:
    kind = INFOS[name].optim_cls

    on_device = {key: moved(value, device) for key, value in arguments.items()}
    # The CPU knows no graphs that are captured, and one parameter at a time is the definition.
    plain = {key: value for key, value in arguments.items() if key not in IMPLEMENTATIONS}

    expected = train(lambda parameters: kind(parameters, **plain), "cpu")
    actual = train(lambda parameters: kind(parameters, **on_device), device)

    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    assert not any(torch.equal(a, start) for a, start in zip(actual, starts(), strict=True))


@pytest.mark.parametrize(("name", "arguments"), cases("default"))
def test_the_default_trains_as_on_the_cpu(device, name, arguments):
    agrees_with_the_cpu(name, arguments, device)


@pytest.mark.parametrize(("name", "arguments"), cases("for-loop"))
def test_one_parameter_at_a_time_trains_as_on_the_cpu(device, name, arguments):
    agrees_with_the_cpu(name, arguments, device)


@pytest.mark.parametrize(("name", "arguments"), cases("foreach"))
def test_lists_of_parameters_train_as_on_the_cpu(device, name, arguments):
    agrees_with_the_cpu(name, arguments, device)


@pytest.mark.parametrize(("name", "arguments"), cases("fused"))
def test_fused_optimizers_train_as_on_the_cpu(device, name, arguments):
    agrees_with_the_cpu(name, arguments, device)


@pytest.mark.parametrize("implementation", ["foreach", "fused"])
def test_a_step_is_deferred_once_it_is_known(implementation):
    parameters = [nn.Parameter(start.to("lazy")) for start in starts()]
    optimizer = torch.optim.AdamW(parameters, lr=0.1, **{implementation: True})
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    for _ in range(STEPS):
        optimizer.step()
        synchronize()
        wait_for_compiles()

    assert deferred(optimizer.step) > 0


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.Adagrad])
def test_a_differentiable_step_has_the_gradient_of_the_cpu(kind):
    def gradient(device: str) -> torch.Tensor:
        start = starts()[0].to(device).requires_grad_()
        parameter = start.clone()
        parameter.grad = (start * 3).detach().requires_grad_()
        slope = parameter.grad
        kind([parameter], lr=0.1, differentiable=True).step()
        parameter.square().sum().backward()
        return torch.stack([start.grad, slope.grad]).cpu()

    for _ in range(4):
        torch.testing.assert_close(gradient("lazy"), gradient("cpu"), rtol=1e-4, atol=1e-5)
        wait_for_compiles()


@pytest.mark.on_cpu("eager's default is another one on CUDA")
def test_the_default_is_the_cpus():
    def chosen(device: str) -> tuple[bool, bool]:
        parameters = [torch.ones(2, device=device)]
        return _default_to_fused_or_foreach(parameters, differentiable=False)

    assert chosen("lazy") == chosen("cpu") == (False, False)


def test_training_goes_on_from_a_saved_state():
    def optimizer_of(parameter: torch.Tensor) -> torch.optim.Optimizer:
        return torch.optim.AdamW([parameter], lr=0.1, amsgrad=True)

    def steps(parameter: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
        for _ in range(3):
            parameter.grad = parameter.detach() * 2
            optimizer.step()

    whole, first = (nn.Parameter(torch.ones(5, device="lazy")) for _ in range(2))
    optimizer = optimizer_of(whole)
    steps(whole, optimizer)
    steps(whole, optimizer)

    optimizer = optimizer_of(first)
    steps(first, optimizer)
    second = nn.Parameter(first.detach().clone())
    restored = optimizer_of(second)
    restored.load_state_dict(optimizer.state_dict())
    steps(second, restored)

    torch.testing.assert_close(second.cpu(), whole.cpu())
