"""Train the same scripts on the CPU and on the lazy device and compare them.

Runs digits_cnn.py and char_gpt.py, each once per device in a process of its own, prints a table
of what happened, and writes a loss plot and the picture and text of the largest graph to a
folder. The exit status is 1 when the losses of the two devices do not agree.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

SCRIPTS = ("digits_cnn", "char_gpt")
TOLERANCE = 1e-4  # relative, each step's loss against the CPU's
LEARNING_STEPS = 5  # the optimizer's first step differs; then cold, warm and the compile
WARM_UP_STEPS = 20  # left out of the time a step


# --- One run, in a process of its own -------------------------------------------------------


def run_worker(script: str, device: str, steps: int, result: Path, graph: Path | None) -> None:
    """Train one script on one device; write its result, counters and largest graph."""
    import torch  # here, so that the parent process never loads it

    lazy = torch.lazy if device.split(":")[0] == "lazy" else None
    counters = [] if lazy is None else [lazy.metrics()]

    def on_step(step: int) -> None:
        if lazy is None:
            return
        if step < LEARNING_STEPS:  # so that what is counted below does not depend on the clock
            lazy.wait_for_compiles()
        counters.append(lazy.metrics())

    outcome = importlib.import_module(script).train(device, steps, None, on_step)
    outcome["steps_counted"] = [delta(b, a) for a, b in itertools.pairwise(counters)]
    outcome["total"] = delta(counters[-1], counters[0]) if counters else {}
    if lazy is not None and graph is not None:
        write_largest_graph(lazy.graphs(), graph)
    result.write_text(json.dumps(outcome))


def delta(after: dict, before: dict) -> dict:
    """Counters after minus before, also inside nested dictionaries; lists are no counts."""
    return {
        key: delta(value, before.get(key, {}))
        if isinstance(value, dict)
        else value - before.get(key, 0)
        for key, value in after.items()
        if not isinstance(value, list)
    }


def write_largest_graph(graphs: list, stem: Path) -> None:
    """Write the graph with the longest text as `stem`.svg and `stem`.torchscript.txt."""
    if not graphs:
        print(f"{stem.name}: no graph was recorded, none is drawn", file=sys.stderr)
        return
    largest = max(graphs, key=lambda graph: graph.text.count("\n"))
    stem.with_suffix(".svg").write_text(largest.svg())
    stem.with_suffix(".torchscript.txt").write_text(largest.text)


def start(script: str, device: str, steps: int, graph: Path | None) -> dict:
    """Run one worker process and return what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, __file__, "--worker", script, "--device", device]
        command += ["--steps", str(steps), "--result", str(result)]
        if graph is not None:
            command += ["--graph", str(graph)]
        if not sys.stderr.isatty():  # no progress bar will show
            print(f"training {script} on {device}, {steps} steps", flush=True)
        code = subprocess.run(command, check=False).returncode
        if code != 0:
            raise SystemExit(f"{script} on {device} failed with exit status {code}")
        return json.loads(result.read_text())


# --- Comparing and printing -----------------------------------------------------------------


def largest_difference(ours: list[float], reference: list[float]) -> float:
    """Largest relative difference of any step; infinite where the runs are not comparable."""
    if len(ours) != len(reference):
        return float("inf")
    worst = 0.0
    for a, b in zip(ours, reference, strict=True):
        difference = abs(a - b) / max(abs(b), 1e-12)
        # A NaN compares false with everything: it must count as a difference, not as none.
        worst = max(worst, difference) if difference == difference else float("inf")
    return worst


def step_time(run: dict) -> str:
    seconds = run["step_seconds"]
    return f"{1e3 * median(seconds[WARM_UP_STEPS:] or seconds):.2f} ms"


def counts(reasons: dict) -> str:
    """One line for each reason that occurred, most frequent first."""
    ordered = sorted(reasons.items(), key=lambda item: -item[1])
    return "\n".join(f"{name} {count}" for name, count in ordered if count) or "none"


def deferred_steps(run: dict) -> str:
    later = run["steps_counted"][LEARNING_STEPS:]
    whole = sum(step["eager"] == 0 and step["deferred"] > 0 for step in later)
    return f"{whole} of {len(later)}"


def windows_a_step(run: dict) -> str:
    later = [sum(step["windows"].values()) for step in run["steps_counted"][LEARNING_STEPS:]]
    if not later:
        return "-"
    low, high = min(later), max(later)
    return str(low) if low == high else f"{low} to {high} (median {median(later):g})"


