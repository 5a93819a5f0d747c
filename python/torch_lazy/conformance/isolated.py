"""Runs many independent checks in a child process that may die: a crash or a hang costs one check,
not the run."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from torch_lazy.conformance.fork_server import Worker

_READY = "ready"
_START_SECONDS = 180.0  # for a worker to import what it needs
_MARK = "@@"  # starts each line of the protocol, so that output of libraries does not disturb it


@dataclass(frozen=True)
class Outcome:
    """What came of one item: the worker's result, or how the worker died."""

    item: str
    result: Any
    died: str | None = None
    errors: str = ""  # the end of what a worker that died had printed on standard error


def show_where_it_hangs() -> None:
    """In a worker: its Python stacks are printed before it is ended for its time."""
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1)


def serve(work: Callable[[str], Any]) -> None:
    """The worker: calls `work` on each line that it is given, and prints what it returns."""
    _tell(_READY)
    for line in sys.stdin:
        item = line.strip()
        _tell(json.dumps(work(item)))


def _tell(text: str) -> None:
    print(f"\n{_MARK}{text}", flush=True)  # on a line of its own, whatever a library has printed


_LAST_ERRORS, _WIDTH = 20, 200  # lines, and characters of each

# Starts a process that calls `serve`, its standard error in the file.
Start = Callable[[IO[str] | None], "subprocess.Popen[str] | Worker"]


def fresh(command: Sequence[str]) -> Start:
    """Starts the command."""
    return lambda errors: subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
    )


class _Child:
    """The worker process and a thread that reads its lines, so that waiting can time out."""

    def __init__(self, start: Start, quiet: bool):
        self.errors: IO[str] | None = None
        if quiet:
            self.errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self.process = start(self.errors)
        self.is_ready = False
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            if line.startswith(_MARK):
                self.lines.put(line[len(_MARK) :])
        self.lines.put("")  # the end

    def ask(self, item: str, timeout: float) -> tuple[Any, str | None]:
        """The result for an item, or the reason there is none; after a reason the child is gone."""
        limit = _START_SECONDS
        try:
            if not self.is_ready:
                line = self.lines.get(timeout=limit)
                self.is_ready = line.strip() == _READY
            limit = timeout
            if self.is_ready:
                self.process.stdin.write(item + "\n")
                self.process.stdin.flush()
                line = self.lines.get(timeout=limit)
        except BrokenPipeError:
            line = ""
        except queue.Empty:
            if self.errors is not None:
                self.process.send_signal(signal.SIGUSR1)  # see show_where_it_hangs
                time.sleep(0.5)
            self.process.kill()
            self.process.wait()
            return None, f"no answer within {limit:.0f} s"
        if line:
            return json.loads(line), None
        code = self.process.wait()
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return None, f"the process died: {how}"

    def last_errors(self) -> str:
        if self.errors is None:
            return ""
        self.errors.seek(0)
        lines = self.errors.read().splitlines()
        told = [line[:_WIDTH] for line in lines if line.strip()]
        # Of faulthandler, a long list that says nothing of the worker.
        told = [line for line in told if not line.startswith("Extension modules:")]
        return "\n".join(told[-_LAST_ERRORS:])

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def _empty(waiting: queue.SimpleQueue[str]) -> None:
    with contextlib.suppress(queue.Empty):
        while True:
            waiting.get_nowait()


def run_isolated(
    start: Start,
    items: Sequence[str],
    report: Callable[[Outcome], object],
    timeout: float,
    jobs: int = 1,
    quiet: bool = False,
) -> None:
    """Gives every item to a child that `start` starts (`jobs` of them), and calls `report` here,
    one call at a time, with each outcome. Where it returns True the items that wait are left. With
    `quiet` standard error is kept for the outcome of a child that dies. Raises what `start`
    raises."""
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
            child = child or _Child(start, quiet)
            result, died = child.ask(item, timeout)
            errors = child.last_errors() if died else ""
            if died:
                child = None
            with reporting:
                if report(Outcome(item, result, died, errors)) is True:
                    _empty(waiting)
        if child is not None:
            child.close()

    # What goes wrong here and in no child ends all.
    errors: list[Exception] = []

    def drive_or_keep_error() -> None:
        try:
            drive()
        except Exception as error:
            errors.append(error)

    drivers = [threading.Thread(target=drive_or_keep_error) for _ in range(jobs)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    if errors:
        raise errors[0]
