"""Training loops of a few steps, small enough for a test of every device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

STEPS = 12


class _Attention(nn.Module):
    """A block of a transformer over tokens, and a head that says the next."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        self.norm, self.out = nn.LayerNorm(16), nn.Linear(16, 16)
        # Without bias: the keys' has no gradient but rounding, of which Adam makes whole steps.
        self.mixed = nn.Linear(16, 48, bias=False)
        self.head = nn.Linear(16, 11)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        q, k, v = self.mixed(self.norm(x)).chunk(3, -1)
        weights = (q @ k.transpose(-2, -1) / 4.0).softmax(-1)
        return self.head(x + self.out(weights @ v)).flatten(0, 1)


def _layers() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


def _images() -> nn.Module:
    convolutions = [nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(64, 4))


def _sgd(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def _adam(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.01)


@dataclass(frozen=True)
class Task:
    """A model, the sizes of its input, how many classes there are for how many rows."""

    model: Callable[[], nn.Module]
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
    inputs: tuple[int, ...]
    rows: int
    classes: int = 4
    tokens: bool = False  # the inputs are numbers of classes as well

    def weights(self) -> dict[str, torch.Tensor]:
        """Those to begin with, always the same."""
        torch.manual_seed(0)
        return self.model().state_dict()

    def data(self) -> tuple[torch.Tensor, torch.Tensor]:
        draws = torch.Generator().manual_seed(1)
        if self.tokens:
            x = torch.randint(0, self.classes, self.inputs, generator=draws)
        else:
            x = torch.randn(self.inputs, generator=draws)
        return x, torch.randint(0, self.classes, (self.rows,), generator=draws)


TASKS = {
    "layers-with-sgd": Task(_layers, _sgd, (32, 8), 32),
    "layers-with-adam": Task(_layers, _adam, (32, 8), 32),
    "images-with-sgd": Task(_images, _sgd, (16, 1, 8, 8), 16),
    "attention-with-adam": Task(_Attention, _adam, (4, 6), 24, classes=11, tokens=True),
}


@dataclass(frozen=True)
class Trained:
    losses: list[float]
    weights: list[torch.Tensor]  # on the CPU


def train(
    task: Task,
    weights: dict[str, torch.Tensor],
    device: str,
    after_step: Callable[[int], Any] = lambda step: None,
) -> Trained:
    """Trains from `weights`, and calls `after_step` with the number of steps done."""
    model = task.model()
    model.load_state_dict(weights)
    model.to(device)
    optimizer = task.optimizer(model.parameters())
    x, y = (t.to(device) for t in task.data())
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        after_step(step + 1)
    return Trained(losses, [p.detach().cpu() for p in model.parameters()])


def require_agreement(actual: Trained, expected: Trained) -> None:
    """Within what rounding grows to in so many steps."""
    for what in ("losses", "weights"):
        ours, cpus = getattr(actual, what), getattr(expected, what)
        try:
            torch.testing.assert_close(ours, cpus, rtol=1e-3, atol=1e-4)
        except AssertionError as error:
            reason = " ".join(str(error).split())[:200]
            raise AssertionError(f"{what} are not the CPU's: {reason}") from None
