"""Modules that TorchScript's tracer records on the device."""

from __future__ import annotations

import pytest
import torch
from behaviour import same_on
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
