"""Why a program takes its time, in sentences: where to begin reading a profile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from torch_lazy.profiling.profile import profile

_MOST_HOT = 0.9
"""A program whose windows are hot to this share has begun to repeat itself."""
_FEW_GRAPHS = 4
"""Of one window: the last batch of an epoch is smaller, an epoch may begin in another way."""
_MUCH = 0.25
"""Of the time: worth a sentence."""


class Finding(NamedTuple):
    """One sentence or two."""

    weight: Literal["cause", "note"]
    """Whether it costs speed, or is merely good to know."""
    text: str


def findings(of: profile) -> list[Finding]:
    """Causes first, in the order in which they are worth looking at."""
    if not of.summary.states and not of.counters.get("fallbacks"):
        return [Finding("cause", _NOTHING)]
    found = [
        *_windows(of),
        *_shapes(of),
        *_guard_failures(of),
        *_fallbacks(of),
        *_syncs(of),
        *_time(of),
        *_limits(of),
    ]
    return sorted(found, key=lambda finding: finding.weight == "note")


_NOTHING = (
    "Nothing was recorded on device lazy. Move the model and its inputs there with .to('lazy'), "
    "and check that TORCH_LAZY=0 is not set."
)


def count(number: int, one: str, many: str = "") -> str:
    """``1 window``, ``2 windows``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _windows(of: profile) -> Iterator[Finding]:
    states = of.summary.states
    total = states.total()
    if total == 0 or states["hot"] >= _MOST_HOT * total:
        return
    hot = f"{states['hot']} of {count(total, 'window')} ran compiled (hot)."
    if states["guard failed"] >= max(states["cold"], states["warm"], 1):
        yield Finding(
            "cause", f"{hot} The others left the trace that they had followed: see below."
        )
    elif states["warm"] >= states["cold"]:
        yield Finding(
            "cause",
            f"{hot} Most others were met for the second time, or remembered, and are compiled in "
            "the background: call torch.lazy.wait_for_compiles() before the profile to see what "
            "they become.",
        )
    else:
        worst = max(of.summary.windows, key=lambda window: window.states["cold"])
        cold = count(worst.states["cold"], "window")
        operations = count(worst.operations, "operation")
        at = worst.line or "an unknown line"
        because = (
            "a shape, an index or an integer in it is another one each time. Make it a tensor, "
            "whose values may change"
            if worst.states["cold"] > 2
            else "these are its first steps"
        )
        yield Finding(
            "cause",
            f"{hot} Most others were met for the first time, among them {cold} of {operations} "
            f"from {at}: {because}.",
        )


def _shapes(of: profile) -> Iterator[Finding]:
    for window in of.summary.windows:
        if len(window.graphs) > _FEW_GRAPHS:
            at = f" at {window.line}" if window.line else ""
            yield Finding(
                "cause",
                f"Windows that begin{at} followed {len(window.graphs)} different graphs: a shape "
                "or a number changes from step to step, and each is compiled by itself once it was "
                "met twice. Pad or group inputs so that there are few.",
            )


def _guard_failures(of: profile) -> Iterator[Finding]:
    failures = of.summary.guard_failures
    if failures:
        worst = failures[0]
        at = f" at {worst.line}" if worst.line else ""
        yield Finding(
            "cause",
            f"{count(sum(f.count for f in failures), 'recording')} left the known traces, most "
            f"often{at}: {worst.why.removeprefix('guard failed ')}.",
        )


def _fallbacks(of: profile) -> Iterator[Finding]:
    for name, times in of.counters.get("fallbacks", {}).items():
        yield Finding("cause", _fallback(name, times))


def _fallback(name: str, times: int) -> str:
    """What a count under ``metrics()["fallbacks"]`` means; docs/troubleshooting.md lists them."""
    why = "TORCH_LAZY_DEBUG=2 says why."
    if name == "window not compiled":
        return f"{count(times, 'window')} could not be compiled and run node by node; {why}"
    if name == "compile failed":
        return f"{count(times, 'window')} could not be compiled and run eagerly; {why}"
    if name == "compile takes long":
        return (
            f"{count(times, 'compile')} took longer than config.compile_seconds: their windows "
            "run eagerly meanwhile, and no other is compiled."
        )
    if name == "window run again":
        return (
            f"{count(times, 'run')} of compiled windows failed although their operations, which "
            "then ran one by one, did not: the backend compiled them wrongly, or memory ran out."
        )
    for ending, where in ((" by ATen", "by PyTorch on the device"), (" on the CPU", "on the CPU")):
        if name.endswith(ending):
            return (
                f"{name.removesuffix(ending)} is left over by the backend in "
                f"{count(times, 'window')}, and runs {where}."
            )
    return (
        f"{name} was called {count(times, 'time')} and it is not known what it reads and "
        "writes: each call waits for all that is pending."
    )


def _syncs(of: profile) -> Iterator[Finding]:
    syncs = of.summary.syncs
    if not syncs:
        return
    total = sum(sync.count for sync in syncs)
    most = max(syncs, key=lambda sync: sync.count)
    windows = max(of.summary.states.total(), 1)
    at = f" at {most.line}" if most.line else ""
    # Those of the profile itself, as it is entered and left, run nothing that would not run.
    if most.count > 2 and total > windows / 2:
        yield Finding(
            "note",
            f"The program waited for values {count(total, 'time')}, most often{at} "
            f"({most.reason}, {count(most.count, 'time')}). Each wait ends a window: work before "
            "and after it is not fused.",
        )


def _time(of: profile) -> Iterator[Finding]:
    shares = of.summary.shares(of.duration)
    rest = shares[-1]
    states = of.summary.states
    mostly_hot = states["hot"] >= _MOST_HOT * states.total()
    if mostly_hot and rest.time > (1 - _MUCH) * of.duration:
        yield Finding(
            "note",
            f"{rest.time / of.duration:.0%} of the time passed outside of compiled windows: in "
            "Python, in recording, or in what the program does beside tensors. "
            "py-spy or torch.profiler with with_stack=True shows where.",
        )
    for step in of.summary.steps[:1]:
        if step.time > _MUCH * max(of.summary.running, 1):
            at = f" ({step.lines[0]})" if step.lines else ""
            rate = f", {step.rate:.1f} GB/s" if step.rate else ""
            yield Finding(
                "note",
                f"The {step.kind} {step.name}{at} takes "
                f"{step.time / of.summary.running:.0%} of what windows take{rate}.",
            )


def _limits(of: profile) -> Iterator[Finding]:
    compiles = of.summary.compiles
    if compiles:
        were = count(len(compiles), "window was", "windows were")
        yield Finding(
            "note",
            f"{were} compiled in the background meanwhile. Until it is known what is faster, a "
            "window runs in turns as compiled and as library calls, and half of these runs show no "
            "steps.",
        )
    if of.left_out:
        yield Finding(
            "cause", f"{of.left_out:,} events came after a million others and are not shown."
        )
