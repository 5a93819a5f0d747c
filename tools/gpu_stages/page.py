"""docs/gpu-results.md: what the stages found on a GPU, and nothing else."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpu_stages.stage import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

PAGE = ROOT / "docs" / "gpu-results.md"
_HEAD = """\
# Results on a GPU

Written by `tools/gpu_check` from what it measured, and by nothing else."""
_NO_GPU = """\
No GPU was at hand: nothing was measured. `tools/gpu_check` builds, tests and measures on a machine
that has one, and writes this page."""
_TRIAL = "**A trial of the stages on the CPU, with shrunken sizes: the figures mean nothing.**"
_OUTPUT_SHOWN = 25  # lines of what a failed stage printed last

Part = Mapping[str, Any]


def page(parts: Mapping[str, Part]) -> str:
    """The page about the parts, by stage. Where they are of several machines it says so."""
    if not parts:
        return f"{_HEAD}\n\n{_NO_GPU}\n"
    sections = [_HEAD, *([] if measured(parts) else [_TRIAL]), _machines(parts), _states(parts)]
    for name, part in parts.items():
        if facts := part["facts"]:
            sections += _SECTIONS[name](facts)
    sections += [_failure(name, part) for name, part in parts.items() if part["state"] == "failed"]
    return "\n\n".join(sections) + "\n"


def measured(parts: Mapping[str, Part]) -> bool:
    """Whether they are about a GPU, and not a trial of the stages."""
    return bool(parts) and all(part["machine"]["device"] for part in parts.values())


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def _machines(parts: Mapping[str, Part]) -> str:
    """What all stages have in common once, then where one of them differs."""
    first = next(iter(parts.values()))["machine"]
    rows = [(key, value) for key, value in first.items() if key != "date" and value is not None]
    dates = sorted(part["machine"]["date"] for part in parts.values())
    rows.append(("date", dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"))
    for name, part in parts.items():
        rows += [
            (f"{key}, stage {name}", value)
            for key, value in part["machine"].items()
            if key != "date" and value != first[key]
        ]
    return table(("what", "value"), rows)


def _states(parts: Mapping[str, Part]) -> str:
    rows = [
        (name, part["state"], part["reason"] or "", f"{part['seconds']:.0f}")
        for name, part in parts.items()
    ]
    return "## Stages\n\n" + table(("stage", "state", "why", "seconds"), rows)


def _failure(name: str, part: Part) -> str:
    end = _without_folders("\n".join(part["output"].rstrip().splitlines()[-_OUTPUT_SHOWN:]))
    return f"## How stage {name} ended\n\n{part['reason']}\n\n```\n{end}\n```"


def _without_folders(text: str) -> str:
    """Files by their names: where they lay is that machine's."""
    return re.sub(r"(?<![\w./:])/(?:[\w.+-]+/)+([\w.+-]+)", r"\1", text)


def _build(facts: Part) -> list[str]:
    backends = [f"- `{_without_folders(line)}`" for line in facts["backends"]]
    of_commit = f", of commit {facts['commit']}" if facts.get("commit") else ""
    return ["## Build", f"The package {facts['package']}{of_commit}.", "\n".join(backends)]


def _correctness(facts: Part) -> list[str]:
    written = [
        "## Correctness",
        "Against eager on the same device. Of the kit operators and random programs are compared\n"
        "so, the rest with eager on the CPU.",
    ]
    if samples := facts.get("samples"):
        failed = {name: why for name, why in samples.items() if why}
        written.append(f"Windows of each class of kernels: {len(samples) - len(failed)} of "
                       f"{len(samples)} right.")  # fmt: skip
        if failed:
            written.append(
                table(("class", "what is wrong"), [(n, w[:300]) for n, w in failed.items()])
            )
    if training := facts.get("training"):
        rows = [
            (
                name,
                f"{run['first']:.4f}",
                f"{run['last']:.4f}",
                f"{run['last of lazy']:.4f}",
                f"{run['greatest difference']:.1e}",
                run["failure"] or "as eager",
            )
            for name, run in training.items()
        ]
        head = ("small GPT", "first loss", "last, eager", "last, lazy", "greatest difference", "")
        written.append(table(head, rows))
    if kit := facts.get("kit"):
        rows = [
            (s["section"], s["passed"], len(s["failed"]), s["does_not_apply"], s["not_tried"])
            for s in kit
        ]
        written.append(table(("kit", "passed", "failed", "does not apply", "not tried"), rows))
        failed = [(f"{s['section']}/{i}", why[:300]) for s in kit for i, why in s["failed"].items()]
        if failed:
            written.append(table(("failed", "why"), failed))
    return written


