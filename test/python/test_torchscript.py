"""Modules that TorchScript's tracer records on the device, and files of frozen ones."""

from __future__ import annotations

import pytest
import torch
from behaviour import same, same_on
from torch import nn

CONVOLUTIONS = {
    "conv1d": (lambda: nn.Conv1d(3, 2, 3, padding=1, padding_mode="circular"), (2, 3, 8)),
    "conv2d": (lambda: nn.Conv2d(3, 2, 3, padding="same"), (2, 3, 6, 6)),
    "conv_transpose2d": (lambda: nn.ConvTranspose2d(3, 2, 3), (2, 3, 6, 6)),
}


@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_a_convolution_is_recorded_as_on_the_cpu(device, kind):
    make, sizes = CONVOLUTIONS[kind]

    def operators(where: str) -> list[str]:
        traced = torch.jit.trace(make().to(where), torch.ones(sizes).to(where))
        return [node.kind() for node in traced.inlined_graph.nodes()]

    assert operators(device) == operators("cpu")


def test_a_traced_convolution_trains(device):
    def losses(where: str) -> torch.Tensor:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3)).to(where)
        x = torch.linspace(0, 1, 2 * 3 * 36).view(2, 3, 6, 6).to(where)
        traced = torch.jit.trace(net, x)
        optimizer = torch.optim.SGD(traced.parameters(), lr=0.1)
        losses = []
        for _ in range(3):
            loss = traced(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses)

    same_on(device, losses)


class Branching(nn.Module):
    """Has parameters in its branches, a constant that is no parameter, and a part of its own."""

    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.ones(4))
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        if bool(x.sum() > 0):
            return self.linear(x) + self.shift
        return self.linear(x) - self.shift


class Holding(nn.Module):
    """Has tensors that are neither parameters nor buffers."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.ones(4))
        self.factor = torch.arange(4.0)
        self.shifts = [torch.ones(4), torch.arange(4.0)]

    def forward(self, x):
        return x * self.factor + self.bias + self.shifts[0] - self.shifts[1]


def test_attributes_of_a_file_go_to_the_device(device, tmp_path):
    torch.jit.save(torch.jit.script(Holding()), tmp_path / "net.pt")
    x = torch.full((2, 4), 3.0)

    loaded = torch.jit.load(tmp_path / "net.pt", map_location=device)

    torch.testing.assert_close(loaded(x.to(device)).cpu(), Holding()(x))
    assert loaded.bias.is_leaf
    assert loaded.bias.requires_grad


@pytest.mark.parametrize("where", ["cpu", "device"])
def test_the_constants_of_a_frozen_file_go_to_the_device(device, tmp_path, where):
    net = Branching().to(device if where == "device" else "cpu").eval()
    torch.jit.save(torch.jit.freeze(torch.jit.script(net)), tmp_path / "net.pt")
    net.to(device)

    loaded = torch.jit.load(tmp_path / "net.pt", map_location=device)

    for sign in (1, -1):
        x = torch.full((2, 4), float(sign)).to(device)
        same(loaded(x), net(x).detach())


def test_the_constants_of_a_trace_go_to_the_device(device, tmp_path):
    shift = torch.arange(3.0)
    path = str(tmp_path / "shifted.pt")
    torch.jit.save(torch.jit.trace(lambda x: x + shift, torch.ones(3)), path)

    loaded = torch.jit.load(path, map_location=device)

    same(loaded(torch.ones(3).to(device)), torch.arange(1.0, 4.0).to(device))
