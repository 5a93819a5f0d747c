"""Device lazy against its peers on the device where it lives: eager and torch.compile.

    python benchmarks/peers.py --json peers.json
    TORCH_LAZY_BACKEND=cuda python benchmarks/peers.py --modes eager,lazy --only gpt,mlp

Eager and lazy are a process each, which keeps its workloads; torch.compile's modes are one for each
workload, as many at once as processors have room for. Rounds of steps take turns between them, so
that a ratio is taken between neighbours in time. First steps of eager and lazy are timed while
nothing else runs; torch.compile's, prepared side by side, are not ratios of anything.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

MODES = ("eager", "compile", "reduce-overhead", "lazy")
ALONE = ("eager", "lazy")  # whose first steps are timed while no other worker does anything
PROCESSORS_TO_COMPILE = 2  # of a worker: Python's and the compiler's
DEFINITIONS = """\
Times are those of a whole step with a wait for the device behind it, the least of each round and
the median over rounds. Other columns are the median over rounds of a mode's time by eager's in the
same round; under 1 is faster. "first" is the first step ever of that workload in its process, whose
device was used before: lazy's by eager's, torch.compile's in seconds.
"""
ROUNDS = 7
AGREEMENT = {False: 1e-3, True: 2e-2}  # of losses with eager's, by whether they are bf16's


# --- In a worker -----------------------------------------------------------------------------


class Worker:
    """Answers in one mode; every reply is a line of JSON."""

    def __init__(self, mode: str, small: bool):
        import torch
        from peer_workloads import WORKLOADS

        self.torch, self.mode, self.small = torch, mode, small
        self.workloads = {workload.name: workload for workload in WORKLOADS}
        self.steps: dict[str, Any] = {}
        self.home = str(torch.lazy.execution_device())  # where lazy tensors live
        self.device = "lazy" if mode == "lazy" else self.home
        # What a process pays once: the device's context, its libraries, a first lazy tensor.
        x = torch.randn(64, 64).to(self.device).requires_grad_()
        (x @ x).sum().backward()
        self.wait()

    def wait(self) -> None:
        if self.mode == "lazy":
            self.torch.lazy.synchronize()
        if self.home != "cpu":
            self.torch.get_device_module(self.home).synchronize()

    def wrap(self, function: Any) -> Any:
        if self.mode == "compile":
            return self.torch.compile(function)
        if self.mode == "reduce-overhead":
            return self.torch.compile(function, mode="reduce-overhead")
        return function

    def seconds(self, name: str) -> float:
        start = time.perf_counter()
        self.last = self.steps[name]()
        self.wait()
        return time.perf_counter() - start

    def first(self, name: str) -> dict[str, Any]:
        from peer_workloads import make_step

        self.torch.manual_seed(0)
        parts = self.workloads[name].make(self.small)
        self.steps[name] = make_step(parts, self.device, self.wrap)
        self.wait()
        taken = self.seconds(name)
        value = float(self.last.detach().float().mean())
        return {"first": taken, "value": value, "bf16": parts.bf16, "same": parts.comparable}

    def warm(self, name: str) -> dict[str, Any]:
        """Until there is nothing left to compile."""
        for _ in range(8):
            self.seconds(name)
            if self.mode == "lazy":
                self.torch.lazy.wait_for_compiles()
        if self.mode != "lazy":
            return {}
        before = self.torch.lazy.metrics()
        self.seconds(name)
        after = self.torch.lazy.metrics()
        missed = after["fallbacks"].get("window not compiled", 0)
        return {
            "deferred": after["deferred"] - before["deferred"],
            "eager": after["eager"] - before["eager"],
            "not_compiled": missed,
        }

    def time(self, name: str, budget: float) -> dict[str, Any]:
        """The least of as many steps as the budget holds, three at least."""
        times, end = [], time.perf_counter() + budget
        while len(times) < 3 or (time.perf_counter() < end and len(times) < 200):
            times.append(self.seconds(name))
        return {"seconds": min(times)}


def serve(mode: str, small: bool) -> None:
    replies = sys.stdout
    sys.stdout = sys.stderr  # what libraries print is no reply
    worker = Worker(mode, small)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            reply = getattr(worker, asked.pop("do"))(**asked)
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:300]}"}
        print(json.dumps(reply), file=replies, flush=True)


# --- In the driver ---------------------------------------------------------------------------


@dataclass
class Peer:
    """The worker of one mode, as the driver sees it."""

    mode: str
    small: bool
    deadline: float  # of time.monotonic()
    replies: queue.Queue = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        command = [sys.executable, __file__, "--worker", self.mode, *["--small"] * self.small]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.replies.put(json.loads(line))
        self.replies.put(None)

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """The answer, or why there is none under "error"; then the worker is not asked again."""
        try:
            self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self.process.stdin.flush()
            reply = self.replies.get(timeout=max(0.0, self.deadline - time.monotonic()))
        except queue.Empty:
            self.process.kill()
            return {"error": "the time was over"}
        except BrokenPipeError:
            reply = None
        if reply is None:
            return {"error": f"its process ended with status {self.process.wait()}"}
        return reply

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def prepare(peer: Peer, names: list[str], rows: dict[str, dict]) -> None:
    for name in names:
        told = peer.ask("first", name=name)
        if "error" not in told:
            told |= peer.ask("warm", name=name)
        rows[name][peer.mode] = told


def compare_values(row: dict[str, dict]) -> None:
    """Marks the modes whose first result is not eager's."""
    eager = row.get("eager", {})
    if "value" not in eager or not eager["same"]:
        return
    for told in row.values():
        if "value" not in told:
            continue
        off = abs(told["value"] - eager["value"]) / max(1e-6, abs(eager["value"]))
        if not off <= AGREEMENT[told["bf16"]]:
            told["error"] = f"its result is {told['value']:.6g}, eager's {eager['value']:.6g}"


