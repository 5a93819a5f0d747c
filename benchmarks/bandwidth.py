"""What fraction of memory's speed generated kernels reach, against copying and against eager.

Programs whose time is memory traffic, on tensors beyond the last-level cache, each as a user
writes it on device lazy. Hot windows, eager on the device where lazy tensors live (the CPU unless
TORCH_LAZY_BACKEND or TORCH_LAZY_DEVICE chooses another) and a plain copy of a tensor there take
turns in one process; times are medians of their rounds.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

DEFINITIONS = """\
MB moved is the least that must be read and written: inputs once, results once; what autograd keeps
of a forward pass for its backward pass is a result of the one and an input of the other (cross
entropy: the logarithms of the probabilities). Values in between count nothing. GB/s is that by the
time of the lazy device, "of copy" its share of what `b.copy_(a)` moves in memory that is there
already, read and written. "to eager" is the median over {rounds} rounds of lazy's time by eager's
in the same round; under 1 is faster. Times include the wait for the device.
"""
LEAST_MIB_ON_THE_CPU = 64
# What a launch and the wait for it take is then little of any kernel's time.
LEAST_MIB_ELSEWHERE = 1024
COLUMNS = 1024  # of the tensors that rows are normalized of
CLASSES = 32768  # of cross entropy: a vocabulary
LEAST_ADAM_PARAMETERS = 10_000_000
FLOAT = 4  # bytes
INDEX = 8


Program = Callable[[], object]  # one run of it; what it returns is freed within the time


@dataclass
class Kernel:
    name: str
    bytes: int
    make: Callable[[str], Program]  # for a device; makes the inputs


# --- The programs ----------------------------------------------------------------------------


def adam(parameter_size: int, foreach: bool) -> Callable[[str], Program]:
    """A step over ten parameters of equal size."""
    import torch

    def make(device: str) -> Program:
        sizes = [parameter_size] * 10
        parameters = [torch.nn.Parameter(torch.randn(size, device=device)) for size in sizes]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        optimizer = torch.optim.Adam(parameters, lr=1e-3, foreach=foreach)
        return optimizer.step

    return make


def kernels(array_bytes: int) -> list[Kernel]:
    """Each on arrays of about `array_bytes`."""
    import torch
    import torch.nn.functional as F

    rows = array_bytes // FLOAT // COLUMNS
    array = rows * COLUMNS * FLOAT

    def tensor(device: str, *sizes: int) -> torch.Tensor:
        return torch.randn(*(sizes or (rows, COLUMNS)), device=device)

    def pointwise(device: str) -> Program:
        x, y, z = (tensor(device) for _ in range(3))
        return lambda: F.gelu(x + y) * z

    def pointwise_bf16(device: str) -> Program:
        x, y, z = (tensor(device).bfloat16() for _ in range(3))
        return lambda: F.gelu(x + y) * z

    def transpose(device: str) -> Program:
        x = tensor(device)
        return lambda: (x.t() * 2).contiguous()

    def gather(device: str) -> Program:
        table, index = tensor(device), torch.randperm(rows).to(device)
        return lambda: table[index] * 2

    def softmax(device: str) -> Program:
        x = tensor(device)
        return lambda: torch.softmax(x, -1)

    def layer_norm(device: str) -> Program:
        x, residual = tensor(device), tensor(device)
        weight, bias = tensor(device, COLUMNS), tensor(device, COLUMNS)

        def run() -> tuple[torch.Tensor, torch.Tensor]:
            total = x + residual
            return total, F.layer_norm(total, (COLUMNS,), weight, bias)

        return run

    tokens = max(1, array_bytes // FLOAT // CLASSES)
    logits_bytes = tokens * CLASSES * FLOAT

    def cross_entropy(device: str) -> Program:
        logits = tensor(device, tokens, CLASSES).requires_grad_()
        targets = torch.randint(CLASSES, (tokens,)).to(device)

        def run() -> None:
            logits.grad = None
            F.cross_entropy(logits, targets).backward()

        return run

    def column_sum(device: str) -> Program:
        x = tensor(device)
        return lambda: x.sum(0)

    # Adam reads parameter, gradient and two moments and writes all but the gradient.
    adam_size = max(LEAST_ADAM_PARAMETERS, array_bytes // FLOAT) // 10
    adam_bytes = 7 * adam_size * 10 * FLOAT
    adam_name = f"Adam, {adam_size * 10 / 1e6:.0f}M parameters"
    return [
        Kernel("gelu(x + y) * z", 4 * array, pointwise),
        Kernel("gelu(x + y) * z, bf16", 2 * array, pointwise_bf16),
        Kernel("softmax", 2 * array, softmax),
        Kernel("layer_norm(x + residual)", 4 * array, layer_norm),
        # The logits are read, their gradient is written; log_softmax, which autograd keeps, is
        # written and read.
        Kernel("cross entropy, forward and backward", 4 * logits_bytes, cross_entropy),
        Kernel(f"{adam_name}, one by one", adam_bytes, adam(adam_size, foreach=False)),
        Kernel(f"{adam_name}, foreach", adam_bytes, adam(adam_size, foreach=True)),
        Kernel("column sum", array, column_sum),
        Kernel("transpose", 2 * array, transpose),
        Kernel("gather of rows", 2 * array + rows * INDEX, gather),
    ]


# --- The machine -----------------------------------------------------------------------------


def last_level_cache(device: str) -> int:
    """Bytes; 0 where the system does not say."""
    import torch

    if device != "cpu":
        properties = torch.get_device_module(device).get_device_properties(0)
        return getattr(properties, "L2_cache_size", 0)
    sizes = {}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        size = re.fullmatch(r"(\d+)([KMG]?)", (index / "size").read_text().strip())
        if size:
            scale = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[size[2]]
            sizes[int((index / "level").read_text())] = int(size[1]) * scale
    return sizes[max(sizes)] if sizes else 0


# --- Timing ----------------------------------------------------------------------------------


def seconds(program: Program, synchronize: Callable[[], None]) -> float:
    start = perf_counter()
    result = program()
    synchronize()
    del result
    return perf_counter() - start


def make_hot(program: Program, name: str) -> None:
    """Repeat until all operations are deferred in two runs that follow one another."""
    import torch

    quiet = 0
    for _ in range(20):
        before = torch.lazy.metrics()
        result = program()  # what is timed keeps it as long
        torch.lazy.synchronize()
        torch.lazy.wait_for_compiles()
        del result
        after = torch.lazy.metrics()
        quiet = quiet + 1 if after["eager"] == before["eager"] else 0
        if quiet == 2:
            return
    raise SystemExit(f"{name}: still not deferred after 20 repetitions")


def wait_for(device: str) -> Callable[[], None]:
    import torch

    return (lambda: None) if device == "cpu" else torch.get_device_module(device).synchronize


def measure(kernel: Kernel, device: str, copy: Program, copy_bytes: int, args) -> dict:
    """`device`: where lazy tensors live, eager runs and memory is copied."""
    import torch

    before = torch.lazy.metrics()["fallbacks"].get("window not compiled", 0)
    lazy, eager = kernel.make("lazy"), kernel.make(device)
    make_hot(lazy, kernel.name)
    wait = wait_for(device)
    seconds(eager, wait)
    seconds(copy, wait)
    times: dict[str, list[float]] = {"lazy": [], "eager": [], "copy": []}
    runs = [
        ("lazy", lazy, torch.lazy.synchronize),
        ("eager", eager, wait),
        ("copy", copy, wait),
    ]
    eager_before = torch.lazy.metrics()["eager"]
    for number in range(args.rounds):
        # Another order each round: none always follows the same neighbour.
        for name, program, synchronize in (*runs[number % 3 :], *runs[: number % 3]):
            times[name].append(seconds(program, synchronize))
    metrics = torch.lazy.metrics()
    bandwidth = kernel.bytes / median(times["lazy"])
    copy_bandwidth = copy_bytes / median(times["copy"])
    return {
        "kernel": kernel.name,
        "threads": torch.get_num_threads(),
        "bytes": kernel.bytes,
        "seconds": median(times["lazy"]),
        "eager_seconds": median(times["eager"]),
        "bandwidth": bandwidth,
        "copy_bandwidth": copy_bandwidth,
        "of_copy": bandwidth / copy_bandwidth,
        "to_eager": median(a / b for a, b in zip(times["lazy"], times["eager"], strict=True)),
        "eager_operations": metrics["eager"] - eager_before,
        "not_compiled": metrics["fallbacks"].get("window not compiled", 0) - before,
    }


# --- Printing --------------------------------------------------------------------------------

HEADINGS = ("kernel", "threads", "MB moved", "ms", "GB/s", "of copy", "to eager")


def print_row(row: dict) -> None:
    cells = (
        row["kernel"],
        str(row["threads"]),
        f"{row['bytes'] / 1e6:.0f}",
        f"{row['seconds'] * 1e3:.2f}",
        f"{row['bandwidth'] / 1e9:.1f}",
        f"{row['of_copy']:.2f}",
        f"{row['to_eager']:.2f}",
    )
    print("| " + " | ".join(cells) + " |", flush=True)


def mistakes(rows: list[dict]) -> list[str]:
    """A line for each row that is not what its heading says."""
    return [
        f"{row['kernel']}: {row['eager_operations']} operations ran at the call, "
        f"{row['not_compiled']} windows were not compiled"
        for row in rows
        if row["eager_operations"] or row["not_compiled"]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--threads", help="comma-separated thread counts (default: 1,2 on the CPU, else one run)"
    )
    parser.add_argument("--mib", type=int, help="size of an array (default: by the cache)")
    parser.add_argument("--rounds", type=int, default=15, help="timed runs of each")
    parser.add_argument("--only", help="run kernels whose name contains this")
    parser.add_argument("--json", help="also write the figures to this file")
    args = parser.parse_args()

    import torch

    if not hasattr(torch, "lazy"):
        raise SystemExit("torch.lazy is missing: is torch_lazy installed and loadable?")
    device = str(torch.lazy.execution_device())
    cache = last_level_cache(device)
    least = LEAST_MIB_ON_THE_CPU if device == "cpu" else LEAST_MIB_ELSEWHERE
    wanted = max(least << 20, cache)
    array_bytes = args.mib << 20 if args.mib else wanted
    print(
        f"torch {torch.__version__}, device {device}, last-level cache {cache >> 20} MiB,"
        f" arrays of {array_bytes >> 20} MiB\n"
    )
    print(DEFINITIONS.format(rounds=args.rounds))
    if array_bytes < wanted:
        print(f"Arrays below {wanted >> 20} MiB: caches may serve part of the traffic.\n")
    chosen = [k for k in kernels(array_bytes) if not args.only or args.only in k.name]
    if not chosen:
        parser.error(f"no kernel's name contains {args.only!r}")

    source = torch.ones(array_bytes // FLOAT, device=device)
    target = torch.zeros(array_bytes // FLOAT, device=device)
    rows = []
    gc.disable()
    print("| " + " | ".join(HEADINGS) + " |\n|" + "---|" * len(HEADINGS))
    counts = args.threads or ("1,2" if device == "cpu" else str(torch.get_num_threads()))
    for threads in (int(count) for count in counts.split(",")):
        torch.set_num_threads(threads)
        for kernel in chosen:
            copied = 2 * array_bytes
            rows.append(measure(kernel, device, lambda: target.copy_(source), copied, args))
            print_row(rows[-1])
            gc.collect()
            torch.lazy.empty_cache()
            if args.json:  # each time: a later kernel may end the process
                Path(args.json).write_text(json.dumps(rows, indent=1))
        copies = median(r["copy_bandwidth"] for r in rows if r["threads"] == threads)
        print(
            f"| copy | {threads} | {2 * array_bytes / 1e6:.0f} |"
            f" {2 * array_bytes / copies * 1e3:.2f} | {copies / 1e9:.1f} | 1.00 | |",
            flush=True,
        )
    gc.enable()
    wrong = mistakes(rows)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
