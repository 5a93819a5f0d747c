"""Runs sections in workers and keeps what came of every item."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from torch_lazy.conformance.fork_server import ForkServer
from torch_lazy.conformance.isolated import Outcome, run_isolated
from torch_lazy.conformance.section import Options, Result, Section
from torch_lazy.conformance.worker import start

# Crashes and hangs after which a section has shown enough: so many, and one in a hundred items.
MOST_DEATHS = 3


@dataclass
class SectionReport:
    """Of one section: a result for each item that was tried."""

    section: Section
    results: dict[str, Result] = field(default_factory=dict)
    not_tried: int = 0
    seconds: float = 0.0

    @property
    def failed(self) -> dict[str, Result]:
        return {i: r for i, r in self.results.items() if r.failure and not self._is_elsewhere(r)}

    @property
    def elsewhere(self) -> dict[str, Result]:
        """What differs, and does so without the backend."""
        return {i: r for i, r in self.results.items() if r.failure and self._is_elsewhere(r)}

    @property
    def not_applicable(self) -> dict[str, Result]:
        return {i: r for i, r in self.results.items() if r.does_not_apply}

    @property
    def passed(self) -> int:
        return sum(not r.failure and not r.does_not_apply for r in self.results.values())

    @property
    def succeeded(self) -> bool:
        shown = self.passed or len(self.not_applicable) == len(self.results)
        return not self.failed and not self.not_tried and bool(shown)

    def _is_elsewhere(self, result: Result) -> bool:
        return self.section.only_of_backend and result.facts.get("without_backend", False)


def summary(report: SectionReport) -> dict[str, Any]:
    """The section in numbers, with the reason of each failure: as JSON has it."""
    return {
        "section": report.section.name,
        "passed": report.passed,
        "does_not_apply": len(report.not_applicable),
        "not_tried": report.not_tried,
        "failed": {item: result.failure for item, result in report.failed.items()},
        "seconds": report.seconds,
    }


def run_section(
    section: Section,
    items: Sequence[str],
    options: Options,
    server: ForkServer,
    jobs: int = 1,
    seconds: float | None = None,
) -> SectionReport:
    """Tries the items in workers of the server's; a failure is tried once more without the
    backend."""
    started = time.monotonic()
    report = SectionReport(section)
    if section.missing:
        names = " and ".join(section.missing)
        report.results[section.name] = Result(
            failure=f"needs {names}, which PyTorch's own samples of operators import: install "
            f"{names} beside torch"
        )
        return report
    limit = seconds or section.seconds
    report.results = _tried(section, items, options, server, jobs, limit)
    report.not_tried = len(items) - len(report.results)
    failed = [item for item, result in report.results.items() if result.failure]
    if section.only_of_backend and failed:
        again = replace(options, without_backend=True)
        for item, result in _tried(section, failed, again, server, jobs, limit).items():
            same = _is_same_failure(report.results[item], result)
            report.results[item].facts["without_backend"] = same
    report.seconds = time.monotonic() - started
    return report


def _is_same_failure(result: Result, other: Result) -> bool:
    """Whether both differ, or raise, alike. The numbers in what they say may be others; where a
    process died or hung nothing is known."""
    if not other.failure or "errors" in result.facts or "errors" in other.facts:
        return False
    first, second = (
        re.sub(r"\d+", "", str(each.failure).split("\n")[0]) for each in (result, other)
    )
    return first == second


def _tried(
    section: Section,
    items: Sequence[str],
    options: Options,
    server: ForkServer,
    jobs: int,
    seconds: float,
) -> dict[str, Result]:
    results: dict[str, Result] = {}
    deaths = 0

    def report(outcome: Outcome) -> bool:
        nonlocal deaths
        deaths += outcome.died is not None
        if outcome.died:
            result = Result(failure=outcome.died, facts={"errors": outcome.errors})
        else:
            result = Result(**outcome.result)
        results[outcome.item] = result
        return deaths >= MOST_DEATHS + len(items) // 100

    run_isolated(partial(start, server, section, options), items, report, seconds, jobs, quiet=True)
    return {item: results[item] for item in items if item in results}
