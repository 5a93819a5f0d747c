"""The steps of a training script from its first on, while its windows are learnt and compiled.

    python benchmarks/first_steps.py --device lazy --steps 40 --rounds 5

Every round starts a process for the CPU and one for the device, in turns, so that each begins with
nothing compiled, unless TORCH_LAZY_CACHE_BYTES in the environment lets kernels be kept. Step i of
the device is compared with step i of the CPU, both medians over the rounds; the greatest ratio is
what a user would feel while kernels compile.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


def digits_cnn(device: str) -> Callable[[], float]:
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(),
        nn.Linear(32 * 14 * 14, 10),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x, y = torch.randn(32, 1, 28, 28).to(device), torch.randint(10, (32,)).to(device)

    def step() -> float:
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def transformer(device: str) -> Callable[[], float]:
    width, words = 128, 500
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
    net = nn.Sequential(
        nn.Embedding(words, width), nn.TransformerEncoder(layer, 4), nn.Linear(width, words)
    ).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    x = torch.randint(words, (4, 64)).to(device)

    def step() -> float:
        loss = F.cross_entropy(net(x).flatten(0, 1), x.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


SCRIPTS = {"digits_cnn": digits_cnn, "transformer": transformer}


def run(script: str, device: str, steps: int, threads: int) -> dict[str, Any]:
    """Seconds of every step, and the operations that were deferred by the end of each."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    step = SCRIPTS[script](device)
    lazy = torch.lazy if device.startswith("lazy") else None
    seconds, deferred = [], []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
        deferred.append(lazy.metrics()["deferred"] if lazy else 0)
    return {"seconds": seconds, "deferred": deferred}


def run_in_a_process(script: str, device: str, steps: int, threads: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--script", script, "--device", device]
    command += ["--steps", str(steps), "--threads", str(threads), "--one-run"]
    environment = {"TORCH_LAZY_CACHE_BYTES": "0", **os.environ}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nexited with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(script: str, device: str, steps: int, threads: int, rounds: int) -> None:
    runs: dict[str, list[dict[str, Any]]] = {"cpu": [], device: []}
    for round_number in range(rounds):
        order = list(runs) if round_number % 2 == 0 else list(runs)[::-1]
        for where in order:
            runs[where].append(run_in_a_process(script, where, steps, threads))

    def medians(where: str) -> list[float]:
        by_step = zip(*(one["seconds"] for one in runs[where]), strict=True)
        return [statistics.median(times) for times in by_step]

    expected, found = medians("cpu"), medians(device)
    ratios = [a / b for a, b in zip(found, expected, strict=True)]
    # Compiled: from here on every step defers as many operations as the last one does.
    total = runs[device][0]["deferred"]
    deferred = [after - before for before, after in itertools.pairwise(total)]
    last = max((i + 1 for i, count in enumerate(deferred) if count < deferred[-1]), default=1)
    after = ratios[last + 1 :] if deferred[-1] > 0 else []  # none where compiles have not ended
    worst = max(range(1, steps), key=ratios.__getitem__)
    print(
        f"{script:12} {1e3 * expected[0]:9.1f} {ratios[0]:7.2f}"
        f" {1e3 * statistics.median(expected[1:]):9.2f} {max(ratios[1 : last + 1]):9.2f}"
        f" {ratios[worst]:7.2f} {worst + 1:5} {last if after else '-':>8}"
        f" {statistics.median(after) if after else math.nan:7.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--script", choices=SCRIPTS, action="append")
    parser.add_argument("--device", default="lazy")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one-run", action="store_true", help="this process is one of the runs")
    options = parser.parse_args()
    scripts = options.script or list(SCRIPTS)
    if options.one_run:
        print(json.dumps(run(scripts[0], options.device, options.steps, options.threads)))
        return
    print("ms: the CPU's first and median step; ratios: the device's first step, its worst step")
    print("until all is compiled, its worst of all and which, steps until compiled (-: not yet),")
    print("steps after")
    print(f"{'script':12} {'first ms':>9} {'ratio':>7} {'step ms':>9} {'compiling':>9}"
          f" {'worst':>7} {'at':>5} {'compiled':>8} {'after':>7}")  # fmt: skip
    for script in scripts:
        compare(script, options.device, options.steps, options.threads, options.rounds)


if __name__ == "__main__":
    main()
