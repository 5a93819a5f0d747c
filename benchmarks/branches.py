"""Scripts whose steps take other paths or sizes each time, eager and on a device in turns.

    python benchmarks/branches.py --device lazy
    python benchmarks/branches.py --only tree,mixture --steps 2000

Both devices take the same paths from the same seeds, so their losses have to agree. The ratio is
the median over the second half of the rounds, when what can be compiled has been.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from torch_lazy.conformance.program import synchronize

Step = Callable[[], torch.Tensor]


def trained(parameters: Any, loss_of: Callable[[], torch.Tensor]) -> Step:
    optimizer = torch.optim.Adam(parameters, lr=1e-3)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def scheduled_sampling(device: str) -> Step:
    """A decoder that is given either the right token or its own, by a coin."""
    net = nn.ModuleList([nn.Embedding(43, 29), nn.GRUCell(29, 29), nn.Linear(29, 43)]).to(device)
    embed, cell, head = net

    def loss() -> torch.Tensor:
        target = torch.randint(1, 43, (6, 12)).to(device)
        state, token = torch.zeros(6, 29, device=device), torch.zeros_like(target[:, 0])
        total = state.new_zeros(())
        for t in range(12):
            state = cell(embed(token), state)
            logits = head(state)
            total = total + F.cross_entropy(logits, target[:, t])
            token = target[:, t] if random.random() < 0.5 else logits.argmax(-1)
        return total

    return trained(net.parameters(), loss)


def layer_drop(device: str) -> Step:
    """A transformer of twelve layers, one in five of which is left out."""
    layers = nn.ModuleList(
        nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True) for _ in range(12)
    ).to(device)

    def loss() -> torch.Tensor:
        x = torch.randn(4, 16, 32).to(device)
        for layer in layers:
            if random.random() < 0.8:
                x = layer(x)
        return x.square().mean()

    return trained(layers.parameters(), loss)


def rarely(device: str) -> Step:
    """Twenty rounds of small operations, one in thirty of which does something more."""
    weights, bias = torch.randn(24, 24).to(device) / 5, torch.randn(24).to(device)

    def step() -> torch.Tensor:
        x = torch.zeros(8, 24, device=device)
        for _ in range(20):
            x = torch.tanh(x @ weights + bias)
            gate = torch.sigmoid(x * 2 - 1)
            x = x * gate + (1 - gate) * x.roll(1, 1)
            if random.random() < 1 / 30:
                x = x - x.mean(0, keepdim=True)
        return x.square().mean()

    return step


def mixture(device: str) -> Step:
    """A mixture of experts, each of which is given those rows that chose it."""
    experts = nn.ModuleList(
        nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 24)) for _ in range(6)
    )
    net = nn.ModuleDict({"experts": experts, "gate": nn.Linear(24, 6)}).to(device)

    def loss() -> torch.Tensor:
        x = torch.randn(40, 24).to(device)
        weights, chosen = net["gate"](x).softmax(-1).topk(2, -1)
        result = torch.zeros_like(x)
        for number, expert in enumerate(experts):
            rows, place = (chosen == number).nonzero(as_tuple=True)
            if len(rows) > 0:
                result.index_add_(0, rows, expert(x[rows]) * weights[rows, place].unsqueeze(1))
        return (result - x).square().mean()

    return trained(net.parameters(), loss)


def tree(device: str) -> Step:
    """A recursive net over random binary trees of ten leaves."""
    net = nn.ModuleDict(
        {"leaf": nn.Embedding(30, 20), "node": nn.Linear(40, 20), "head": nn.Linear(20, 2)}
    ).to(device)

    def encode(leaves: int) -> torch.Tensor:
        if leaves == 1:
            return net["leaf"](torch.tensor([random.randrange(30)]).to(device))
        left = random.randint(1, leaves - 1)
        both = torch.cat([encode(left), encode(leaves - left)], 1)
        return torch.tanh(net["node"](both))

    def loss() -> torch.Tensor:
        return F.cross_entropy(net["head"](encode(10)), torch.tensor([0]).to(device))

    return trained(net.parameters(), loss)


def lengths(device: str) -> Step:
    """A recurrent net over sequences of 3 to 30 elements."""
    net = nn.ModuleList([nn.LSTMCell(12, 24), nn.Linear(24, 5)]).to(device)
    cell, head = net

    def loss() -> torch.Tensor:
        sequence = torch.randn(random.randint(3, 30), 8, 12).to(device)
        state = (torch.zeros(8, 24, device=device),) * 2
        for element in sequence:
            state = cell(element, state)
        return head(state[0]).square().mean()

    return trained(net.parameters(), loss)


def growing_cache(device: str) -> Step:
    """A decoder of four layers that is given a token, and attends to all that came before it."""
    layers = nn.ModuleList(
        nn.ModuleDict(
            {
                "norm": nn.LayerNorm(32),
                "attend": nn.Linear(32, 96),
                "out": nn.Linear(32, 32),
                "up": nn.Linear(32, 64),
                "down": nn.Linear(64, 32),
            }
        )
        for _ in range(4)
    ).to(device)
    embed, head = nn.Embedding(50, 32).to(device), nn.Linear(32, 50).to(device)
    caches: list[tuple[torch.Tensor, torch.Tensor]] = []
    token = torch.tensor([3]).to(device)

    def attention(layer: nn.ModuleDict, number: int, x: torch.Tensor) -> torch.Tensor:
        parts = layer["attend"](layer["norm"](x)).chunk(3, -1)
        query, key, value = (part.view(1, 1, 4, 8).transpose(1, 2) for part in parts)
        if number < len(caches):
            key = torch.cat([caches[number][0], key], 2)
            value = torch.cat([caches[number][1], value], 2)
        caches[number : number + 1] = [(key, value)]
        result = F.scaled_dot_product_attention(query, key, value)
        return layer["out"](result.transpose(1, 2).reshape(1, 1, 32))

    @torch.no_grad()
    def step() -> torch.Tensor:
        nonlocal token
        x = embed(token)[None]
        for number, layer in enumerate(layers):
            x = x + attention(layer, number, x)
            x = x + layer["down"](F.gelu(layer["up"](x)))
        token = head(x)[0, 0].argmax(-1, keepdim=True)
        return token

    return step


def augmented(device: str) -> Step:
    """Images that are flipped, cropped, noised and mixed by chance, and a small net."""
    net = nn.Sequential(nn.Linear(192, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)

    def loss() -> torch.Tensor:
        x, y = torch.rand(16, 3, 12, 12).to(device), torch.randint(0, 10, (16,)).to(device)
        if random.random() < 0.5:
            x = x.flip(-1)
        if random.random() < 0.3:
            x = x + 0.1 * torch.randn_like(x)
        if random.random() < 0.3:
            x = x.mean(1, keepdim=True).expand(-1, 3, -1, -1)
        top, left = random.randrange(5), random.randrange(5)
        x = x[:, :, top : top + 8, left : left + 8].flatten(1)
        if random.random() < 0.5:
            share = random.random()
            x = share * x + (1 - share) * x[torch.randperm(16).to(device)]
        return F.cross_entropy(net(x), y)

    return trained(net.parameters(), loss)


SCRIPTS: dict[str, Callable[[str], Step]] = {
    script.__name__: script
    for script in [
        scheduled_sampling,
        layer_drop,
        rarely,
        mixture,
        tree,
        lengths,
        growing_cache,
        augmented,
    ]
}
STEPS_IN_A_ROUND = 8


def compare(name: str, device: str, steps: int) -> dict[str, float]:
    """Ratios of one script, and what became of its windows on the device in the second half."""

    def seed(number: int) -> None:
        torch.manual_seed(number)
        random.seed(number)

    scripts = {}
    for where in ("cpu", device):
        seed(0)
        scripts[where] = SCRIPTS[name](where)
    ratios: list[float] = []
    rounds = max(2, steps // STEPS_IN_A_ROUND)
    for number in range(rounds):
        taken, losses = {}, {}
        for where, step in scripts.items():
            seed(number)
            start = time.perf_counter()
            losses[where] = sum(float(step()) for _ in range(STEPS_IN_A_ROUND))
            synchronize(where)
            taken[where] = time.perf_counter() - start
        # Training drifts apart by rounding.
        torch.testing.assert_close(losses[device], losses["cpu"], rtol=5e-2, atol=1e-3)
        ratios.append(taken[device] / taken["cpu"])
        if device == "lazy":
            torch.lazy.wait_for_compiles()
            if number == rounds // 2:
                torch.lazy.reset_metrics()
    result = {"ratio": statistics.median(ratios[rounds // 2 :])}
    if device == "lazy":
        metrics = torch.lazy.metrics()
        steps_counted = STEPS_IN_A_ROUND * (rounds - rounds // 2 - 1)
        result["deferred"] = metrics["deferred"] / max(1, metrics["recorded"])
        result["windows"] = sum(metrics["windows"].values()) / max(1, steps_counted)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="lazy")
    parser.add_argument("--only", default=",".join(SCRIPTS), help="scripts, with commas")
    parser.add_argument("--steps", type=int, default=640)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", help="file for the figures")
    argv = parser.parse_args()
    torch.set_num_threads(argv.threads)
    warnings.simplefilter("ignore")
    print("time to eager's; share of operations deferred and windows a step, in the second half")
    figures = {}
    for name in argv.only.split(","):
        figures[name] = compare(name, argv.device, argv.steps)
        print(f"{name:20}" + "".join(f"{value:8.2f}" for value in figures[name].values()))
    if argv.json:
        with open(argv.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
