"""Every operator that PyTorch's own OpInfo samples cover, on a device against the CPU.

    python -m torch_lazy.conformance.opinfo --device lazy --markdown report.md
    python -m torch_lazy.conformance.opinfo --dtypes all --order 0 --every 4 --samples 3
    python -m torch_lazy.conformance.opinfo --dtypes float64 --order 2
    python -m torch_lazy.conformance.opinfo --autocast

The first is float32 and gradients, the others all dtypes that the CPU supports, gradients of
gradients, and autocast to bfloat16. Each sample runs four times on the device, so that the later
runs are deferred and replayed. An operator passes if all its samples do: outputs and inputs
afterwards agree in dtype, shape, strides and values, and so do the gradients. Values of generated
kernels may also be as close to the result in double as the CPU's are.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from torch_lazy.conformance.double_reference import as_close_as_eager
from torch_lazy.conformance.isolated import Outcome, fresh, run_isolated, serve
from torch_lazy.conformance.opinfo_call import FLOAT32, Mode, Run, call
from torch_lazy.conformance.program import oracle_of, wait_for_compiles
from torch_lazy.conformance.program_runner import REPETITIONS
from torch_lazy.conformance.verdicts import (
    FORWARD_FAILS,
    Failure,
    Verdict,
    expected_failures,
    markdown,
    summary,
    write_expected,
)

# Their results are uninitialised memory, so only shapes, strides and dtypes can agree.
UNINITIALISED = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}


def operators(dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """The OpInfos whose operator the CPU supports in the dtype, by name and variant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {full_name(op): op for op in op_db if dtype in op.supported_dtypes("cpu")}


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def samples_of(op: Any, limit: int | None = None, mode: Mode = FLOAT32) -> Iterator[Any]:
    torch.manual_seed(0)
    gradients = mode.differentiates(op)
    return islice(op.sample_inputs("cpu", mode.dtype, requires_grad=gradients), limit)


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
        torch.testing.assert_close(a, expected.detach().cpu(), equal_nan=True, **tolerance)
    except Exception as error:
        return " ".join(str(error).split())[:200]
    return None


# What generated kernels round otherwise than ATen's adds up in sums that cancel; the reference
# backend runs ATen's own kernels.
_SINGLE = (torch.float32, torch.complex64)
GENERATED = () if os.environ.get("TORCH_LAZY_BACKEND") == "reference" else _SINGLE


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
        if reason and not (GENERATED and values and _is_as_close(a, e, which, i, exact)):
            return f"{what} {i}: {reason}"
    return None


def _is_as_close(actual: Any, expected: Any, which: str, i: int, exact: Callable[[], Run]) -> bool:
    if not isinstance(expected, torch.Tensor) or difference(actual, expected, values=False):
        return False
    results = getattr(exact(), which) or []
    if i >= len(results) or not isinstance(results[i], torch.Tensor):
        return False
    tensors = [t.detach().cpu() for t in (actual, expected, results[i])]
    return as_close_as_eager(*(torch.view_as_real(t) if t.is_complex() else t for t in tensors))


def judge(
    op: Any,
    device: str,
    limit: int | None = None,
    repetitions: int = REPETITIONS,
    mode: Mode = FLOAT32,
) -> Verdict:
    """Runs the samples of an operator; its first failure ends the check of a kind."""
    values = op.name not in UNINITIALISED
    failures: dict[str, Failure] = {}
    count = 0
    differentiates = mode.differentiates(op)
    oracle = oracle_of(device)
    for count, sample in enumerate(samples_of(op, limit, mode), 1):
        gradients = differentiates and "gradients" not in failures
        expected = call(op, sample, oracle, gradients, mode)
        exact = partial(call, op, sample, "cpu", gradients, mode, double=True)
        for run in range(1, repetitions + 1):
            actual = call(op, sample, device, gradients, mode)
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
    return Verdict(full_name(op), count, differentiates, tuple(failures.values()))


