"""Train a character-level GPT on the language reference that ships with Python.

An ordinary PyTorch script: the device string is the only thing that differs between
``--device cpu`` and ``--device lazy``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pydoc_data.topics import topics

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

BATCH = 16
CONTEXT = 64
WIDTH = 128
HEADS = 4
LAYERS = 2


class Block(nn.Module):
    """Pre-norm transformer block: causal self-attention, then a GELU MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = (
            part.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.norm2(x))


class CharGPT(nn.Module):
    """Token and position embeddings, transformer blocks, a linear head over characters."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.token = nn.Embedding(characters, WIDTH)
        self.position = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, characters)

    def forward(self, ids: Tensor) -> Tensor:
        positions = torch.arange(ids.shape[1], device=ids.device)
        x = self.token(ids) + self.position(positions)
        return self.head(self.norm(self.blocks(x)))


def load_data() -> tuple[Tensor, Tensor, int]:
    """Return training ids, held-out ids (the last tenth) and the number of characters."""
    text = "\n".join(topics[name] for name in sorted(topics))
    characters = sorted(set(text))
    index = {character: i for i, character in enumerate(characters)}
    ids = torch.tensor([index[character] for character in text])
    cut = len(ids) * 9 // 10
    return ids[:cut], ids[cut:], len(characters)


def sample(ids: Tensor, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return `count` random stretches of text and, for each character, the one after it."""
    starts = torch.randint(len(ids) - CONTEXT, (count, 1), generator=generator)
    places = starts + torch.arange(CONTEXT)
    return ids[places], ids[places + 1]


def accuracy(model: nn.Module, ids: Tensor, device: str) -> float:
    """Share of characters of held-out text that are predicted right."""
    x, y = sample(ids, 64, torch.Generator().manual_seed(2))
    model.eval()
    with torch.no_grad():
        predicted = model(x.to(device)).argmax(dim=-1)
        return (predicted == y.to(device)).float().mean().item()


def train(
    device: str,
    steps: int,
    progress: bool | None = None,
    on_step: Callable[[int], None] | None = None,
) -> dict:
    """Train for `steps` batches.

    Returns the losses, the held-out accuracy and the seconds that each step took. `progress`
    None shows a bar on a terminal only. `on_step(i)` is called after step i, outside its timing.
    """
    torch.manual_seed(0)
    batches = torch.Generator().manual_seed(1)
    train_ids, test_ids, characters = load_data()
    model = CharGPT(characters).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)

    losses: list[float] = []
    seconds: list[float] = []
    bar = tqdm(range(steps), desc=f"char_gpt on {device}", disable=_disable(progress))
    for step in bar:
        start = time.perf_counter()
        x, y = sample(train_ids, BATCH, batches)
        x, y = x.to(device), y.to(device)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
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
        "accuracy": accuracy(model, test_ids, device),
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
    print(f"loss {result['losses'][-1]:.6f}  held-out accuracy {result['accuracy']:.4f}")


if __name__ == "__main__":
    main()
