"""Random tensor programs on a device against the CPU.

    python random_programs.py --device lazy --programs 1000 --seed 0

prints how many agree with the CPU in everything observable, and every failing seed as a short
script. A process that dies takes one program with it: the programs run in a child that the command
starts again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from isolated import Outcome, run_isolated
from program_builder import Program, Step
from program_generator import generate
from program_runner import Difference, check_program

_SCRIPT = """import warnings
import torch
try:
    import torch_lazy
    torch_lazy.config.rng = "eager"
    wait = torch_lazy.wait_for_compiles
except ImportError:
    wait = lambda: None

warnings.simplefilter("ignore")

def look(t):
    t = t.detach()
    meta = tuple(t.shape), t.stride(), t.storage_offset(), t.dtype
    return repr((meta, t.cpu().tolist()))

def program(steps, device, run):
    torch.manual_seed(1234)
    seen = []
    names = dict(
        torch=torch,
        F=torch.nn.functional,
        G=lambda seed: torch.Generator().manual_seed(seed),
        device=device,
        run=run,
        observe=lambda value: seen.append(look(value) if torch.is_tensor(value) else repr(value)),
        check=lambda: None,
    )
    for line in steps:
        try:
            exec(line, names)
        except Exception as error:
            seen.append(f"{{line}}  # {{type(error).__name__}}: {{error}}".split("\\n")[0])
    state = {{str(i): text.replace("lazy:0", "cpu") for i, text in enumerate(seen)}}
    for name, t in names.items():
        if torch.is_tensor(t):
            state[name] = look(t) + f" requires_grad={{t.requires_grad}} version={{t._version}}"
            if t.is_leaf and t.grad is not None:
                state[name + ".grad"] = look(t.grad)
    return state

{steps}

for label, steps, run in {plan}:
    expected, actual = program(steps, "cpu", run), program(steps, {device!r}, run)
    wait()
    for name in expected.keys() | actual.keys():
        if expected.get(name) != actual.get(name):
            print("run", label, name)
            print("  cpu   ", expected.get(name))
            print("  device", actual.get(name))
"""


def listing(program: Program, device: str) -> str:
    """A script that runs the program on both devices by itself and prints what differs."""

    def block(name: str, steps: tuple[Step, ...]) -> str:
        return f"{name} = [\n" + "".join(f"    {step.code!r},\n" for step in steps) + "]"

    blocks, plan = (
        block("MAIN", program.steps),
        "".join(f"({i + 1}, MAIN, {i}), " for i in range(4)),
    )
    if program.branch_tail:
        blocks += (
            f"\n{block('TAIL', program.branch_tail)}\nBRANCH = MAIN[:{program.branch_at}] + TAIL"
        )
        plan += '("branch", BRANCH, 0), '
    return _SCRIPT.format(steps=blocks, plan=f"[{plan[:-2]}]", device=device)


def shrink(
    program: Program, device: str, found: Difference, seconds: float = 20.0
) -> tuple[Program, Difference]:
    """Removes statements while some difference remains: large pieces first, then single ones."""
    deadline = time.monotonic() + seconds
    best, difference = program, found

    def differs(candidate: Program) -> Difference | None:
        return check_program(candidate, device) if time.monotonic() < deadline else None

    def without(p: Program, first: int, count: int) -> Program:
        """Both tails count as one list: the steps, then the branch's own."""
        flat = list(p.steps) + list(p.branch_tail)
        keep = [i for i in range(len(flat)) if not first <= i < first + count]
        n = len(p.steps)
        return Program(
            p.seed,
            tuple(flat[i] for i in keep if i < n),
            sum(i < p.branch_at for i in keep),
            tuple(flat[i] for i in keep if i >= n),
        )

    if not found.repetition.startswith("branch") and program.branch_tail:
        plain = Program(program.seed, program.steps)
        if result := differs(plain):
            best, difference = plain, result
    size = max(1, len(best.steps) // 2)
    while time.monotonic() < deadline:
        removed = False
        position = len(best.steps) + len(best.branch_tail) - size
        while position > -size:
            candidate = without(best, max(0, position), size)
            if result := differs(candidate):
                best, difference, removed = candidate, result, True
            position -= size
        if size == 1 and not removed:
            break
        size = max(1, size // 2)
    return best, difference


def check_seed(
    seed: int,
    device: str,
    operations: int = 40,
    shrink_seconds: float = 0.0,
) -> tuple[Program, Difference] | None:
    """The (shrunk) program of the seed and its first difference, or None if the device agrees with
    the CPU."""
    program = generate(seed, operations)
    found = check_program(program, device)
    if found is None:
        return None
    return shrink(program, device, found, shrink_seconds) if shrink_seconds else (program, found)


def _work(argv: argparse.Namespace, seed: str) -> dict | None:
    result = check_seed(int(seed), argv.device, argv.operations, argv.shrink_seconds)
    if result is None:
        return None
    return {"difference": str(result[1]), "script": listing(result[0], argv.device)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="lazy")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--operations", type=int, default=40)
    parser.add_argument("--shrink-seconds", type=float, default=20.0)
    parser.add_argument("--max-shown", type=int, default=20, help="failing programs to print whole")
    parser.add_argument("--save", type=Path, help="folder for a script of each failing program")
    parser.add_argument(
        "--show", type=int, metavar="SEED", help="print the program of a seed and stop"
    )
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one program")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    argv = parser.parse_args(arguments)
    if argv.show is not None:
        print(listing(generate(argv.show, argv.operations), argv.device))
        return 0
    failures: list[Outcome] = []

    def report(outcome: Outcome) -> None:
        if outcome.result is None and outcome.died is None:
            return
        failures.append(outcome)
        if outcome.died:
            print(f"seed {outcome.item}: {outcome.died}", flush=True)
            return
        print(f"seed {outcome.item}: {outcome.result['difference']}", flush=True)
        if len(failures) <= argv.max_shown and not argv.save:
            print(outcome.result["script"], flush=True)
        if argv.save:
            argv.save.mkdir(parents=True, exist_ok=True)
            (argv.save / f"seed_{outcome.item}.py").write_text(outcome.result["script"])

    started = time.monotonic()
    seeds = [str(s) for s in range(argv.seed, argv.seed + argv.programs)]
    own = sys.argv[1:] if arguments is None else arguments
    if not run_isolated(
        __file__, own, seeds, argv.worker, lambda s: _work(argv, s), report, argv.timeout, argv.jobs
    ):
        return 0
    equal = argv.programs - len(failures)
    seconds = time.monotonic() - started
    print(f"{equal} of {argv.programs} programs equal on {argv.device} ({seconds:.0f} s)")
    print(
        json.dumps(
            {
                "equal": equal,
                "programs": argv.programs,
                "failing_seeds": [int(f.item) for f in failures],
            }
        )
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