def _verdict(outcome: Outcome, has_gradients: bool) -> Verdict:
    """The worker's answer; a worker that died fails the operator in both kinds."""
    if outcome.died is None:
        failures = tuple(Failure(**f) for f in outcome.result["failures"])
        return Verdict(**{**outcome.result, "name": outcome.item, "failures": failures})
    kinds = ["forward", "gradients"] if has_gradients else ["forward"]
    failures = tuple(Failure(kind, 0, 0, outcome.died) for kind in kinds)
    return Verdict(outcome.item, 0, has_gradients, failures)


def _subjects(arguments: argparse.Namespace) -> dict[str, tuple[Any, Mode]]:
    """What is judged, by name: an operator, and in which mode."""
    autocast = torch.bfloat16 if arguments.autocast else None
    words = arguments.ops.split(",") if arguments.ops else [""]
    dtypes = _DTYPES if arguments.dtypes == "all" else arguments.dtypes.split(",")
    subjects = {}
    for dtype in dtypes:
        known = operators(getattr(torch, dtype))
        mode = Mode(getattr(torch, dtype), arguments.order, autocast)
        chosen = [n for n in known if any(w == n if w in known else w in n for w in words)]
        for name in chosen[:: arguments.every]:
            subjects[name if dtype == "float32" else f"{name}:{dtype}"] = (known[name], mode)
    return subjects


_DTYPES = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128", "complex32",
           "int64", "int32", "int16", "int8", "uint8", "bool"]  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--ops", help="only operators whose name contains one of these words, separated by commas"
    )
    parser.add_argument("--dtypes", default="float32", help="separated by commas, or all")
    parser.add_argument("--order", type=int, default=1, help="of derivatives: 0, 1 or 2")
    parser.add_argument("--autocast", action="store_true", help="to bfloat16")
    parser.add_argument("--every", type=int, default=1, help="one of so many operators")
    add_arguments_of_runs(parser)
    return parser


def add_arguments_of_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="lazy")
    parser.add_argument("--samples", type=int, help="at most so many samples of an operator")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one operator")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="file for all verdicts")
    parser.add_argument("--markdown", type=Path, help="file for the table of failures")
    parser.add_argument("--expected", type=Path, help="file of differences that are known")
    parser.add_argument("--write-expected", type=Path, help="file to be written for --expected")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)


def judge_all(
    subjects: Mapping[str, tuple[Any, Mode]], arguments: argparse.Namespace, command: list[str]
) -> int:
    """Judges them in workers that run `command`, and tells what came of it; the exit status."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(arguments.threads)
    verdicts: list[Verdict] = []

    def report(outcome: Outcome) -> None:
        op, mode = subjects[outcome.item]
        verdict = _verdict(outcome, mode.differentiates(op))
        verdicts.append(verdict)
        for f in verdict.failures:
            print(
                f"{verdict.name} {f.kind} (sample {f.sample}, run {f.run}): {f.reason}", flush=True
            )

    def work(name: str) -> dict[str, Any]:
        op, mode = subjects[name]
        return asdict(judge(op, arguments.device, arguments.samples, mode=mode))

    started = time.monotonic()
    if arguments.worker:
        serve(work)
        return 0
    run_isolated(fresh(command), list(subjects), report, arguments.timeout, arguments.jobs)
    verdicts.sort(key=lambda v: v.name)
    if arguments.json:
        told = {"summary": summary(verdicts), "verdicts": [asdict(v) for v in verdicts]}
        arguments.json.write_text(json.dumps(told, indent=1))
    if arguments.markdown:
        arguments.markdown.write_text(markdown(verdicts, arguments.device))
    if arguments.write_expected:
        write_expected(arguments.write_expected, verdicts, arguments.device)
    head = markdown(verdicts, arguments.device).splitlines()[0]
    print(head, f"({time.monotonic() - started:.0f} s)")
    print(json.dumps(summary(verdicts)))
    known = expected_failures(arguments.expected) if arguments.expected else set()
    return int(any((v.name, f.kind) not in known for v in verdicts for f in v.failures))


def main(arguments: list[str] | None = None) -> int:
    own = sys.argv[1:] if arguments is None else arguments
    argv = _parser().parse_args(own)
    command = [sys.executable, "-m", __spec__.name, *own, "--worker"]
    return judge_all(_subjects(argv), argv, command)


if __name__ == "__main__":
    sys.exit(main())
