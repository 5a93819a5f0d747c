"""Random programs for the kernel generator, on a device against the CPU.

    python fusion_programs.py --device lazy --programs 2000 --seed 0

Each program is a function of a few tensors. It runs four times, so that the last run is compiled,
and every result, and every tensor it was given, is compared with the CPU's after each run. The
command prints how many agree and every failing one as a short script. A process that dies takes one
program with it: the programs run in a child that the command starts again.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from double_reference import as_close_as_eager
from fusion_builder import FusionProgram
from fusion_generator import fusion_program
from isolated import Outcome, run_isolated

try:
    import torch_lazy
except ImportError:  # the harness also compares the CPU with itself
    torch_lazy = None

_CAST = re.compile(r"\.to\(torch\.(?:float32|float16|bfloat16)\)")

RUNS = 4  # cold, warm, hot and once more
HOT = RUNS - 1


def _records(device: str) -> bool:
    return torch_lazy is not None and device.startswith("lazy")


@dataclass(frozen=True)
class Seen:
    """A tensor's values on the CPU, and the strides it had where it was."""

    value: torch.Tensor
    strides: tuple[int, ...]


def run_fusion_program(
    program: FusionProgram, device: str, run: int, double: bool = False
) -> dict[str, Seen]:
    """One run: what it returns and what became of its arguments. `double`: with float64 in the
    place of all floating dtypes."""
    text = partial(_CAST.sub, ".to(torch.float64)") if double else str
    names: dict[str, Any] = {
        "torch": torch,
        "F": torch.nn.functional,
        "G": lambda seed: torch.Generator().manual_seed(seed),
        "device": device,
        "run": run,
    }
    exec(text("\n".join(program.inputs)), names)
    exec(text(program.function()), names)
    arguments = {name: names[name] for name in program.arguments()}
    if _records(device):
        torch_lazy.synchronize()  # the function's operations are a window of their own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = names["program"](*arguments.values())
    seen = dict(zip(program.outputs, results, strict=True)) | arguments
    del results
    return {name: Seen(t.detach().cpu(), t.stride()) for name, t in seen.items()}


def disagreement(
    expected_seen: Seen, actual_seen: Seen, tolerance: float, scale: float
) -> str | None:
    """How a tensor differs by more than `tolerance` times the largest expected element, or times
    `scale` if that is more; NaN and the infinities are equal to themselves."""
    expected, actual = expected_seen.value, actual_seen.value
    for what in ("shape", "dtype"):
        if getattr(expected, what) != getattr(actual, what):
            return f"{what}: {getattr(actual, what)}, expected {getattr(expected, what)}"
    if expected_seen.strides != actual_seen.strides:
        return f"strides: {actual_seen.strides}, expected {expected_seen.strides}"
    if torch.equal(expected, actual):
        return None
    wide = torch.float64 if expected.dtype.is_floating_point else torch.int64
    e, a = expected.to(wide), actual.to(wide)
    same = (e == a) | ((e != e) & (a != a))
    finite = e.isfinite()
    largest = max(e[finite].abs().max().item() if finite.any() else 0.0, scale)
    allowed = same | ((e - a).abs() <= tolerance * largest)
    if bool(allowed.all()):
        return None
    wrong = (~allowed).nonzero()
    first = tuple(wrong[0].tolist())
    return (
        f"{len(wrong)} of {e.numel()} elements, the first at {first}: {actual[first].item()}, "
        f"expected {expected[first].item()}; the scale is {largest:.4g}, allowed are "
        f"{tolerance:g} of it"
    )


def _as_close_as_eager(
    program: FusionProgram, run: int, name: str, expected: Seen, actual: Seen
) -> bool:
    """Of values: such as those that should cancel to 0 and do so neither here nor there."""
    if expected.strides != actual.strides:
        return False
    try:
        exact = run_fusion_program(program, "cpu", run, double=True)[name]
    except Exception:  # the program is none in double: it looks at bits
        return False
    return as_close_as_eager(actual.value, expected.value, exact.value)


def check_fusion_program(program: FusionProgram, device: str) -> str | None:
    """The first difference between the device and the CPU, or None."""
    for run in range(RUNS):
        expected = run_fusion_program(program, "cpu", run)
        if _records(device):
            torch_lazy.synchronize()
            torch_lazy.reset_metrics()
        try:
            actual = run_fusion_program(program, device, run)
        except Exception as error:
            return f"run {run}: {type(error).__name__}: {str(error).strip().splitlines()[0]}"
        if _records(device):
            torch_lazy.wait_for_compiles()
        for name, value in expected.items():
            how = disagreement(value, actual[name], program.tolerances[name], program.scales[name])
            if how and not _as_close_as_eager(program, run, name, value, actual[name]):
                return f"run {run}: {name}: {how}"
    if _records(device):
        counted = torch_lazy.metrics()
        if set(counted["windows"]) != {"hot"} or not counted["deferred"]:
            return f"run {HOT} was not compiled: {counted['windows']}"
        if counted["fallbacks"]:
            return f"run {HOT} fell back: {counted['fallbacks']}"
    return None


