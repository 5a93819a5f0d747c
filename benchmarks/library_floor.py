"""What no fusing of kernels can take away: the library calls of a step.

    python benchmarks/library_floor.py --threads 1 --rounds 9

Matrix products, convolutions and attention stay calls of PyTorch's own kernels. A step is timed
on the CPU, on the device and as the CPU's calls alone, in turns in one process. The calls are
taken from a step of the CPU with their arguments; the bias of a linear layer, which is not the
product's, is left out, and products go to memory that is there already. So their time is the
least that a step can take as long as these calls stay what they are.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

Step = Callable[[], None]

aten = torch.ops.aten
LIBRARY = {
    aten.mm, aten.addmm, aten.bmm, aten.convolution, aten.convolution_backward,
    aten._scaled_dot_product_flash_attention_for_cpu,
    aten._scaled_dot_product_flash_attention_for_cpu_backward,
}  # fmt: skip


class LlamaBlock(nn.Module):
    """RMSNorm, attention with rotary positions, SwiGLU."""

    def __init__(self, width: int, heads: int, hidden: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width, False), nn.Linear(width, width, False)
        self.gate, self.up = nn.Linear(width, hidden, False), nn.Linear(width, hidden, False)
        self.down = nn.Linear(hidden, width, False)
        half = width // heads // 2
        angles = torch.arange(length)[:, None] / 10000 ** (torch.arange(half) / half)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat((a * self.cos - b * self.sin, a * self.sin + b * self.cos), -1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        split = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, -1)
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind()
        a = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(batch, length, width))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def llama_block() -> tuple[nn.Module, torch.Tensor]:
    return LlamaBlock(256, 8, 688, 128), torch.randn(8, 128, 256)


def mlp() -> tuple[nn.Module, torch.Tensor]:
    layers = (nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    return nn.Sequential(*layers), torch.randn(64, 784)


def convolutions() -> tuple[nn.Module, torch.Tensor]:
    def block(channels: int, out: int, stride: int) -> list[nn.Module]:
        convolution = nn.Conv2d(channels, out, 3, stride, padding=1, bias=False)
        return [convolution, nn.BatchNorm2d(out), nn.ReLU()]

    layers = block(3, 64, 1) + block(64, 64, 1) + block(64, 128, 2) + block(128, 128, 1)
    return nn.Sequential(*layers), torch.randn(8, 3, 32, 32)


MODELS = {"llama_block": llama_block, "mlp": mlp, "convolutions": convolutions}


def step_of(name: str, train: bool, device: str) -> Step:
    torch.manual_seed(0)
    model, x = MODELS[name]()
    model, x = model.to(device).train(train), x.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step() -> None:
        with contextlib.nullcontext() if train else torch.no_grad():
            loss = model(x).square().mean()
        if train:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        if device != "cpu":
            torch.lazy.synchronize()

    return step


class LibraryCalls(TorchDispatchMode):
    """Collects the library calls that are made under it, as functions that make them again."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Step] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.overloadpacket in LIBRARY:
            self.calls.append(self.again(func.overloadpacket, args, kwargs, result))
        return result

    @staticmethod
    def again(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Step:
        if operator is aten.addmm:
            operator, args = aten.mm, args[1:]
        if operator in (aten.mm, aten.bmm):
            out = torch.empty_like(result)
            return lambda: operator.out(*args, out=out)
        return lambda: operator(*args, **kwargs)


def calls_of(step: Step) -> Step:
    with LibraryCalls() as collected:
        step()

    def run() -> None:
        with torch.no_grad():
            for call in collected.calls:
                call()

    return run


def seconds(step: Step, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        step()
    return (time.perf_counter() - start) / repeats


def compare(name: str, train: bool, rounds: int) -> None:
    eager, lazy = step_of(name, train, "cpu"), step_of(name, train, "lazy")
    floor = calls_of(eager)
    for _ in range(20):
        lazy()
    torch.lazy.wait_for_compiles()
    steps = {"eager": eager, "lazy": lazy, "floor": floor}
    for step in steps.values():
        seconds(step, 5)
    repeats = max(1, int(0.1 / seconds(eager, 3)))
    times: dict[str, list[float]] = {which: [] for which in steps}
    for _ in range(rounds):
        for which, step in steps.items():
            times[which].append(seconds(step, repeats))

    def ratio(which: str) -> float:
        return statistics.median(a / b for a, b in zip(times[which], times["eager"], strict=True))

    lazy_ratio, floor_ratio = ratio("lazy"), ratio("floor")
    print(
        f"{name:12} {'training' if train else 'inference':10}"
        f" {1e3 * statistics.median(times['eager']):9.3f} {lazy_ratio:6.2f} {floor_ratio:6.2f}"
        f" {(1 - lazy_ratio) / (1 - floor_ratio):8.0%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("eager's step in ms; the lazy step and the library calls alone as ratios to it; how much")
    print("of what eager spends outside these calls the lazy step saves")
    print(f"{'model':12} {'':10} {'eager ms':>9} {'lazy':>6} {'floor':>6} {'saved':>8}")
    for name in options.model or MODELS:
        for train in (True, False):
            compare(name, train, options.rounds)


if __name__ == "__main__":
    main()
