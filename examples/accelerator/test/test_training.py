"""Training on the device takes the CPU's course."""

from __future__ import annotations

import pytest
import torch
import torch_accelerator
from torch import nn
from torch.utils.checkpoint import checkpoint


class _Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, num_layers=2, batch_first=True)
        self.gru = nn.GRU(16, 16, bias=False, bidirectional=True)
        self.head = nn.Linear(32, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(self.lstm(images.squeeze(1))[0])[0][:, -1])


class _Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.embed = nn.Linear(8, 16)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(16, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embed(images.squeeze(1))).mean(1))


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def _convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(128, 10),
    )


def _train(make, device: str) -> tuple[list[float], list[torch.Tensor]]:
    """The losses, and the parameters and buffers in the end."""
    torch.manual_seed(0)
    images, labels = torch.randn(64, 1, 8, 8).to(device), torch.randint(10, (64,)).to(device)
    model = make().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for batch in range(12):
        rows = slice(batch % 4 * 16, batch % 4 * 16 + 16)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [value.cpu() for value in model.state_dict().values()]


def _assert_training_agrees(make) -> None:
    losses, state = _train(make, "accel")

    expected_losses, expected_state = _train(make, "cpu")
    assert losses[-1] < losses[0]
    torch.testing.assert_close(losses, expected_losses, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(state, expected_state, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("make", [_perceptron, _convolutional, _Recurrent, _Transformer])
def test_training_agrees_with_the_cpu(make):
    _assert_training_agrees(make)


@pytest.mark.parametrize("make", [_convolutional, _Transformer])
def test_delays_change_no_result(make):
    torch_accelerator.inject(longest_delay=40, seed=2)

    _assert_training_agrees(make)


def test_a_checkpointed_block_draws_the_same_numbers_again():
    block = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).to("accel")
    values = torch.randn(4, 8, device="accel", requires_grad=True)

    torch.manual_seed(1)
    block(values).sum().backward()
    expected = values.grad.clone()
    values.grad = None
    torch.manual_seed(1)
    checkpoint(block, values, use_reentrant=False).sum().backward()

    assert torch.equal(values.grad.cpu(), expected.cpu())


def test_a_second_derivative_agrees_with_the_cpu():
    def curvature(device: str) -> torch.Tensor:
        torch.manual_seed(0)
        values = torch.randn(5, dtype=torch.float64).to(device).requires_grad_()
        (slope,) = torch.autograd.grad(values.sin().pow(3).sum(), values, create_graph=True)
        (result,) = torch.autograd.grad(slope.sum(), values)
        return result.cpu()

    torch.testing.assert_close(curvature("accel"), curvature("cpu"))
