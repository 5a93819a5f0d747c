"""Runs one of PyTorch's test files on a device, in processes of their own: one that dies or hangs
takes one test with it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

POLL_SECONDS = 0.2
START_UP_SECONDS = 300  # some files make tens of thousands of tests


@dataclass(frozen=True)
class Suite:
    """A file of tests, of which one in `one_in` is run: always the same ones."""

    file: Path
    one_in: int
    by_default_device: bool = False  # the tests that are not device-generic

    @property
    def title(self) -> str:
        return f"{self.file.stem}-default" if self.by_default_device else self.file.stem


def run_suite(suite: Suite, device: str, results: Path, repetitions: int, seconds: float) -> None:
    """Fills the file of results; what it has already is not run again."""
    command = [sys.executable, str(Path(__file__).with_name("worker.py"))]
    command += ["--file", str(suite.file), "--one-in", str(suite.one_in), "--device", device]
    command += ["--results", str(results), "--repetitions", str(repetitions)]
    command += ["--default-device"] * suite.by_default_device
    with results.with_suffix(".log").open("ab") as log:
        while True:
            status = _run(command, results, log, seconds)
            if status == 0:
                return
            last = _last_line(results)
            if last.get("outcome") != "started":
                raise RuntimeError(
                    f"{suite.file} cannot be run on {device}, exit status {status}: see {log.name}"
                )
            outcome = "hung" if status is None else "crashed"
            with results.open("a") as out:
                reason = f"exit status {status}"
                print(json.dumps({**last, "outcome": outcome, "reason": reason}), file=out)


def _run(command: list[str], results: Path, log: IO[bytes], seconds: float) -> int | None:
    """The exit status; None where a test took longer than `seconds` and the process was ended."""
    process = subprocess.Popen(command, stdout=log, stderr=log)
    size, since, limit = _size(results), time.monotonic(), START_UP_SECONDS
    while process.poll() is None:
        time.sleep(POLL_SECONDS)
        if _size(results) != size:
            size, since, limit = _size(results), time.monotonic(), seconds
        elif time.monotonic() - since > limit:
            process.kill()
            process.wait()
            return None
    return process.returncode


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _last_line(results: Path) -> dict[str, str]:
    lines = results.read_text().splitlines() if results.exists() else []
    return json.loads(lines[-1]) if lines else {}
