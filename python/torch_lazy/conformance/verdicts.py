"""What came of operators whose samples were run on a device, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_lazy.conformance.program_runner import REPETITIONS

# Why the gradients of an operator were not tried.
FORWARD_FAILS = "forward fails"


@dataclass(frozen=True)
class Failure:
    """The first failing sample of an operator: `kind` is forward or gradients."""

    kind: str
    sample: int
    run: int
    reason: str


@dataclass(frozen=True)
class Verdict:
    """What came of one operator."""

    name: str
    samples: int
    has_gradients: bool
    failures: tuple[Failure, ...]

    def passes(self, kind: str) -> bool:
        return all(f.kind != kind for f in self.failures)


def told(failures: tuple[Failure, ...]) -> str | None:
    """In one line, without those that only follow from others."""
    reasons = [
        f"{f.kind} of sample {f.sample}, run {f.run}: {f.reason}"
        for f in failures
        if f.reason != FORWARD_FAILS
    ]
    return "; ".join(reasons) or None


def expected_failures(path: Path) -> set[tuple[str, str]]:
    """(operator, kind) pairs that are known to fail; the rest of each line is the reason, for
    readers."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {
        tuple(line.split(None, 2)[:2])
        for line in lines
        if line.strip() and not line.startswith("#")
    }


def write_expected(path: Path, verdicts: list[Verdict], device: str) -> None:
    lines = [
        f"# Operators that differ from the CPU on {device}: operator, kind, reason.",
        "# Made by torch_lazy.conformance.opinfo --write-expected.",
    ]
    lines += [f"{v.name} {f.kind} {f.reason}" for v in verdicts for f in v.failures]
    path.write_text("\n".join(lines) + "\n")


def summary(verdicts: list[Verdict]) -> dict[str, Any]:
    differentiable = [v for v in verdicts if v.has_gradients]
    forward, gradients = (
        sum(v.passes("forward") for v in verdicts),
        sum(v.passes("gradients") for v in differentiable),
    )
    return {
        "operators": len(verdicts),
        "samples": sum(v.samples for v in verdicts),
        "forward": forward,
        "forward_percent": round(100 * forward / max(1, len(verdicts)), 2),
        "differentiable": len(differentiable),
        "gradients": gradients,
        "gradients_percent": round(100 * gradients / max(1, len(differentiable)), 2),
    }


def markdown(verdicts: list[Verdict], device: str) -> str:
    s = summary(verdicts)
    rows = [
        f"| `{v.name}` | {f.kind} | {f.sample} | {f.run} | {f.reason.replace('|', '/')} |"
        for v in verdicts
        for f in v.failures
    ]
    head = (
        f"Forward {s['forward']} of {s['operators']} ({s['forward_percent']} %), "
        f"gradients {s['gradients']} of {s['differentiable']} ({s['gradients_percent']} %) "
        f"on `{device}`, {s['samples']} samples, each run {REPETITIONS} times."
    )
    return "\n".join(
        [
            head,
            "",
            "| operator | kind | sample | run | reason |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )
