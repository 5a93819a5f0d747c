"""Random tensor programs on a device against the CPU.

    python -m torch_lazy.conformance.random_programs --profile programs --programs 1000 --seed 0
    python -m torch_lazy.conformance.random_programs --profile fusion --programs 2000 --seed 0

prints how many agree with the CPU in everything observable, and every failing seed as a short
script. `programs` are about views, writes through aliases, autograd, syncs and errors, `fusion`
about generated kernels (program_generator.py says more). With TORCH_LAZY_BACKEND=reference values
have to be equal to the bit; otherwise a value that is off by more than its tolerance passes if it
is at most twice as far from the result in double as the CPU's. A process that dies takes one
program with it: the programs run in a child that the command starts again.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

from torch_lazy.conformance.isolated import Outcome, fresh, run_isolated, serve
from torch_lazy.conformance.program import Program, Step, oracle_of
from torch_lazy.conformance.program_comparison import Difference
from torch_lazy.conformance.program_generator import OPERATIONS, generate
from torch_lazy.conformance.program_runner import REPETITIONS, check_program

_SCRIPT = """from torch_lazy.conformance.program import Bound, Program, Step
from torch_lazy.conformance.program_runner import check_program

STEPS = (
{steps})
TAIL = (
{tail})
BOUNDS = {{{bounds}}}
print(check_program(Program({seed}, STEPS, {branch_at}, TAIL, BOUNDS, {compiles}), {device!r}))
"""


def listing(program: Program, device: str) -> str:
    """A script that runs the program on both devices and prints what differs."""

    def lines(steps: tuple[Step, ...]) -> str:
        return "".join(f"    Step({s.code!r}{', True' * s.may_fail}),\n" for s in steps)

    text = " ".join(step.code for step in program.steps)
    bounds = [f"{n!r}: {b}" for n, b in program.bounds.items() if re.search(rf"\b{n}\b", text)]
    return _SCRIPT.format(
        steps=lines(program.steps),
        tail=lines(program.branch_tail),
        bounds=", ".join(bounds),
        seed=program.seed,
        branch_at=program.branch_at,
        compiles=program.compiles,
        device=device,
    )


def _without(p: Program, first: int, count: int) -> Program:
    """Fewer statements. Both tails count as one list: the steps, then the branch's own."""
    flat = list(p.steps) + list(p.branch_tail)
    keep = [i for i in range(len(flat)) if not first <= i < first + count]
    n = len(p.steps)
    return replace(
        p,
        steps=tuple(flat[i] for i in keep if i < n),
        branch_at=sum(i < p.branch_at for i in keep),
        branch_tail=tuple(flat[i] for i in keep if i >= n),
    )


def shrink(
    program: Program,
    device: str,
    found: Difference,
    seconds: float = 20.0,
    repetitions: int = REPETITIONS,
) -> tuple[Program, Difference]:
    """Removes statements while a difference of the kind remains: large pieces first, then single
    ones."""
    deadline = time.monotonic() + seconds
    best, difference = program, found

    def differs(candidate: Program) -> Difference | None:
        if time.monotonic() >= deadline:
            return None
        result = check_program(candidate, device, repetitions=repetitions)
        return result if result and result.is_uncompiled == found.is_uncompiled else None

    if not found.repetition.startswith("branch") and program.branch_tail:
        plain = replace(program, branch_at=0, branch_tail=())
        if result := differs(plain):
            best, difference = plain, result
    size = max(1, len(best.steps) // 2)
    while time.monotonic() < deadline:
        removed = False
        position = len(best.steps) + len(best.branch_tail) - size
        while position > -size:
            candidate = _without(best, max(0, position), size)
            if result := differs(candidate):
                best, difference, removed = candidate, result, True
            position -= size
        if size == 1 and not removed:
            break
        size = max(1, size // 2)
    return best, difference


def program_of(seed: int, profile: str, device: str, operations: int | None = None) -> Program:
    """The seed's program for the device: on CUDA a bad index ends the whole process."""
    return generate(seed, profile, operations, errors=oracle_of(device) == "cpu")


def checked_seed(
    seed: int,
    profile: str,
    device: str,
    operations: int | None = None,
    shrink_seconds: float = 20.0,
    repetitions: int = REPETITIONS,
) -> dict[str, str] | None:
    """The (shrunk) program of the seed and its first difference, or None if the device agrees."""
    program = program_of(seed, profile, device, operations)
    found = check_program(program, device, repetitions=repetitions)
    if found is None:
        return None
    if shrink_seconds:
        program, found = shrink(program, device, found, shrink_seconds, repetitions)
    return {"difference": str(found), "script": listing(program, device)}


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--profile", choices=sorted(OPERATIONS), default="programs")
    parser.add_argument("--device", default="lazy")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--operations", type=int, help=f"statements of a program: {OPERATIONS}")
    parser.add_argument(
        "--repetitions", type=int, default=REPETITIONS, help="of a program, before its branch"
    )
    parser.add_argument("--shrink-seconds", type=float, default=20.0)
    parser.add_argument("--max-shown", type=int, default=20, help="failing programs to print whole")
    parser.add_argument("--save", type=Path, help="folder for a script of each failing program")
    parser.add_argument(
        "--show", type=int, metavar="SEED", help="print the program of a seed and stop"
    )
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one program")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    argv = _arguments(arguments)

    def script_of(seed: int) -> str:
        return listing(program_of(seed, argv.profile, argv.device, argv.operations), argv.device)

    if argv.show is not None:
        print(script_of(argv.show))
        return 0
    failures: list[Outcome] = []

    def report(outcome: Outcome) -> None:
        if outcome.result is None and outcome.died is None:
            return
        failures.append(outcome)
        print(f"seed {outcome.item}: {outcome.died or outcome.result['difference']}", flush=True)
        script = script_of(int(outcome.item)) if outcome.died else outcome.result["script"]
        if argv.save:
            argv.save.mkdir(parents=True, exist_ok=True)
            (argv.save / f"seed_{outcome.item}.py").write_text(script)
        elif len(failures) <= argv.max_shown:
            print(script, flush=True)

    started = time.monotonic()
    seeds = [str(s) for s in range(argv.seed, argv.seed + argv.programs)]
    own = sys.argv[1:] if arguments is None else arguments
    if argv.worker:
        given = (
            argv.profile,
            argv.device,
            argv.operations,
            argv.shrink_seconds,
            argv.repetitions,
        )
        serve(lambda seed: checked_seed(int(seed), *given))
        return 0
    command = [sys.executable, "-m", __spec__.name, *own, "--worker"]
    run_isolated(fresh(command), seeds, report, argv.timeout, argv.jobs)
    equal = argv.programs - len(failures)
    seconds = time.monotonic() - started
    print(f"{equal} of {argv.programs} programs agree on {argv.device} ({seconds:.0f} s)")
    failing = [int(f.item) for f in failures]
    print(json.dumps({"agree": equal, "programs": argv.programs, "failing_seeds": failing}))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
