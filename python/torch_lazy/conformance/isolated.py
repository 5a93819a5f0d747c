"""Runs many independent checks in a child process that may die: a crash or a hang costs one check,
not the run."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_MARK = "@@"  # starts each line of the protocol, so that output of libraries does not disturb it


@dataclass(frozen=True)
class Outcome:
    """What came of one item: the worker's result, or how the worker died."""

    item: str
    result: Any
    died: str | None = None


def serve(work: Callable[[str], Any]) -> None:
    """The worker: calls `work` on each line that it is given, and prints what it returns."""
    for line in sys.stdin:
        item = line.strip()
        result = work(item)
        print(f"{_MARK}{json.dumps(result)}", flush=True)


class _Child:
    """The worker process and a thread that reads its lines, so that waiting can time out."""

    def __init__(self, command: Sequence[str]):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            if line.startswith(_MARK):
                self.lines.put(line[len(_MARK) :])
        self.lines.put("")  # the end

    def ask(self, item: str, timeout: float) -> tuple[Any, str | None]:
        """The result for an item, or the reason there is none; after a reason the child is gone."""
        try:
            self.process.stdin.write(item + "\n")
            self.process.stdin.flush()
            line = self.lines.get(timeout=timeout)
        except BrokenPipeError:
            line = ""
        except queue.Empty:
            self.process.kill()
            self.process.wait()
            return None, f"no answer within {timeout:.0f} s"
        if line:
            return json.loads(line), None
        code = self.process.wait()
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return None, f"the process died: {how}"

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def run_isolated(
    command: Sequence[str],
    items: Sequence[str],
    report: Callable[[Outcome], None],
    timeout: float,
    jobs: int = 1,
) -> None:
    """Gives every item to a child that runs `command`, which ends in :func:`serve` (`jobs` of
    them), and calls `report` here, one call at a time, with each outcome."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for item in items:
        waiting.put(item)
    reporting = threading.Lock()

    def drive() -> None:
        """Keeps one child busy until nothing waits; replaces it when it died."""
        child: _Child | None = None
        while True:
            try:
                item = waiting.get_nowait()
            except queue.Empty:
                break
            child = child or _Child(command)
            result, died = child.ask(item, timeout)
            if died:
                child = None
            with reporting:
                report(Outcome(item, result, died))
        if child is not None:
            child.close()

    drivers = [threading.Thread(target=drive) for _ in range(jobs)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
