"""What one operation costs on the lazy device, from Python, against eager in the same run.

Seven operations on one element, so that time is overhead. Each is timed cold, warm and hot,
interleaved with eager on the CPU; medians over many short blocks, pinned to one core, one
thread, garbage collection off, under no_grad. `--device cpu` times eager against itself: what
differs from 1.00 there is this benchmark's own noise.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import math
import os
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter_ns

DEFINITIONS = """\
A block is {block} operations, each on the result of the one before (view: on one tensor), then
torch.lazy.synchronize().
eager  the same block on cpu tensors
cold   a tape never seen before: {marks} untimed operations in front of each block spell a
       number that never repeats; every operation runs at the call and is taped. Nothing may be
       deferred (config.defer = "never"), as what follows the number soon would be
warm   the same tape again and again, as little deferred
hot    the same tape with its executable ready: every operation is deferred, synchronize() runs
       the window
Times are µs an operation, synchronize() included, and medians of {blocks} blocks; a ratio is the
median over {rounds} rounds of the state's median over eager's in the same round.
"""
STATES = ("cold", "warm", "hot")
MARKS = 16  # untimed operations in front of a cold block
SETTLE = 2  # untimed blocks after each change of state
LIMITS = {"cold": 1.4, "warm": 1.4, "hot": 1.0}  # what --check holds the ratios to
NOISE = 0.02  # how far above its limit a ratio still passes: eager against itself gives 0.99-1.01


# --- The operations --------------------------------------------------------------------------

Block = Callable[[], None]  # runs the operations, without synchronize()


def make_blocks(device: str, size: int) -> dict[str, Block]:
    """For each operation, a function that does it `size` times on `device`.

    Each operation takes the result of the one before, so that none is dead and all of a
    deferred block has to be done.
    """
    import torch
    import torch.nn.functional as F

    def repeat() -> itertools.repeat:
        return itertools.repeat(None, size)

    one, total = torch.ones(1, device=device), torch.zeros(1, device=device)
    matrix = torch.ones(1, 1, device=device)
    weight, bias = torch.ones(1, device=device), torch.zeros(1, device=device)

    def add() -> None:
        y = one
        for _ in repeat():
            y = y + one

    def mul() -> None:
        y = one
        for _ in repeat():
            y = y * one

    def relu() -> None:
        y = one
        for _ in repeat():
            y = torch.relu(y)

    def view() -> None:
        for _ in repeat():
            one.view(1)

    def add_() -> None:
        for _ in repeat():
            total.add_(one)

    def mm() -> None:
        y = matrix
        for _ in repeat():
            y = torch.mm(y, matrix)

    def layer_norm() -> None:
        y = one
        for _ in repeat():
            y = F.layer_norm(y, (1,), weight, bias)

    return {f.__name__: f for f in (add, mul, relu, view, add_, mm, layer_norm)}


def make_marker(device: str) -> Callable[[], None]:
    """A function whose every call does another sequence of two operations.

    The number is spelt in operators, not in an argument: a sequence of operators cannot be made
    one trace by turning a changing number into a run-time argument.
    """
    import torch

    number = itertools.count()
    place = torch.ones(1, device=device)

    def mark() -> None:
        n = next(number)
        if n >> MARKS:
            raise SystemExit(f"more than {1 << MARKS} cold blocks: raise MARKS")
        for bit in range(MARKS):
            if n >> bit & 1:
                place.neg_()
            else:
                place.abs_()

    return mark


# --- The device ------------------------------------------------------------------------------


class Device:
    """The side under test: torch.lazy, or plain CPU, which has no states and no counters."""

    def __init__(self, name: str) -> None:
        import torch

        self._lazy = None
        if name.split(":")[0] == "lazy":
            self._lazy = getattr(torch, "lazy", None)
            if self._lazy is None:
                raise SystemExit("torch.lazy is missing: is torch_lazy installed and loadable?")
            self._lazy.config.bypass = False  # the columns say what is recorded
        self.synchronize = self._lazy.synchronize if self._lazy else lambda: None

    @property
    def is_lazy(self) -> bool:
        return self._lazy is not None

    def defer(self, mode: str) -> None:
        if self._lazy:
            self._lazy.config.defer = mode

    def wait_for_compiles(self) -> None:
        if self._lazy:
            self._lazy.wait_for_compiles()

    def counters(self) -> tuple[int, int, int]:
        """Operations recorded, operations deferred, nanoseconds spent running windows."""
        if not self._lazy:
            return 0, 0, 0
        metrics = self._lazy.metrics()
        return metrics["recorded"], metrics["deferred"], metrics["run_ns"]


def make_hot(block: Block, device: Device) -> None:
    """Repeat `block` until all of its operations are deferred."""
    device.defer("hot")
    for _ in range(10):
        recorded, deferred, _ = device.counters()
        block()
        device.synchronize()
        device.wait_for_compiles()
        now_recorded, now_deferred, _ = device.counters()
        if now_deferred - deferred == now_recorded - recorded:
            return
    raise SystemExit(f"{block.__name__}: still not deferred after 10 repetitions")


# --- Timing ----------------------------------------------------------------------------------


def time_blocks(
    block: Block, count: int, synchronize: Callable[[], None], before: Callable[[], None] | None
) -> list[int]:
    """Nanoseconds of each of `count` blocks; `before` is called before each, untimed."""
    for _ in range(SETTLE):
        if before is not None:
            before()
        block()
        synchronize()
    times = []
    for _ in range(count):
        if before is not None:
            before()
        start = perf_counter_ns()
        block()
        synchronize()
        times.append(perf_counter_ns() - start)
    return times


def split_hot(
    block: Block, count: int, device: Device, record_ns: list[int], run_ns: list[int]
) -> None:
    """Append what each of `count` hot blocks spent outside and inside its window.

    Apart from the blocks that are compared with eager: reading the counters beside a block
    disturbs its caches a little.
    """
    for _ in range(count):
        before = device.counters()[2]
        start = perf_counter_ns()
        block()
        device.synchronize()
        total = perf_counter_ns() - start
        run = device.counters()[2] - before
        run_ns.append(run)
        record_ns.append(total - run)


def measure(
    name: str, eager: Block, ours: Block, device: Device, mark: Callable[[], None], args
) -> dict:
    """Time one operation in every state; returns µs an operation, ratios and shares."""
    make_hot(ours, device)
    block_ns: dict[str, list[int]] = {state: [] for state in ("eager", *STATES)}
    ratios: dict[str, list[float]] = {state: [] for state in STATES}
    deferred = dict.fromkeys(STATES, 0)
    recorded = dict.fromkeys(STATES, 0)
    record_ns: list[int] = []  # of each hot block of split_hot
    run_ns: list[int] = []

    for number in range(args.rounds):
        base = time_blocks(eager, args.blocks, lambda: None, None)
        block_ns["eager"] += base
        # Another order each round: no state always follows the same neighbour.
        for state in (*STATES[number % 3 :], *STATES[: number % 3]):
            device.defer("hot" if state == "hot" else "never")
            device.wait_for_compiles()
            before = device.counters()
            times = time_blocks(
                ours, args.blocks, device.synchronize, mark if state == "cold" else None
            )
            after = device.counters()
            block_ns[state] += times
            ratios[state].append(median(times) / median(base))
            recorded[state] += after[0] - before[0]
            deferred[state] += after[1] - before[1]
            if state == "hot" and device.is_lazy:
                split_hot(ours, args.blocks, device, record_ns, run_ns)
    device.defer("hot")

    us = {state: median(times) / args.block / 1e3 for state, times in block_ns.items()}
    return {
        "operation": name,
        "us": us,
        "ratio": {state: median(values) for state, values in ratios.items()},
        "deferred_share": {s: deferred[s] / recorded[s] if recorded[s] else 0.0 for s in STATES},
        "hot_record_us": median(record_ns) / args.block / 1e3 if record_ns else None,
        "hot_run_us": median(run_ns) / args.block / 1e3 if run_ns else None,
    }


def measure_floor(device: Device, args) -> dict[str, float]:
    """µs of what no device can avoid: a Python call, and a synchronize() of nothing."""
    import torch

    value, tensor = 1.5, torch.ones(1)

    def loop() -> None:
        for _ in itertools.repeat(None, args.block):
            pass

    def call() -> None:
        fabs = math.fabs
        for _ in itertools.repeat(None, args.block):
            fabs(value)

    def method() -> None:
        for _ in itertools.repeat(None, args.block):
            tensor.dim()

    def nothing() -> None:
        pass

    def per_block(block: Block, synchronize: Callable[[], None]) -> float:
        return median(time_blocks(block, args.rounds * args.blocks, synchronize, None)) / 1e3

    clock = per_block(nothing, lambda: None)
    return {
        "loop": (per_block(loop, lambda: None) - clock) / args.block,
        "c_function": (per_block(call, lambda: None) - clock) / args.block,
        "tensor_method": (per_block(method, lambda: None) - clock) / args.block,
        "synchronize": per_block(nothing, device.synchronize) - clock,
    }


# --- Printing --------------------------------------------------------------------------------


def print_results(rows: list[dict], floor: dict[str, float], device: Device, args) -> None:
    print(f"\n{'':<11}|{'µs an operation':^31}|{'ratio to eager':^23}|{'deferred':^20}")
    states = "".join(f"{state:>7} " for state in STATES)
    shares = "".join(f"{state:>6} " for state in STATES)
    print(f"{'operation':<11}|{'eager':>6} {states}|{states[:-1]}|{shares[:-1]}")
    print("-" * 11 + "+" + "-" * 31 + "+" + "-" * 23 + "+" + "-" * 20)
    for row in rows:
        us = "".join(f"{row['us'][state]:>7.3f} " for state in STATES)
        ratio = " ".join(f"{row['ratio'][state]:>7.2f}" for state in STATES)
        share = " ".join(f"{row['deferred_share'][state]:>6.0%}" for state in STATES)
        print(f"{row['operation']:<11}|{row['us']['eager']:>6.3f} {us}|{ratio}|{share}")

    if device.is_lazy:
        print("\nWhere a hot operation's time goes, µs an operation (and its ratio to eager)")
        print(f"{'operation':<11}|{'recording':>17} |{'running the window':>19} |{'total':>17}")
        print("-" * 11 + "+" + "-" * 18 + "+" + "-" * 20 + "+" + "-" * 17)
        for row in rows:
            eager = row["us"]["eager"]
            split = (row["hot_record_us"], row["hot_run_us"], row["us"]["hot"])
            parts = [f"{us:.3f} ({us / eager:.2f})" for us in split]
            print(f"{row['operation']:<11}|{parts[0]:>17} |{parts[1]:>19} |{parts[2]:>17}")
        share = floor["synchronize"] / args.block
        print(
            "Running is run_ns of torch.lazy.metrics(), recording the rest, both of further blocks"
            "\nwith the counters read beside each: they add up to the total only roughly."
            f"\nsynchronize() of nothing takes {floor['synchronize']:.3f} µs,"
            f" {share:.4f} µs an operation of a block."
        )
    print(
        f"\nPython's own floor, µs a call (loop included): empty loop {floor['loop']:.3f},"
        f" math.fabs(x) {floor['c_function']:.3f}, tensor.dim() {floor['tensor_method']:.3f}"
    )


def over_limit(rows: list[dict]) -> list[str]:
    """A line for each ratio above its limit."""
    return [
        f"{row['operation']} {state}: {row['ratio'][state]:.2f} x eager, limit {limit}"
        for row in rows
        for state, limit in LIMITS.items()
        if row["ratio"][state] > limit + NOISE
    ]


def wrong_states(rows: list[dict]) -> list[str]:
    """A line for each figure that is not what its heading says: deferred, or not, in part."""
    return [
        f"{row['operation']} {state}: {share:.1%} of the operations were deferred, not {due:.0%}"
        for row in rows
        for state, due in {"cold": 0.0, "warm": 0.0, "hot": 1.0}.items()
        if (share := row["deferred_share"][state]) != due
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="lazy", help="what to compare with eager on cpu")
    parser.add_argument("--rounds", type=int, default=60, help="rounds of all states")
    parser.add_argument("--blocks", type=int, default=5, help="timed blocks a state and round")
    parser.add_argument("--block", type=int, default=64, help="operations a block")
    parser.add_argument("--only", help="comma-separated operations (default: all)")
    parser.add_argument("--core", type=int, help="core to run on (default: the last allowed)")
    parser.add_argument("--json", help="also write the figures to this file")
    parser.add_argument("--check", action="store_true", help=f"fail above {LIMITS} x eager")
    args = parser.parse_args()

    # Before torch is loaded, so that every thread it starts stays on the core too.
    core = max(os.sched_getaffinity(0)) if args.core is None else args.core
    os.sched_setaffinity(0, {core})
    import torch

    torch.set_num_threads(1)
    device = Device(args.device)
    ours, eager = make_blocks(args.device, args.block), make_blocks("cpu", args.block)
    names = args.only.split(",") if args.only else list(ours)
    if unknown := [name for name in names if name not in ours]:
        parser.error(f"unknown operations {unknown}; known are {list(ours)}")

    print(f"torch {torch.__version__}, device {args.device}, core {core}, one thread\n")
    total = args.rounds * args.blocks
    print(
        DEFINITIONS.format(block=args.block, blocks=total, rounds=args.rounds, marks=MARKS), end=""
    )
    if not device.is_lazy:
        print(f"Device {args.device} has no such states: ratios below are noise around 1.00.")
    mark = make_marker(args.device)
    gc.collect()
    gc.disable()
    with torch.no_grad():
        rows = [measure(n, eager[n], ours[n], device, mark, args) for n in names]
        floor = measure_floor(device, args)
    gc.enable()
    print_results(rows, floor, device, args)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"operations": rows, "floor": floor}, file, indent=1)
    mistaken = wrong_states(rows) if device.is_lazy else []
    failures = mistaken + (over_limit(rows) if args.check else [])
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
