"""Is the device ever slower than eager? Random but realistic programs, none written for it.

    python benchmarks/unseen.py --cases 100                    # tuning cases 0 to 99
    python benchmarks/unseen.py --first 200 --cases 50 --json a.json --write /tmp/worst
    python benchmarks/unseen.py --device cpu                   # eager against itself: the noise
    python benchmarks/unseen.py --seconds 120 --pace 0.5 --explain          # a while on a GPU

A case is a number: it chooses a family (elementwise chains, reductions, movement, indexing, scans,
recurrences, stencils, particles, integers, sampling, small linear algebra, losses, optimizers,
models, mixtures), a size from a few bytes to past the caches, a dtype, with gradients or without.
Eager, on the device where lazy tensors live, and lazy then take turns in one process, once windows
are hot, compiles have ended and values agree (TORCH_LAZY_RNG=eager where draws shall be eager's). A
time is the least of its rounds, which other load on the machine disturbs least; a ratio is the
device's over eager's. Every result of a step is kept until it has been computed: what nobody kept,
a device that defers would not compute.

**Seeds.** Cases below 10,000 are for tuning. Those from 10,000 on (`--test`) are the test: their
ratios may be reported, but nobody looks at one of these cases while anything is tuned.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import random
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from unseen_draft import DTYPES, SIZES, Draft
from unseen_families import FAMILIES
from unseen_training import TRAINING

Step = Callable[[], list[torch.Tensor]]
FIRST_TEST = 10_000
ALL_FAMILIES = {**FAMILIES, **TRAINING}
# Models are a fifth of what is run, as users run little else; others take turns.
ROTATION = [*ALL_FAMILIES, "mixed", "mixed", "model", "model", "model"]
WARM_SECONDS, SETTLE_SECONDS, MOST_SETTLE_SECONDS, TIMED_SECONDS = 2.0, 0.4, 4.0, 0.6
SETTLE_STEPS = 64
EXPLAINED = 1.05  # times of eager's


@dataclass
class Case:
    number: int
    family: str
    size: str
    dtype: str
    train: bool
    source: str


@dataclass
class Outcome:
    number: int
    family: str
    size: str
    dtype: str
    train: bool
    eager: float = 0.0  # seconds a step
    lazy: float = 0.0
    compiled: float = 0.0  # torch.compile; 0 where it was not asked for or fails
    deferred: float = 0.0  # share of the operations
    error: str = ""

    @property
    def ratio(self) -> float:
        return self.lazy / self.eager


def draw(number: int) -> Case:
    generator = random.Random(number)
    family = ROTATION[number % len(ROTATION)]
    size = generator.choice(list(SIZES))
    dtype = generator.choices(list(DTYPES), list(DTYPES.values()))[0]
    draft = Draft(generator, family, size, dtype, generator.random() < 0.4)
    low, high = SIZES[size]
    draft.elements = draft.integer(low, high)
    ALL_FAMILIES[family](draft)
    return Case(number, family, size, draft.dtype, draft.train, draft.source(number))


def make_step(case: Case, device: str) -> Step:
    names: dict[str, Any] = {}
    exec(compile(case.source, f"<case {case.number}>", "exec"), names)
    return names["make"](device, synchronizer(device))


def synchronizer(device: str) -> Callable[[], None]:
    """What waits until all that was called on the device is done."""
    if device.startswith("lazy"):
        return torch.lazy.synchronize
    home = torch.lazy.execution_device()
    return torch.get_device_module(home).synchronize if home.type != "cpu" else lambda: None


def timed(step: Step, synchronize: Callable[[], None], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        step()
    synchronize()
    return (time.perf_counter() - start) / repeats


def warm_up(lazy: Step, eager: Step, device: str, home: str, repeats: int, pace: float) -> float:
    """By blocks as they will be timed, until nothing more is compiled. Eager makes as many steps:
    where a step moves state, what follows has the same work to do. Returns the share of the
    operations that are deferred then.
    """
    if not device.startswith("lazy"):
        return 0.0
    wait_lazy, wait_eager = synchronizer(device), synchronizer(home)
    begin, quiet, deferred = time.perf_counter(), 0, 0.0
    while quiet < 3 and time.perf_counter() - begin < pace * WARM_SECONDS:
        before = torch.lazy.metrics()
        timed(lazy, wait_lazy, max(2, repeats))
        torch.lazy.wait_for_compiles()
        after = torch.lazy.metrics()
        timed(eager, wait_eager, max(2, repeats))
        recorded = after["recorded"] - before["recorded"]
        deferred = (after["deferred"] - before["deferred"]) / max(1, recorded)
        quiet = quiet + 1 if after["compiles"] == before["compiles"] and deferred > 0.9 else 0
    # What is chosen by measurement is chosen in these.
    begin, steps, seconds = time.perf_counter(), 0, 0.0
    least, most = pace * SETTLE_SECONDS, pace * MOST_SETTLE_SECONDS
    while seconds < least or (steps < SETTLE_STEPS and seconds < most):
        timed(lazy, wait_lazy, repeats)
        torch.lazy.wait_for_compiles()
        timed(eager, wait_eager, repeats)
        steps, seconds = steps + repeats, time.perf_counter() - begin
    return deferred


def results_of(case: Case, device: str) -> list[torch.Tensor]:
    """Of a new instance, whose windows are known by now: state begins where it did at first."""
    step = make_step(case, device)
    torch.manual_seed(case.number)
    for _ in range(2):
        results = [r.detach().to("cpu", copy=True) for r in step()]
    return results


def differs(got: torch.Tensor, expected: torch.Tensor, tolerance: float) -> bool:
    """More than single elements do: what is compared and rounded next to a threshold may flip."""
    if (got.shape, got.dtype) != (expected.shape, expected.dtype):
        return True
    a, b = got.double(), expected.double()
    largest = b[b.isfinite()].abs().max().item() if b.isfinite().any() else 0.0
    close = torch.isclose(a, b, rtol=tolerance, atol=tolerance * max(largest, 1e-6), equal_nan=True)
    wrong = close.numel() - int(close.sum())
    return wrong > 1 and wrong > 1e-3 * close.numel()


def check_values(case: Case, device: str, home: str) -> None:
    tolerance = {"bfloat16": 0.05, "float32": 2e-3, "float64": 1e-6}[case.dtype]
    pairs = zip(results_of(case, device), results_of(case, home), strict=True)
    for i, (got, expected) in enumerate(pairs):
        if differs(got, expected, tolerance):
            raise ValueError(f"result {i} differs from eager's")


def measure(case: Case, device: str, with_compile: bool, pace: float = 1.0) -> Outcome:
    """`pace`: scales the seconds for which steps are warmed up and timed."""
    outcome = Outcome(case.number, case.family, case.size, case.dtype, case.train)
    home = str(torch.lazy.execution_device())
    steps = {"eager": (make_step(case, home), home), "lazy": (make_step(case, device), device)}
    timed(steps["eager"][0], synchronizer(home), 2)
    once = timed(steps["eager"][0], synchronizer(home), 2)
    timed(steps["lazy"][0], synchronizer(device), 4)
    repeats = max(1, min(2000, int(0.003 / once)))
    outcome.deferred = warm_up(steps["lazy"][0], steps["eager"][0], device, home, repeats, pace)
    check_values(case, device, home)
    if with_compile:
        torch._dynamo.reset()
        compiled = torch.compile(make_step(case, home))
        try:
            for _ in range(3):
                compiled()
            steps["compiled"] = (compiled, home)
        except Exception as error:
            print(f"torch.compile fails on case {case.number}: {str(error)[:100]}")
    times: dict[str, list[float]] = {which: [] for which in steps}
    begin, rounds = time.perf_counter(), 0
    while rounds < 5 or (rounds < 40 and time.perf_counter() - begin < pace * TIMED_SECONDS):
        for which in list(steps) if rounds % 2 == 0 else list(steps)[::-1]:
            step, where = steps[which]
            times[which].append(timed(step, synchronizer(where), repeats))
        rounds += 1
    for which, taken in times.items():
        setattr(outcome, which, min(taken))
    return outcome


def print_explained(case: Case, outcome: Outcome, device: str) -> None:
    from unseen_explain import explain

    print(f"case {case.number} ({case.family}, {case.size}): {outcome.ratio:.2f}")
    for where in (str(torch.lazy.execution_device()), device):
        step, wait = make_step(case, where), synchronizer(where)
        for _ in range(SETTLE_STEPS if where == device else 0):
            step()
            torch.lazy.wait_for_compiles()
        print(f"  {where}: {explain(step, wait)}", flush=True)


SCRIPT_END = """

