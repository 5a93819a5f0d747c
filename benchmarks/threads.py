"""What a request takes where several threads compute with a model at the same time.

Threads of a server answer requests, each with a small perceptron: with one model that all share,
or with a model of its own each. Every request ends with a number that its thread reads. Lazy and
eager take turns in one process; each operator runs on one core.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable
from statistics import median
from time import perf_counter

import torch
from torch import nn

import torch_lazy

WIDTH = 256
ROWS = 32  # of a request
LAYERS = 4
DEFINITIONS = """\
us a request: the time of all requests, in microseconds, by their number, over all threads. "to
eager" is the median over {rounds} rounds of lazy's by eager's in the same round; under 1 is faster.
"""


def perceptron(device: str) -> nn.Module:
    """A model that computes the same whenever it is made."""
    torch.manual_seed(0)
    layers = (nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.GELU())
    return nn.Sequential(*[layer for _ in range(LAYERS) for layer in layers]).to(device).eval()


def server(device: str, threads: int, shared: bool) -> Callable[[int], float]:
    """A function that answers so many requests on each thread; returns seconds."""
    models = [perceptron(device)] * threads
    if not shared:
        models = [perceptron(device) for _ in range(threads)]
    inputs = [torch.randn(ROWS, WIDTH).to(device) for _ in range(threads)]

    def serve(thread: int, requests: int) -> None:
        with torch.no_grad():
            for _ in range(requests):
                models[thread](inputs[thread]).sum().item()

    def serve_all(requests: int) -> float:
        workers = [threading.Thread(target=serve, args=(i, requests)) for i in range(threads)]
        begin = perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return perf_counter() - begin

    return serve_all


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=300, help="of a thread in a round")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(DEFINITIONS.format(rounds=arguments.rounds))
    print(f"{'threads':>7} {'model':>10} {'eager us':>9} {'lazy us':>9} {'to eager':>9}")
    for threads in arguments.threads:
        for shared in (True, False):
            eager, lazy = (server(device, threads, shared) for device in ("cpu", "lazy"))
            for _ in range(2):  # until windows are hot, and what is chosen by time is chosen
                lazy(arguments.requests)
                torch_lazy.wait_for_compiles()
            rounds = [
                (eager(arguments.requests), lazy(arguments.requests))
                for _ in range(arguments.rounds)
            ]
            unit = 1e6 / arguments.requests / threads
            medians = [unit * median(times) for times in zip(*rounds, strict=True)]
            ratio = median(b / a for a, b in rounds)
            name = "shared" if shared else "one each"
            print(f"{threads:7} {name:>10} {medians[0]:9.0f} {medians[1]:9.0f} {ratio:9.2f}")


if __name__ == "__main__":
    main()
