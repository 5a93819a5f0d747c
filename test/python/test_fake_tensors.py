"""Tracers and compilers see lazy tensors as tensors of a device like any other."""

from __future__ import annotations

import pytest
import torch
from behaviour import same
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx


def make_net(device: str) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).to(device)


def test_the_device_without_an_index_is_the_current_one(device):
    with FakeTensorMode() as mode:
        made = torch.empty(6, 2, device=device.split(":")[0])
        product = mode.from_tensor(torch.ones(4, 6, device=device)) @ made

    assert product.device == torch.ones(1, device=device).device


def test_a_fake_tensor_has_the_metadata_of_a_lazy_one(device):
    tensor = torch.ones(4, 6, device=device)[:, ::2].t()

    fake = FakeTensorMode().from_tensor(tensor)

    assert (fake.shape, fake.stride(), fake.device) == (
        tensor.shape,
        tensor.stride(),
        tensor.device,
    )
    assert (fake @ fake.t()).shape == (3, 3)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_make_fx_traces_functions_of_lazy_tensors(device, mode):
    tensor = torch.arange(3.0).to(device)

    graph = make_fx(lambda x: x.sin() + x.t(), tracing_mode=mode)(tensor)

    same(graph(tensor).cpu(), tensor.cpu().sin() + tensor.cpu())


def test_a_module_on_the_device_is_exported(device):
    net, batch = make_net(device), torch.ones(2, 3, device=device)

    exported = torch.export.export(net, (batch,))

    torch.testing.assert_close(exported.module()(batch), net(batch))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile_traces_a_module_and_its_gradients(device, backend):
    torch._dynamo.reset()
    net, twin, batch = make_net(device), make_net("cpu"), torch.ones(2, 3, device=device)

    compiled = torch.compile(net, backend=backend, fullgraph=True)
    compiled(batch).sum().backward()
    twin(batch.cpu()).sum().backward()

    for found, expected in zip(net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(found.grad.cpu(), expected.grad)