def time_rounds(peers: list[Peer], name: str, row: dict[str, dict], budget: float) -> None:
    """Of the peers that have the workload; `row` is its own."""
    timed = [peer for peer in peers if "error" not in row[peer.mode]]
    seconds: dict[str, list[float]] = {peer.mode: [] for peer in timed}
    for number in range(ROUNDS):
        # Another order each round: none always follows the same neighbour.
        shift = number % len(timed) if timed else 0
        for peer in timed[shift:] + timed[:shift]:
            told = peer.ask("time", name=name, budget=budget / ROUNDS)
            if "error" in told:
                row[peer.mode]["error"] = told["error"]
            else:
                seconds[peer.mode].append(told["seconds"])
        timed = [peer for peer in timed if "error" not in row[peer.mode]]
    for mode, times in seconds.items():
        if "error" in row[mode]:
            continue
        row[mode]["seconds"] = median(times)
        if "error" not in row.get("eager", {"error": ""}):
            ratios = [a / b for a, b in zip(times, seconds["eager"], strict=True)]
            row[mode]["to_eager"] = median(ratios)


def prepare_compiled(
    modes: list[str], names: list[str], rows: dict[str, dict], small: bool, deadline: float
) -> dict[str, list[Peer]]:
    """By workload, a worker for each mode of torch.compile, started in the order of the names."""
    peers: dict[str, list[Peer]] = {name: [] for name in names}

    def start(name: str, mode: str) -> None:
        peer = Peer(mode, small, deadline)
        peers[name].append(peer)
        prepare(peer, [name], rows)

    at_once = max(1, (os.cpu_count() or 1) // PROCESSORS_TO_COMPILE)
    with ThreadPoolExecutor(at_once) as pool:
        for done in [pool.submit(start, name, mode) for name in names for mode in modes]:
            done.result()
    return peers


def measure(args: argparse.Namespace, names: list[str]) -> dict[str, dict[str, dict]]:
    deadline = time.monotonic() + args.seconds
    rows: dict[str, dict] = {name: {} for name in names}
    modes = args.modes.split(",")
    alone = [Peer(mode, args.small, deadline) for mode in modes if mode in ALONE]
    compiled: dict[str, list[Peer]] = {}
    try:
        for peer in alone:
            prepare(peer, names, rows)
        # The others may take two thirds of what is left: what they have not compiled is missing.
        until = deadline - (deadline - time.monotonic()) / 3
        others = [mode for mode in modes if mode not in ALONE]
        compiled = prepare_compiled(others, names, rows, args.small, until)
        for name in names:
            for peer in compiled[name]:
                peer.deadline = deadline
            compare_values(rows[name])
            time_rounds([*alone, *compiled[name]], name, rows[name], args.budget)
            print(line_of(name, rows[name], modes), flush=True)
            if args.json:  # each time: there may be no end
                args.json.write_text(json.dumps(rows, indent=1))
    finally:
        for peer in [*alone, *(peer for peers in compiled.values() for peer in peers)]:
            peer.close()
    return rows


def ratio(row: dict[str, dict], mode: str, key: str) -> str:
    ours, eager = row.get(mode, {}), row.get("eager", {})
    if "error" in ours or key not in ours or key not in eager:
        return "–"
    return f"{ours[key] / eager[key]:.2f}"


def heading(modes: list[str]) -> str:
    heads = ["workload", *("eager, ms" if mode == "eager" else mode for mode in modes)]
    heads += ["lazy first", "compile first, s"]
    return "| " + " | ".join(heads) + " |\n|" + "---|" * len(heads)


def line_of(name: str, row: dict[str, dict], modes: list[str]) -> str:
    def cell(mode: str) -> str:
        told = row.get(mode, {})
        if "to_eager" not in told:
            return "–"
        return f"{told['seconds'] * 1e3:.3f}" if mode == "eager" else f"{told['to_eager']:.2f}"

    compiled = row.get("compile", {})
    first = "–" if "error" in compiled or not compiled else f"{compiled['first']:.1f}"
    cells = [name, *(cell(mode) for mode in modes), ratio(row, "lazy", "first"), first]
    return "| " + " | ".join(cells) + " |"


def problems(rows: dict[str, dict[str, dict]]) -> list[str]:
    """A line for whatever is not as it should be, lazy's first."""
    found = []
    for name, row in rows.items():
        for mode, told in row.items():
            if "error" in told:
                found.append(f"{name}, {mode}: {told['error']}")
            elif told.get("not_compiled"):
                found.append(f"{name}, {mode}: a window was not compiled")
            elif told.get("eager"):
                found.append(
                    f"{name}, {mode}: {told['eager']} operations of a step ran at the call"
                )
    return sorted(found, key=lambda line: ", lazy: " not in line)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modes", default=",".join(MODES), help="comma-separated; eager first")
    parser.add_argument("--only", help="comma-separated names of workloads")
    parser.add_argument("--seconds", type=float, default=600, help="for everything")
    parser.add_argument("--budget", type=float, default=1.5, help="seconds a mode and workload")
    parser.add_argument("--small", action="store_true", help="shrunken sizes, to try the benchmark")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        serve(args.worker, args.small)
        return 0
    from peer_workloads import WORKLOADS

    known = [workload.name for workload in WORKLOADS]
    names = args.only.split(",") if args.only else known
    for given, allowed in ((names, known), (args.modes.split(","), list(MODES))):
        if unknown := [name for name in given if name not in allowed]:
            parser.error(f"unknown {unknown}; there are {allowed}")

    print(DEFINITIONS)
    print(heading(args.modes.split(",")), flush=True)
    rows = measure(args, names)
    wrong = problems(rows)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if any(", lazy: " in line for line in wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
