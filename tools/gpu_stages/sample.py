"""One small window of each class of kernels on device lazy, hot, against eager on the same device.

    python tools/gpu_stages/sample.py [--json FILE]

Small enough for compute-sanitizer, with sizes that fill no block and no vector.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F

RUNS = 12  # of a window: it is hot from the third on, and then launched as graphs too
ROWS, COLUMNS = 37, 131


def _adam(device: str) -> Callable[[], list[torch.Tensor]]:
    parameters = [torch.nn.Parameter(_tensor(device, 7 * n + 1)) for n in range(1, 6)]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer = torch.optim.Adam(parameters, lr=1e-3, foreach=True)

    def run() -> list[torch.Tensor]:
        optimizer.step()
        return [parameter.detach().clone() for parameter in parameters]

    return run


def _tensor(device: str, *sizes: int) -> torch.Tensor:
    return torch.randn(*(sizes or (ROWS, COLUMNS))).to(device)


def _trained(device: str) -> Callable[[], list[torch.Tensor]]:
    """A step of a small network, with dropout left out: its draws differ between devices."""
    net = torch.nn.Sequential(
        torch.nn.Linear(COLUMNS, 64),
        torch.nn.GELU(),
        torch.nn.LayerNorm(64),
        torch.nn.Linear(64, 9),
    ).to(device)
    x, y = _tensor(device), torch.randint(9, (ROWS,)).to(device)

    def run() -> list[torch.Tensor]:
        net.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        return [loss.detach(), *(parameter.grad for parameter in net.parameters())]

    return run


def samples() -> dict[str, Callable[[str], Callable[[], object]]]:
    """What each class runs, for a device; the function that is returned is repeated."""

    def on(*sizes: tuple[int, ...]):
        def decorate(function: Callable[..., object]) -> Callable[[str], Callable[[], object]]:
            def make(device: str) -> Callable[[], object]:
                inputs = [_tensor(device, *size) for size in sizes or ((ROWS, COLUMNS),)]
                return lambda: function(*inputs)

            return make

        return decorate

    whole, row = (ROWS, COLUMNS), (COLUMNS,)

    def in_place(x: torch.Tensor) -> torch.Tensor:
        x.mul_(0.5).add_(1)
        return x.clone()

    def gather(device: str) -> Callable[[], torch.Tensor]:
        table, index = _tensor(device), torch.randint(ROWS, (53,)).to(device)
        return lambda: table[index] * 2

    def dropout(x: torch.Tensor) -> list[torch.Tensor]:
        """What is true of all draws; the draws themselves are not eager's."""
        kept = F.dropout(x + 1, 0.5)
        dropped = kept == 0
        return [(dropped | (kept == 2 * (x + 1))).all(), (dropped.float().mean() - 0.5).abs() < 0.1]

    def scatter(device: str) -> Callable[[], torch.Tensor]:
        values, index = _tensor(device, 53, COLUMNS), torch.randint(ROWS, (53,)).to(device)
        return lambda: torch.zeros(ROWS, COLUMNS, device=device).index_add(0, index, values)

    return {
        "pointwise": on(whole, whole)(lambda x, y: F.gelu(x + y) * torch.exp(-x * x)),
        "pointwise, bf16": on(whole, whole)(
            lambda x, y: (F.gelu(x.bfloat16() + y.bfloat16()) * 2).float()
        ),
        "broadcast": on(whole, row)(lambda x, y: (x * y + 1).relu()),
        "transpose": on(whole)(lambda x: (x * 2).t().contiguous() + 1),
        "softmax": on(whole)(lambda x: torch.softmax(x, -1)),
        "layer norm": on(whole, whole, row, row)(
            lambda x, r, w, b: F.layer_norm(x + r, (COLUMNS,), w, b)
        ),
        "row sum": on(whole)(lambda x: (x * x).sum(1)),
        "column sum": on(whole)(lambda x: (x * x).sum(0)),
        "whole sum": on((4099,))(lambda x: (x * x).sum()),
        "argmax": on(whole)(lambda x: (x + 1).argmax(-1)),
        "cat": on(whole, whole)(lambda x, y: torch.cat([x * 2, y + 1], 1)),
        "product with an epilogue": on(whole, (COLUMNS, 29), (29,))(
            lambda x, w, b: F.gelu(x @ w + b)
        ),
        "write in place": on(whole)(in_place),
        "gather": gather,
        "scatter": scatter,
        "dropout": on(whole)(dropout),
        "Adam": _adam,
        "training step": _trained,
    }


def difference(name: str, make: Callable[[str], Callable[[], object]], eager: str) -> str | None:
    """Runs the sample on both devices, as often; says what is wrong, if anything is."""

    def results(device: str) -> list[object]:
        torch.manual_seed(0)
        run = make(device)
        found = []
        for _ in range(RUNS):
            found.append(torch.utils._pytree.tree_map(torch.clone, run()))
            if device == "lazy":
                torch.lazy.synchronize()
                torch.lazy.wait_for_compiles()
        return torch.utils._pytree.tree_map(lambda x: x.cpu(), found)

    torch.lazy.reset_metrics()
    try:
        ours = results("lazy")
        # The oracle is the eager kernel of the very device: rounding is the only excuse.
        torch.testing.assert_close(ours, results(eager), rtol=1e-4, atol=1e-4)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    counted = torch.lazy.metrics()
    if counted["fallbacks"].get("window not compiled"):
        return "its window was not compiled, and ran operation by operation"
    if not counted["windows_run"]:
        return f"its window never ran compiled: {counted['windows']}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="where the verdicts are written too")
    parser.add_argument("--only", help="samples whose name contains this")
    chosen = parser.parse_args()

    torch.lazy.config.early_operations = 1  # or windows as short as these would not begin early
    eager = str(torch.lazy.execution_device())
    verdicts = {}
    for name, make in samples().items():
        if chosen.only and chosen.only not in name:
            continue
        verdicts[name] = difference(name, make, eager)
        print(f"{name}: {verdicts[name] or 'passed'}", flush=True)
        if chosen.json:  # each time: a later sample may end the process
            chosen.json.write_text(json.dumps(verdicts))
    return 1 if any(verdicts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
