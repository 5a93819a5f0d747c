"""Every operator that PyTorch's own OpInfo samples cover (float32), on a device against the CPU.

    python -m torch_lazy.conformance.opinfo --device lazy --markdown report.md

Each sample runs four times on the device, so that the later runs are deferred and replayed. An
operator passes if all its samples do: outputs and inputs afterwards agree in dtype, shape, strides
and values, and so do the gradients. Values of generated kernels may also be as close to the result
in double as the CPU's are.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from torch_lazy.conformance.double_reference import as_close_as_eager
from torch_lazy.conformance.isolated import Outcome, run_isolated, serve
from torch_lazy.conformance.opinfo_call import Run, call
from torch_lazy.conformance.program import wait_for_compiles
from torch_lazy.conformance.program_runner import REPETITIONS

# Their results are uninitialised memory, so only shapes, strides and dtypes can agree.
UNINITIALISED = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}


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


def operators() -> dict[str, Any]:
    """The OpInfos whose operator the CPU supports in float32, by name and variant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {full_name(op): op for op in op_db if torch.float32 in op.supported_dtypes("cpu")}


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def samples_of(op: Any, limit: int | None = None) -> Iterator[Any]:
    torch.manual_seed(0)
    return islice(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd), limit)


def difference(actual: Any, expected: Any, values: bool = True) -> str | None:
    """Why two results differ, in one line, or None."""
    if not isinstance(expected, torch.Tensor):
        if isinstance(
            expected, (int, float, bool, str, torch.dtype, torch.Size, type(None))
        ) and not (actual == expected or actual != actual):
            return f"{actual!r}, expected {expected!r}"
        return None
    if not isinstance(actual, torch.Tensor):
        return f"{type(actual).__name__}, expected a tensor"
    for what in ("dtype", "shape", "layout", "requires_grad"):
        if getattr(actual, what) != getattr(expected, what):
            return f"{what} {getattr(actual, what)}, expected {getattr(expected, what)}"
    if (
        expected.layout == torch.strided
        and not expected.is_nested
        and actual.stride() != expected.stride()
    ):
        shape = tuple(expected.shape)
        return f"strides {actual.stride()}, expected {expected.stride()} for shape {shape}"
    if not values:
        return None
    try:
        a = actual.detach().cpu()
        if expected._is_zerotensor():  # zeros without memory; assert_close would read it
            expected = torch.zeros(expected.shape, dtype=expected.dtype)
        tolerance = {"rtol": 2e-5, "atol": 2e-5} if expected.dtype in GENERATED else {}
        torch.testing.assert_close(a, expected.detach(), equal_nan=True, **tolerance)
    except Exception as error:
        return " ".join(str(error).split())[:200]
    return None


# What generated kernels round otherwise than ATen's adds up in sums that cancel; the reference
# backend runs ATen's own kernels.
GENERATED = () if os.environ.get("TORCH_LAZY_BACKEND") == "reference" else (torch.float32,)


def _first_difference(
    actual: Run, expected: Run, which: str, values: bool, exact: Callable[[], Run]
) -> str | None:
    """Of one list of results; `exact` makes the run in double."""
    what = {"outputs": "output", "inputs": "input afterwards", "gradients": "gradient"}[which]
    ours, cpus = getattr(actual, which), getattr(expected, which)
    if len(ours) != len(cpus):
        return f"{len(ours)} {what}s, expected {len(cpus)}"
    for i, (a, e) in enumerate(zip(ours, cpus, strict=False)):
        if (a is None) != (e is None):
            return f"{what} {i}: {'missing' if a is None else 'unexpected'}"
        reason = difference(a, e, values)
        if reason and not (GENERATED and _is_as_close(a, e, which, i, exact)):
            return f"{what} {i}: {reason}"
    return None


def _is_as_close(actual: Any, expected: Any, which: str, i: int, exact: Callable[[], Run]) -> bool:
    if not isinstance(expected, torch.Tensor) or difference(actual, expected, values=False):
        return False
    results = getattr(exact(), which) or []
    if i >= len(results) or not isinstance(results[i], torch.Tensor):
        return False
    return as_close_as_eager(actual.detach().cpu(), expected.detach(), results[i].detach())


