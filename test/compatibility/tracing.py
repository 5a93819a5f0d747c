"""Tracers and compilers of PyTorch."""

from __future__ import annotations

import io

import torch


def _model(device: str):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Unflatten(1, (2, 2))]
    return torch.nn.Sequential(*layers, torch.nn.Conv1d(2, 3, 2)).to(device).eval()


def _x(device: str):
    return torch.arange(6.0).view(2, 3).to(device)


def compile_eager(device: str):
    """`torch.compile(backend="eager")`"""
    torch._dynamo.reset()
    return torch.compile(_model(device), backend="eager")(_x(device)).detach()


def compile_aot(device: str):
    """`torch.compile(backend="aot_eager")`, with gradients"""
    torch._dynamo.reset()
    model = _model(device)
    torch.compile(model, backend="aot_eager")(_x(device)).sum().backward()
    return model[0].weight.grad


def compile_inductor(device: str):
    """`torch.compile` with Inductor, the default"""
    torch._dynamo.reset()
    return torch.compile(_model(device))(_x(device)).detach()


def exported(device: str):
    """`torch.export` of a module on the device"""
    program = torch.export.export(_model(device), (_x(device),))
    return program.module()(_x(device)).detach()


def symbolic(device: str):
    """`torch.fx.symbolic_trace` and `make_fx`"""
    from torch.fx.experimental.proxy_tensor import make_fx

    traced = torch.fx.symbolic_trace(_model(device))
    graph = make_fx(lambda x: (x * 2).relu())(_x(device))
    return [traced(_x(device)).detach(), graph(_x(device))]


def scripted(device: str):
    """`torch.jit.script` and `torch.jit.trace`"""
    model = _model(device)
    return [
        torch.jit.script(model)(_x(device)).detach(),
        torch.jit.trace(model, _x(device))(_x(device)).detach(),
    ]


def scripted_file(device: str):
    """A TorchScript file of a module on the device, loaded with `map_location=device`"""
    traced = torch.jit.trace(_model("cpu"), _x("cpu"))
    results = []
    for module in (torch.jit.trace(_model(device), _x(device)), traced, torch.jit.freeze(traced)):
        file = io.BytesIO()
        torch.jit.save(module, file)
        file.seek(0)
        results.append(torch.jit.load(file, map_location=device)(_x(device)).detach())
    return results


def fake_tensors(device: str):
    """`FakeTensorMode` over tensors of the device"""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        fake = mode.from_tensor(_x("cpu").to(device)) @ torch.empty(3, 5, device=device)
    return [list(fake.shape), fake.device.type == device]


def dispatch_modes(device: str):
    """`TorchDispatchMode` and `TorchFunctionMode`"""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Names(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    x = _x(device)
    with Names() as mode:
        (x * 2).relu()
    return mode.names


def custom_operator(device: str):
    """An operator of `torch.library.custom_op`, with its gradient"""
    try:
        operator = torch.ops.compatibility.scaled.default
    except AttributeError:

        @torch.library.custom_op("compatibility::scaled", mutates_args=())
        def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
            return x * factor

        scaled.register_autograd(lambda ctx, gradient: (gradient * 3.0, None))
        operator = torch.ops.compatibility.scaled.default
    x = _x(device).requires_grad_()
    y = operator(x, 3.0)
    y.sum().backward()
    return [y.detach(), x.grad]


def flops(device: str):
    """`torch.utils.flop_counter`"""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        _model(device)(_x(device))
    return counter.get_total_flops()