def describe(run: dict, reference: dict | None) -> dict[str, str]:
    """The column of one run: row title to text. `reference` is the CPU's run, for others."""
    column = {
        "final loss": f"{run['losses'][-1]:.6f}",
        "accuracy": f"{run['accuracy']:.4f}",
        "time a step": step_time(run),
    }
    if reference is not None:
        worst = largest_difference(run["losses"], reference["losses"])
        verdict = "yes" if worst <= TOLERANCE else "NO"
        column[f"losses agree to {TOLERANCE:g}"] = f"{verdict} (largest {worst:.1e})"
    total = run["total"]
    if total:
        column |= {
            "operations recorded": f"{total['recorded']:,}",
            "deferred": f"{total['deferred']:,}",
            "run eagerly": f"{total['eager']:,}",
            f"wholly deferred after step {LEARNING_STEPS}": deferred_steps(run),
            f"windows a step after step {LEARNING_STEPS}": windows_a_step(run),
            "windows": counts(total["windows"]),
            "flushes": counts(total["flushes"]),
            "sync points": counts(total["syncs"]),
            "fallbacks": counts(total["fallbacks"]),
            "compiles": str(total["compiles"]),
        }
    return column


def print_table(columns: dict[str, dict[str, str]]) -> None:
    """Print columns side by side; a cell may have several lines."""
    titles = list(dict.fromkeys(title for column in columns.values() for title in column))
    rows = [["", *columns]]
    rows += [[title, *(column.get(title, "") for column in columns.values())] for title in titles]
    cells = [[cell.split("\n") for cell in row] for row in rows]
    widths = [max(len(line) for row in cells for line in row[i]) for i in range(len(rows[0]))]
    rule = "+".join("-" * (width + 2) for width in widths)
    for number, row in enumerate(cells):
        for line in range(max(map(len, row))):
            texts = [cell[line] if line < len(cell) else "" for cell in row]
            print(" " + " | ".join(t.ljust(w) for t, w in zip(texts, widths, strict=True)))
        if number == 0:
            print(rule)


def plot(runs: dict[str, dict[str, dict]], path: Path) -> None:
    """Losses and step times of every run, a column of plots for each script."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        2, len(runs), figsize=(6 * len(runs), 7), sharex="col", squeeze=False
    )
    # The reference wide and pale, ours thin upon it: equal curves stay both visible.
    styles = ({"linewidth": 4, "alpha": 0.35}, {"linewidth": 1.2})
    for column, (script, by_label) in enumerate(runs.items()):
        top, bottom = axes[0, column], axes[1, column]
        for (label, run), style in zip(by_label.items(), styles, strict=True):
            top.plot(run["losses"], label=label, **style)
            bottom.plot([1e3 * s for s in run["step_seconds"]], label=label, **style)
        top.set(title=script, ylabel="loss", yscale="log")
        bottom.set(xlabel="step", ylabel="ms a step", yscale="log")
        top.legend()
        top.grid(alpha=0.3)
        bottom.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def compare(device: str, steps: int, out: Path) -> bool:
    """Run everything, print and write the results; True where all losses agree."""
    begin = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    for script in SCRIPTS:  # so that no picture of an earlier run is taken for this one's
        for old in out.glob(f"{script}_graph.*"):
            old.unlink()
    columns: dict[str, dict[str, str]] = {}
    runs: dict[str, dict[str, dict]] = {}
    agree = True
    for script in SCRIPTS:
        reference = start(script, "cpu", steps, None)
        run = start(script, device, steps, (out / f"{script}_graph").resolve())
        agree &= largest_difference(run["losses"], reference["losses"]) <= TOLERANCE
        columns[f"{script} cpu (reference)"] = describe(reference, None)
        columns[f"{script} {device}"] = describe(run, reference)
        runs[script] = {"cpu (reference)": reference, device: run}
    print(f"\n{steps} training steps; counters are of the training steps alone\n")
    print_table(columns)
    plot(runs, out / "losses.png")
    print(f"\n{time.perf_counter() - begin:.0f} s; wrote to {out}:")
    for path in sorted(out.iterdir()):
        print(f"  {path.name}")
    return agree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="lazy", help="what to compare with cpu")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("demo_output"))
    for name in ("--worker", "--result", "--graph"):  # between this script and its workers
        parser.add_argument(name, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.steps < 1:
        parser.error("--steps must be at least 1")
    if args.worker:
        graph = Path(args.graph) if args.graph else None
        run_worker(args.worker, args.device, args.steps, Path(args.result), graph)
        return 0
    if compare(args.device, args.steps, args.out):
        return 0
    print("The losses of the two devices do not agree.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
