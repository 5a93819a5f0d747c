"""What compute-sanitizer finds in the kernels of the samples."""

from __future__ import annotations

import re
import shutil
import sys
import time
from typing import Any

from gpu_stages.stage import Command, Context, DoesNotApply, StageFailed

SECONDS = 100
# Accesses out of bounds or unaligned, races on shared memory, wrong barriers. Not initcheck: it
# cannot see what libraries write.
_TOOLS = ("memcheck", "racecheck", "synccheck")
_ERRORS_SHOWN = 5
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")
_ERROR_STATUS = 86  # of a run in which the tool found something


def check(context: Context) -> dict[str, Any]:
    if context.device != "cuda":
        raise DoesNotApply(f"there are no CUDA kernels on device {context.device!r}")
    program = shutil.which("compute-sanitizer")
    if program is None:
        raise StageFailed("compute-sanitizer is not in PATH: it comes with the CUDA toolkit")
    environment = {
        **context.environment(),
        # Each tensor is an allocation that the tool knows.
        "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
    }
    left = min(SECONDS, context.deadline - time.monotonic())
    # Side by side: none of them is timed.
    running = {
        tool: Command(
            [program, "--tool", tool, "--error-exitcode", str(_ERROR_STATUS)]
            + ["--print-limit", str(_ERRORS_SHOWN)]
            + [sys.executable, "tools/gpu_stages/sample.py"],
            left,
            environment,
        )
        for tool in _TOOLS
    }
    facts, failures, outputs = {}, [], []
    for tool, command in running.items():
        done = command.wait()
        counted = _SUMMARY.search(done.output)
        facts[tool] = {
            "errors": int(counted[1]) if counted else None,
            "seconds": done.seconds,
            "samples": len(re.findall(r"^.+: passed$", done.output, re.MULTILINE)),
        }
        if not done.succeeded or not counted:
            failures.append(f"{tool} {done.reason}")
            outputs.append(f"--- {tool}\n{_telling(done.output)}")
    if failures:
        raise StageFailed("; ".join(failures), "\n".join(outputs), facts)
    return facts


def _telling(output: str) -> str:
    """The first lines of the tool's own, or the end where it said nothing."""
    lines = [line for line in output.splitlines() if line.startswith("=========")]
    return "\n".join(lines[:25]) if len(lines) > 3 else output[-1000:]
