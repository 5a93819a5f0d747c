"""What a script that never repeats itself pays: random programs, each run once, timed on the CPU
and on a device.

    python benchmarks/never_repeats.py --device lazy --programs 300

Every program is different, so nothing the device learns can pay off: the ratio is the price of
recording. The two devices take turns program by program, the one that goes first alternates, and
each round uses new programs.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from torch_lazy.conformance.program import Program, namespace, synchronize
from torch_lazy.conformance.program_generator import generate


def as_function(program: Program, device: str) -> Callable[[], None]:
    """The program as one Python function, whose variables die as a script's do."""
    lines = "\n".join(f"    {step.code}" for step in program.steps)
    names: dict[str, Any] = namespace(device, 0, lambda value: None, lambda: None)
    exec(compile(f"def program():\n{lines}\n", f"<program {program.seed}>", "exec"), names)
    return names["program"]


def timed(function: Callable[[], None], device: str) -> float:
    """Seconds of one run until all its work is done."""
    torch.manual_seed(1234)
    start = time.perf_counter()
    function()
    synchronize(device)
    return time.perf_counter() - start


def compare(
    first_seed: int, programs: int, operations: int, device: str
) -> list[tuple[float, float]]:
    """Seconds on the CPU and on the device for each program; neither has run it before."""
    times = []
    for seed in range(first_seed, first_seed + programs):
        program = generate(seed, "programs", operations, errors=False, branch=False)
        order = ("cpu", device) if seed % 2 else (device, "cpu")
        try:
            first, second = (timed(as_function(program, where), where) for where in order)
        except (RuntimeError, IndexError):  # eager raises too
            continue
        times.append((first, second) if seed % 2 else (second, first))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="lazy")
    parser.add_argument("--programs", type=int, default=200, help="programs a round")
    parser.add_argument("--operations", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    argv = parser.parse_args()
    torch.set_num_threads(argv.threads)
    warnings.simplefilter("ignore")
    gc.disable()
    compare(
        argv.seed - 50, 50, argv.operations, argv.device
    )  # operators' first calls are slow on both sides
    rounds, single = [], []
    for number in range(argv.rounds):
        times = compare(
            argv.seed + number * argv.programs, argv.programs, argv.operations, argv.device
        )
        cpu, device = (
            sum(column) / (argv.programs * argv.operations) * 1e6
            for column in zip(*times, strict=False)
        )
        rounds.append(device / cpu)
        single += [d / c for c, d in times]
        print(
            f"round {number + 1}: cpu {cpu:6.2f} µs an operation, {argv.device} {device:6.2f}, "
            f"ratio {device / cpu:.3f}",
            flush=True,
        )
        gc.collect()
    result = {
        "device": argv.device,
        "ratio of totals, median round": round(statistics.median(rounds), 3),
        "ratio, median program": round(statistics.median(single), 3),
        "ratio, program at 90 %": round(statistics.quantiles(single, n=10)[-1], 3),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
