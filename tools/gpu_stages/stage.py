"""What the stages of tools/gpu_check share: where things are, and commands with a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# What tools/gpu_pack gathers, to be carried to a machine without a network.
PACK = ROOT / "build" / "gpu_pack"
OUTPUT_KEPT = 4000  # characters of a failing command's end


@dataclass(frozen=True)
class Context:
    """What every stage is told."""

    device: str  # on which lazy tensors live: "cuda", or "cpu" to try the stages themselves
    small: bool  # shrunken sizes, whose figures mean nothing
    results: Path  # where each stage's part is written
    site: Path  # the folder that holds the package torch_lazy
    jobs: int
    deadline: float  # of time.monotonic()

    @property
    def backend(self) -> str:
        """Who compiles windows: on the CPU `reference` where kernels have no compiler there."""
        compiler = self.site / "torch_lazy" / "libtorch_lazy_compiler.so"
        return self.device if self.device != "cpu" or compiler.exists() else "reference"

    def environment(self) -> dict[str, str]:
        """Of the processes that use the device."""
        path = [str(self.site), str(PACK / "python"), os.environ.get("PYTHONPATH", "")]
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(part for part in path if part),
            "PYTHONUNBUFFERED": "1",
            "TORCH_LAZY_BACKEND": self.backend,
            # No kernel is kept: first steps are to be those of a fresh machine.
            "TORCH_LAZY_CACHE_BYTES": "0",
        }


class StageFailed(Exception):
    """A stage that did not do what it is for. `facts` are what it found out even so."""

    def __init__(self, reason: str, output: str = "", facts: dict[str, Any] | None = None):
        super().__init__(reason)
        self.output = output[-OUTPUT_KEPT:]
        self.facts = facts or {}


class DoesNotApply(Exception):
    """A stage that has nothing to do on this machine."""


@dataclass
class Done:
    """A command that has ended, by itself or because its time was over."""

    status: int | None  # none: its time was over
    output: str  # standard output and error together
    seconds: float

    @property
    def succeeded(self) -> bool:
        return self.status == 0

    @property
    def reason(self) -> str:
        """How it ended, as a sentence's end."""
        if self.status is None:
            return f"did not end within {self.seconds:.0f} s"
        if self.status < 0:
            return f"died by {signal.Signals(-self.status).name}"
        return f"ended with status {self.status}"


@dataclass
class Command:
    """A command under way, in a process group of its own, so that all of it can be ended."""

    arguments: list[str]
    seconds: float
    environment: dict[str, str] | None = None
    log: Path | None = None  # where its output is kept; None: nowhere
    _process: subprocess.Popen = field(init=False, repr=False)
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            self.arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self.environment,
            cwd=ROOT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def wait(self) -> Done:
        status: int | None = None
        try:
            left = self.seconds - (time.monotonic() - self._started)
            output, _ = self._process.communicate(timeout=max(0.1, left))
            status = self._process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            output, _ = self._process.communicate()
        if self.log:
            self.log.write_text(output)
        return Done(status, output, time.monotonic() - self._started)


def run(context: Context, arguments: list[str], seconds: float, **more: str) -> Done:
    """Runs a Python script on the device, for so long at most, and not beyond the deadline."""
    left = min(seconds, context.deadline - time.monotonic())
    return Command([sys.executable, *arguments], left, {**context.environment(), **more}).wait()