if __name__ == "__main__":
    import time

    torch.set_num_threads(1)
    home = str(torch.lazy.execution_device())
    wait = torch.get_device_module(home).synchronize if home != "cpu" else lambda: None
    eager, lazy = make(home, wait), make("lazy", torch.lazy.synchronize)
    for _ in range(60):
        lazy()
        torch.lazy.wait_for_compiles()
    times = {eager: [], lazy: []}
    repeats = REPEATS
    for _ in range(20):
        for step, taken in times.items():
            start = time.perf_counter()
            for _ in range(repeats):
                step()
            torch.lazy.synchronize()
            wait()
            taken.append((time.perf_counter() - start) / repeats)
    a, b = min(times[eager]), min(times[lazy])
    print(f"eager {1e6 * a:.1f} µs, lazy {1e6 * b:.1f} µs, ratio {b / a:.3f}")
"""


def write_scripts(worst: list[Outcome], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for outcome in worst:
        repeats = max(1, int(0.003 / outcome.eager))
        case = draw(outcome.number)
        head = f"# case {case.number}: {case.family}, {case.size}, {case.dtype}\n"
        text = head + case.source + SCRIPT_END.replace("REPEATS", str(repeats))
        name = f"case_{case.number}_{case.family.replace(' ', '_')}.py"
        (directory / name).write_text(text)


def plot(ratios: list[float], path: Path) -> None:
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("no plot: matplotlib is not installed")
        return
    figure, axes = pyplot.subplots(figsize=(7, 4))
    axes.step(sorted(ratios), [(i + 1) / len(ratios) for i in range(len(ratios))], where="post")
    axes.axvline(1, color="grey")
    axes.set(xscale="log", xlabel="time of the device / time of eager", ylabel="share of cases")
    figure.savefig(path, bbox_inches="tight")


def figures(outcomes: Sequence[Outcome]) -> tuple[float, float, float, float]:
    """Of ratios: their geometric mean, the shares over 1.05 and over 1.1, the greatest."""
    ratios = [outcome.ratio for outcome in outcomes]
    over = [sum(ratio > limit for ratio in ratios) / len(ratios) for limit in (1.05, 1.1)]
    return statistics.geometric_mean(ratios), over[0], over[1], max(ratios)


def summary(name: str, outcomes: list[Outcome]) -> str:
    mean, over, far_over, worst = figures(outcomes)
    text = f"{name:14} {len(outcomes):5} {mean:8.3f} {over:7.1%} {far_over:7.1%} {worst:7.2f}"
    compiled = [outcome.compiled / outcome.eager for outcome in outcomes if outcome.compiled]
    if compiled:
        text += f" {math.exp(statistics.fmean(map(math.log, compiled))):9.3f}"
    return text


def report(outcomes: list[Outcome], worst_count: int) -> None:
    good = [outcome for outcome in outcomes if not outcome.error]
    if not good:
        return
    print("\ntime of the device over time of eager, least of the rounds; torch.compile's likewise")
    print(f"{'':14} {'cases':>5} {'geomean':>8} {'>1.05':>7} {'>1.1':>7} {'worst':>7}")
    groups: list[tuple[str, Callable[[Outcome], str]]] = [
        ("family", lambda o: o.family), ("size", lambda o: o.size), ("dtype", lambda o: o.dtype),
        ("gradients", lambda o: "with gradients" if o.train else "forward"),
    ]  # fmt: skip
    for _, key in groups:
        for name in sorted({key(outcome) for outcome in good}):
            print(summary(name, [outcome for outcome in good if key(outcome) == name]))
        print()
    print(summary("all", good))
    print("\nworst: ratio, eager's step in µs, operations deferred")
    for o in sorted(good, key=lambda o: -o.ratio)[:worst_count]:
        print(f"{o.ratio:7.3f} {1e6 * o.eager:10.1f} {o.deferred:6.0%}  case {o.number}: "
              f"{o.family}, {o.size}, {o.dtype}{', gradients' if o.train else ''}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", help="case numbers, with commas, instead")
    parser.add_argument("--test", action="store_true", help="of the test cases")
    parser.add_argument("--device", default="lazy")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--compile", action="store_true", help="time torch.compile as well")
    parser.add_argument("--worst", type=int, default=15, help="how many are listed and written")
    parser.add_argument("--write", type=Path, help="directory for the worst cases as scripts")
    parser.add_argument("--plot", type=Path, help="picture of the distribution")
    parser.add_argument("--json", type=Path, help="every outcome")
    parser.add_argument("--seconds", type=float, default=math.inf, help="no case begins later")
    parser.add_argument("--pace", type=float, default=1.0, help="scales the seconds of a case")
    parser.add_argument(
        "--explain", action="store_true", help="on a GPU: where the time of slower steps goes"
    )
    parser.add_argument("--show", action="store_true", help="print the cases' sources, run nothing")
    options = parser.parse_args()
    if options.explain and torch.lazy.execution_device().type != "cuda":
        parser.error("--explain is about a GPU, and lazy tensors live on the CPU here")
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    gc.disable()
    first = options.first + (FIRST_TEST if options.test else 0)
    numbers = list(range(first, first + options.cases))
    if options.only:
        numbers = [int(number) for number in options.only.split(",")]
    outcomes = []
    begin = time.perf_counter()
    for number in numbers:
        case = draw(number)
        if options.show:
            print(f"# case {number}: {case.family}, {case.size}, {case.dtype}\n{case.source}")
            continue
        if time.perf_counter() - begin > options.seconds:
            break
        try:
            outcome = measure(case, options.device, options.compile, options.pace)
        except Exception as error:  # a case that fails must not end the others
            text = f"{type(error).__name__}: {str(error).splitlines()[0][:160]}"
            outcome = Outcome(number, case.family, case.size, case.dtype, case.train, error=text)
            print(f"case {number} ({case.family}, {case.size}, {case.dtype}): {text}", flush=True)
        outcomes.append(outcome)
        if options.json:  # after each: whoever runs this may have no time left
            options.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=1))
        if options.explain and not outcome.error and outcome.ratio > EXPLAINED:
            print_explained(case, outcome, options.device)
        gc.collect()
    if options.show:
        return
    report(outcomes, options.worst)
    print(f"{len(outcomes)} cases in {time.perf_counter() - begin:.0f} s")
    good = sorted((o for o in outcomes if not o.error), key=lambda o: -o.ratio)
    if options.write:
        write_scripts(good[: options.worst], options.write)
    if options.plot and good:
        plot([outcome.ratio for outcome in good], options.plot)
    sys.exit(any(outcome.error for outcome in outcomes))


if __name__ == "__main__":
    main()
