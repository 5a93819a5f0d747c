"""Train a small convolutional network on scikit-learn's handwritten digits.

An ordinary PyTorch script: the device string is the only thing that differs between
``--device cpu`` and ``--device lazy``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from tqdm import tqdm

BATCH = 64


class DigitsCNN(nn.Module):
    """Two convolution blocks and a linear classifier for 8x8 grey images."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, kernel_size=3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, kernel_size=3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.classifier = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.classifier(x.flatten(1))


def load_data() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return training images, training labels, test images, test labels, on the CPU."""
    digits = load_digits()
    images = digits.images[:, None].astype("float32") / 16.0
    split = train_test_split(
        images, digits.target, test_size=0.25, random_state=0, stratify=digits.target
    )
    train_x, test_x, train_y, test_y = (torch.from_numpy(part) for part in split)
    return train_x, train_y, test_x, test_y


def accuracy(model: nn.Module, x: Tensor, y: Tensor, device: str) -> float:
    """Share of images whose most likely class is their label."""
    model.eval()
    with torch.no_grad():
        predicted = model(x.to(device)).argmax(dim=1)
        return (predicted == y.to(device)).float().mean().item()


def train(
    device: str,
    steps: int,
    progress: bool | None = None,
    on_step: Callable[[int], None] | None = None,
) -> dict:
    """Train for `steps` batches.

    Returns the losses, the test accuracy and the seconds that each step took. `progress` None
    shows a bar on a terminal only. `on_step(i)` is called after step i, outside its timing.
    """
    torch.manual_seed(0)
    batches = torch.Generator().manual_seed(1)
    train_x, train_y, test_x, test_y = load_data()
    model = DigitsCNN().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    losses: list[float] = []
    seconds: list[float] = []
    bar = tqdm(range(steps), desc=f"digits_cnn on {device}", disable=_disable(progress))
    for step in bar:
        start = time.perf_counter()
        pick = torch.randint(len(train_x), (BATCH,), generator=batches)
        x, y = train_x[pick].to(device), train_y[pick].to(device)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
        bar.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
        if on_step is not None:
            on_step(step)

    return {
        "losses": losses,
        "accuracy": accuracy(model, test_x, test_y, device),
        "step_seconds": seconds,
    }


def _disable(progress: bool | None) -> bool | None:
    return None if progress is None else not progress  # tqdm: None disables off a terminal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="lazy", help="cpu or lazy (default: lazy)")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")
    args = parser.parse_args()
    result = train(args.device, args.steps, False if args.no_progress else None)
    print(f"loss {result['losses'][-1]:.6f}  test accuracy {result['accuracy']:.4f}")


if __name__ == "__main__":
    main()
