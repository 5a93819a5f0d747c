"""The page in Markdown that the kit prints, for the README of a backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from torch_lazy.conformance.coverage import needed_by
from torch_lazy.conformance.runner import SectionReport
from torch_lazy.conformance.section import Options, Result

_USERS_SHOWN = 6
_FINDINGS_SHOWN = 8  # of a section
_LEFT_SHOWN = 20
_WIDTH = 400  # characters of a sentence in a table


@dataclass(frozen=True)
class Subject:
    """What was tried, by what."""

    versions: dict[str, str]
    options: Options

    @property
    def command(self) -> str:
        return f"python -m torch_lazy.conformance --backend {self.options.backend}"


def page(subject: Subject, reports: Sequence[SectionReport]) -> str:
    """Everything, as a document of its own."""
    parts = [
        f"# Conformance of backend `{subject.options.backend}`",
        _table(("what", "version"), list(subject.versions.items())),
        _verdict(reports),
        _sections(reports),
    ]
    parts += _findings(subject, reports)
    for report in reports:
        if report.section.name == "operators" and report.results:
            parts += _coverage(report)
        if report.section.name == "training":
            parts += _bytes_moved(report)
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(value: object) -> str:
    text = " ".join(str(value).split()).replace("|", "\\|")
    return text if len(text) <= _WIDTH else text[:_WIDTH] + "…"


def _verdict(reports: Sequence[SectionReport]) -> str:
    failed = [report.section.name for report in reports if not report.succeeded]
    elsewhere = sum(len(report.elsewhere) for report in reports)
    beside = f" Beside these {elsewhere} differ without the backend, too." if elsewhere else ""
    if not failed:
        return f"**Passed**: {len(reports)} of {len(reports)} sections.{beside}"
    return f"**Failed**: {len(failed)} of {len(reports)} sections ({', '.join(failed)}).{beside}"


def _sections(reports: Sequence[SectionReport]) -> str:
    rows = [
        (
            report.section.name,
            report.section.summary,
            report.passed,
            len(report.failed),
            len(report.not_applicable) or "",
            report.not_tried or "",
            f"{report.seconds:.0f} s",
        )
        for report in reports
    ]
    head = ("section", "what", "passed", "failed", "does not apply", "not tried", "time")
    return "## Sections\n\n" + _table(head, rows)


def _findings(subject: Subject, reports: Sequence[SectionReport]) -> list[str]:
    parts = []
    if any(report.failed for report in reports):
        parts.append("## What fails")
    for report in reports:
        shown = list(report.failed.items())[:_FINDINGS_SHOWN]
        parts += [_finding(subject, report.section.name, *finding) for finding in shown]
        if others := list(report.failed)[_FINDINGS_SHOWN:]:
            names = ", ".join(f"`{item}`" for item in others)
            parts.append(f"And {len(others)} more of {report.section.name}: {names}")
    stopped = [r.section.name for r in reports if r.not_tried]
    if stopped:
        parts.append(
            f"Not all of {', '.join(stopped)} was tried: after so many processes that died or hung "
            "the section was ended."
        )
    elsewhere = [(item, r.failure) for report in reports for item, r in report.elsewhere.items()]
    if elsewhere:
        parts += [
            "## What differs without the backend, too",
            "Run at the call, where the backend compiles nothing, these differ from eager on the "
            "CPU as well, in the same way: users cannot run them on its device.",
            _table(("what", "difference"), [(f"`{item}`", why) for item, why in elsewhere]),
        ]
    absent = [
        (f"{report.section.name}/{item}", result.does_not_apply)
        for report in reports
        for item, result in report.not_applicable.items()
    ]
    if absent:
        parts += ["## What does not apply", _table(("what", "reason"), absent)]
    return parts


def _finding(subject: Subject, section: str, item: str, result: Result) -> str:
    chosen = section if item == section else f"{section}/{item}"
    quick = " --quick" if subject.options.quick else ""
    seed = f" --seed {subject.options.seed}" if subject.options.seed else ""
    parts = [
        f"### {chosen}",
        (result.failure or "").strip(),
        f"See it again: `{subject.command}{quick}{seed} --only {chosen}`",
    ]
    if errors := result.facts.get("errors", "").strip():
        parts.append(f"```\n{errors}\n```")
    if result.script:
        environment = f"`TORCH_LAZY_BACKEND={subject.options.backend}`"
        parts.append(f"Or, with {environment} in the environment, by this script:")
        parts.append(f"```python\n{result.script.strip()}\n```")
    return "\n\n".join(parts)


def _coverage(report: SectionReport) -> list[str]:
    ran = {item: r.facts["ran"] for item, r in report.results.items() if "ran" in r.facts}
    if not ran:
        return []
    how = Counter(told["how"] for told in ran.values())
    parts = [
        "## Operators",
        "Who ran PyTorch's samples of its operators, forward and backward, once they were hot. "
        "*Compiled*: windows ran as the backend made them. *In part*: as it made them, but for "
        "operators of the graph that it left to ATen on the device or to the CPU. *Not compiled*: "
        "the backend refused a window, or torch_lazy had no form of it to give. *At the call*: no "
        "window is made of such operators.",
        _table(("ran", "operators"), how.most_common()),
    ]
    if left := needed_by(ran):
        rows = []
        for operator, where, users in left:
            shown = ", ".join(users[:_USERS_SHOWN]) + (", …" if len(users) > _USERS_SHOWN else "")
            rows.append((f"`{operator}`", where, len(users), shown))
        head = ("operator of the graph", "runs by", "needed by", "for instance")
        parts.append("What the backend leaves to others, what most operators need first:")
        parts.append(_table(head, rows[:_LEFT_SHOWN]))
        if more := rows[_LEFT_SHOWN:]:
            parts.append(_folded(f"{len(more)} more", _table(head, more)))
    rows = [
        (
            f"`{item}`",
            told["how"],
            ", ".join(f"`{operator}` by {where}" for operator, where in told["left"].items()),
            "" if not report.results[item].failure else "differs",
        )
        for item, told in ran.items()
    ]
    table = _table(("operator", "ran", "but for", "result"), rows)
    return [*parts, _folded(f"All {len(ran)} operators", table)]


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def _bytes_moved(report: SectionReport) -> list[str]:
    """In a warm step of each training loop, where torch_lazy counts it."""
    counted = {
        i: r.facts["bytes_moved"] for i, r in report.results.items() if "bytes_moved" in r.facts
    }
    names = sorted({name for told in counted.values() for name in told})
    if not names:
        return []
    rows = [(item, *(told.get(name, "") for name in names)) for item, told in counted.items()]
    return ["## Bytes moved in a warm training step", _table(("training", *names), rows)]