def _sanitizer(facts: Part) -> list[str]:
    rows = [
        (name, "–" if tool["errors"] is None else tool["errors"], tool["samples"])
        for name, tool in facts.items()
    ]
    return ["## compute-sanitizer", table(("tool", "errors", "classes of kernels done"), rows)]


def _bandwidth(facts: Part) -> list[str]:
    rows = [
        (
            row["kernel"],
            f"{row['bytes'] / 1e6:.0f}",
            f"{row['seconds'] * 1e3:.3f}",
            f"{row['bandwidth'] / 1e9:.0f}",
            f"{row['of_copy']:.2f}",
            f"{row['to_eager']:.2f}",
        )
        for row in facts["rows"]
    ]
    if rows:
        copies = sorted(row["copy_bandwidth"] for row in facts["rows"])
        rows.append(("copy", "", "", f"{copies[len(copies) // 2] / 1e9:.0f}", "1.00", ""))
    explained = (
        'MB is the least that must be read and written; "of copy" the share of what a copy on the\n'
        'device moves in the same rounds; "to eager" the time by eager\'s, under 1 is faster\n'
        "(`benchmarks/bandwidth.py`)."
    )
    return [
        "## Bandwidth by class of kernels",
        explained,
        table(("kernel", "MB", "ms", "GB/s", "of copy", "to eager"), rows),
    ]


def _peers(facts: Part) -> list[str]:
    import peers  # of benchmarks/

    modes = list(dict.fromkeys(mode for row in facts["rows"].values() for mode in row))
    lines = [peers.heading(modes)]
    lines += [peers.line_of(name, row, modes) for name, row in facts["rows"].items()]
    wrong = [f"- {line}" for line in peers.problems(facts["rows"])]
    written = ["## Steps against peers", peers.DEFINITIONS.rstrip(), "\n".join(lines)]
    return [*written, "\n".join(wrong)] if wrong else written


def _unseen(facts: Part) -> list[str]:
    import unseen  # of benchmarks/

    outcomes = [unseen.Outcome(**row) for row in facts["rows"]]
    good = [outcome for outcome in outcomes if not outcome.error]
    explained = (
        "Generated programs that nothing was tuned for, of the seeds kept for the end, as many as\n"
        "there was time for: the time of a hot step by eager's, under 1 is faster\n"
        "(`benchmarks/unseen.py`)."
    )
    groups = {
        size: [outcome for outcome in good if outcome.size == size]
        for size in dict.fromkeys(outcome.size for outcome in good)
    }
    rows = []
    for name, group in [*groups.items(), ("all", good)] if good else ():
        mean, over, far_over, worst = unseen.figures(group)
        rows.append(
            (name, len(group), f"{mean:.2f}", f"{over:.1%}", f"{far_over:.1%}", f"{worst:.2f}")
        )
    head = ("step works on", "programs", "geometric mean", "over 1.05", "over 1.1", "worst")
    written = ["## Unseen programs", explained, table(head, rows)]
    failed = [(o.number, o.family, o.error[:300]) for o in outcomes if o.error]
    return [*written, table(("case", "family", "what is wrong"), failed)] if failed else written


_SECTIONS = {
    "build": _build,
    "correctness": _correctness,
    "sanitizer": _sanitizer,
    "bandwidth": _bandwidth,
    "peers": _peers,
    "unseen": _unseen,
}


def write(parts: Mapping[str, Part], elsewhere: Path) -> Path:
    """Writes docs/gpu-results.md, or `elsewhere` what is a trial. Without parts it refuses to take
    the place of what was measured."""
    target = elsewhere if parts and not measured(parts) else PAGE
    if not parts and PAGE.exists() and _NO_GPU not in PAGE.read_text():
        sys.exit(f"There is no part of any stage, and {PAGE} has figures: name the folder of the "
                 "parts by --results")  # fmt: skip
    target.write_text(page(parts))
    return target