def shrink(program: FusionProgram, device: str, found: str, seconds: float) -> tuple:
    """Removes results and statements while the device still disagrees, and in the same way: a wrong
    value stays a wrong value."""
    deadline = time.monotonic() + seconds
    kind = "fell back" in found, "was not compiled" in found, "rror: " in found

    def still_fails(candidate: FusionProgram) -> str | None:
        try:
            run_fusion_program(candidate, "cpu", 0)
        except Exception:
            return None  # a statement lacks what was removed
        how = check_fusion_program(candidate, device)
        if how is None:
            return None
        return (
            how
            if ("fell back" in how, "was not compiled" in how, "rror: " in how) == kind
            else None
        )

    removed = True
    while removed:
        removed = False
        for field in ("outputs", "steps", "inputs"):
            for position in reversed(range(len(getattr(program, field)))):
                if time.monotonic() > deadline:
                    return program, found
                candidate = program.without(field, position)
                how = still_fails(candidate)
                if how:
                    program, found, removed = candidate, how, True
    return program, found


_SCRIPT = """import torch
import torch.nn.functional as F
import torch_lazy

G = lambda seed: torch.Generator().manual_seed(seed)

{function}

def results(device, run):
    {inputs}
    torch_lazy.synchronize()
    values = program({arguments})
    return [(v.detach().cpu(), v.stride()) for v in (*values, {arguments})]

for run in range(4):
    expected, actual = results("cpu", run), results({device!r}, run)
    torch_lazy.wait_for_compiles()
    for name, (e, es), (a, strides) in zip({names!r}, expected, actual):
        if es != strides:
            print("run", run, name, "strides", strides, "expected", es)
        print("run", run, name, "differs by", (e.double() - a.double()).abs().max().item())
    print(torch_lazy.metrics()["windows"], torch_lazy.metrics()["fallbacks"])
"""


def script(program: FusionProgram, device: str) -> str:
    """The program as a script that runs by itself."""
    return _SCRIPT.format(
        function=program.function(),
        inputs="\n    ".join(program.inputs),
        arguments=", ".join(program.arguments()) + ("," if program.arguments() else ""),
        names=[*program.outputs, *program.arguments()],
        device=device,
    )


def _work(argv: argparse.Namespace, seed: str) -> dict | None:
    program = fusion_program(random.Random(int(seed)), argv.operations)
    found = check_fusion_program(program, argv.device)
    if found is None:
        return None
    small, how = shrink(program, argv.device, found, argv.shrink_seconds)
    return {"difference": how, "script": script(small, argv.device)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="lazy")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--operations", type=int, default=14)
    parser.add_argument("--shrink-seconds", type=float, default=20.0)
    parser.add_argument("--save", type=Path, help="folder for a script of each failing program")
    parser.add_argument("--show", type=int, metavar="SEED", help="print the program of a seed")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one program")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    argv = parser.parse_args(arguments)
    if argv.show is not None:
        print(script(fusion_program(random.Random(argv.show), argv.operations), argv.device))
        return 0
    failures: list[Outcome] = []

    def report(outcome: Outcome) -> None:
        if outcome.result is None and outcome.died is None:
            return
        failures.append(outcome)
        print(f"seed {outcome.item}: {outcome.died or outcome.result['difference']}", flush=True)
        text = (
            script(fusion_program(random.Random(int(outcome.item)), argv.operations), argv.device)
            if outcome.died
            else outcome.result["script"]
        )
        if argv.save:
            argv.save.mkdir(parents=True, exist_ok=True)
            (argv.save / f"seed_{outcome.item}.py").write_text(text)
        else:
            print(text, flush=True)

    started = time.monotonic()
    seeds = [str(s) for s in range(argv.seed, argv.seed + argv.programs)]
    own = sys.argv[1:] if arguments is None else arguments
    if not run_isolated(
        __file__, own, seeds, argv.worker, lambda s: _work(argv, s), report, argv.timeout, argv.jobs
    ):
        return 0
    equal = argv.programs - len(failures)
    print(
        f"{equal} of {argv.programs} programs agree on {argv.device} "
        f"({time.monotonic() - started:.0f} s)"
    )
    print(json.dumps({"agree": equal, "failing_seeds": [int(f.item) for f in failures]}))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
