"""Equal bits of equal runs under deterministic algorithms, in a process and between processes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from functools import partial

import torch

from torch_lazy.conformance.as_on_the_cpu import finish
from torch_lazy.conformance.program_runner import REPETITIONS
from torch_lazy.conformance.section import Options, by_name, require, section_of_checks
from torch_lazy.conformance.small_training import TASKS, train

_RUNS = 6


def hot_windows_repeat_their_bits(options: Options) -> None:
    """Sums, products and gathers with repeated rows, on equal inputs."""
    torch.use_deterministic_algorithms(True)
    x, w = torch.randn(64, 257).to("lazy"), torch.randn(257, 33).to("lazy")
    at = torch.randint(0, 64, (100,)).to("lazy")

    def step() -> list[torch.Tensor]:
        y = (x @ w).tanh()
        gathered = y.index_select(0, at)
        return [y, y.sum(), y.softmax(0), torch.zeros_like(y).index_add_(0, at, gathered)]

    runs = []
    for _ in range(REPETITIONS + _RUNS):
        runs.append([t.cpu() for t in step()])
        finish()
    hot = runs[REPETITIONS:]
    for run, results in enumerate(hot[1:], 2):
        for i, (again, once) in enumerate(zip(results, hot[0], strict=True)):
            same = torch.equal(again, once)
            require(same, f"result {i} of hot run {run} has other bits than that of run 1")


def digest(task: str) -> str:
    """Of the losses and weights of a training run."""
    torch.use_deterministic_algorithms(True)
    trained = train(TASKS[task], TASKS[task].weights(), "lazy", lambda step: finish())
    told = hashlib.sha256(repr(trained.losses).encode())
    for weights in trained.weights:
        told.update(bytes(weights.contiguous().view(torch.uint8).flatten().tolist()))
    return told.hexdigest()


def _processes_agree(task: str, options: Options) -> None:
    script = f"from {__name__} import digest; print(digest({task!r}))"
    ends = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False
        )
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        require(done.returncode == 0, f"training in a process of its own: {lines[-1]}")
        ends.append(done.stdout.split()[-1])
    require(ends[0] == ends[1], "two processes that train alike end with other bits")


SECTION = section_of_checks(
    "reproducibility",
    "equal bits of equal runs under deterministic algorithms",
    {
        **by_name(hot_windows_repeat_their_bits),
        **{
            f"processes-that-train-{task}": partial(_processes_agree, task)
            for task in ("layers-with-adam", "attention-with-adam")
        },
    },
    seconds=120.0,
)