def judge(
    op: Any, device: str, limit: int | None = None, repetitions: int = REPETITIONS
) -> Verdict:
    """Runs the samples of an operator; its first failure ends the check of a kind."""
    values = op.name not in UNINITIALISED
    failures: dict[str, Failure] = {}
    count = 0
    for count, sample in enumerate(samples_of(op, limit), 1):
        gradients = op.supports_autograd and "gradients" not in failures
        expected = call(op, sample, "cpu", gradients)
        exact = partial(call, op, sample, "cpu", gradients, double=True)
        for run in range(1, repetitions + 1):
            actual = call(op, sample, device, gradients)
            reason = None
            if actual.error != expected.error:
                reason = f"{actual.error}, expected {expected.error}"
            elif expected.error is None:
                reason = _first_difference(
                    actual, expected, "outputs", values, exact
                ) or _first_difference(actual, expected, "inputs", values, exact)
            if reason:
                failures.setdefault("forward", Failure("forward", count, run, reason))
                if gradients:
                    failures.setdefault(
                        "gradients", Failure("gradients", count, run, FORWARD_FAILS)
                    )
                break
            reason = None
            if actual.gradient_error != expected.gradient_error:
                reason = f"{actual.gradient_error}, expected {expected.gradient_error}"
            elif expected.gradients is not None:
                reason = _first_difference(actual, expected, "gradients", values, exact)
            if reason:
                failures.setdefault("gradients", Failure("gradients", count, run, reason))
                break
            del actual
            wait_for_compiles(device)
        if "forward" in failures:
            break
    return Verdict(full_name(op), count, op.supports_autograd, tuple(failures.values()))


def expected_failures(path: Path) -> set[tuple[str, str]]:
    """(operator, kind) pairs that are known to fail; the rest of each line is the reason, for
    readers."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {
        tuple(line.split(None, 2)[:2])
        for line in lines
        if line.strip() and not line.startswith("#")
    }


def _write_expected(path: Path, verdicts: list[Verdict], device: str) -> None:
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


def _markdown(verdicts: list[Verdict], device: str) -> str:
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


def _verdict(outcome: Outcome, op: Any) -> Verdict:
    """The worker's answer; a worker that died fails the operator in both kinds."""
    if outcome.died is None:
        return Verdict(
            **{
                **outcome.result,
                "failures": tuple(Failure(**f) for f in outcome.result["failures"]),
            }
        )
    kinds = ["forward", "gradients"] if op.supports_autograd else ["forward"]
    return Verdict(
        outcome.item,
        0,
        op.supports_autograd,
        tuple(Failure(kind, 0, 0, outcome.died) for kind in kinds),
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="lazy")
    parser.add_argument(
        "--ops", help="only operators whose name contains one of these words, separated by commas"
    )
    parser.add_argument("--samples", type=int, help="at most so many samples of an operator")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one operator")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="file for all verdicts")
    parser.add_argument("--markdown", type=Path, help="file for the table of failures")
    parser.add_argument("--expected", type=Path, help="file of differences that are known")
    parser.add_argument("--write-expected", type=Path, help="file to be written for --expected")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    argv = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    torch.set_num_threads(argv.threads)
    all_operators = operators()
    words = argv.ops.split(",") if argv.ops else [""]
    names = [
        n for n in all_operators if any(w == n if w in all_operators else w in n for w in words)
    ]
    verdicts: list[Verdict] = []

    def report(outcome: Outcome) -> None:
        verdict = _verdict(outcome, all_operators[outcome.item])
        verdicts.append(verdict)
        for f in verdict.failures:
            print(
                f"{verdict.name} {f.kind} (sample {f.sample}, run {f.run}): {f.reason}", flush=True
            )

    def work(name: str) -> dict[str, Any]:
        return asdict(judge(all_operators[name], argv.device, argv.samples))

    started = time.monotonic()
    own = sys.argv[1:] if arguments is None else arguments
    if argv.worker:
        serve(work)
        return 0
    command = [sys.executable, "-m", __spec__.name, *own, "--worker"]
    run_isolated(command, names, report, argv.timeout, argv.jobs)
    verdicts.sort(key=lambda v: v.name)
    if argv.json:
        argv.json.write_text(
            json.dumps(
                {"summary": summary(verdicts), "verdicts": [asdict(v) for v in verdicts]}, indent=1
            )
        )
    if argv.markdown:
        argv.markdown.write_text(_markdown(verdicts, argv.device))
    if argv.write_expected:
        _write_expected(argv.write_expected, verdicts, argv.device)
    print(_markdown(verdicts, argv.device).splitlines()[0], f"({time.monotonic() - started:.0f} s)")
    print(json.dumps(summary(verdicts)))
    known = expected_failures(argv.expected) if argv.expected else set()
    return int(any((v.name, f.kind) not in known for v in verdicts for f in v.failures))


if __name__ == "__main__":
    sys.exit(main())
