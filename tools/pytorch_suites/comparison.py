"""What the CPU passes and a device does not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Comparison:
    """Of the tests of one file that both devices have."""

    suite: str
    one_in: int
    compared: int  # the CPU passes them, and the device does not skip them
    skipped: int  # the CPU passes them, and they are not for other devices
    failures: dict[str, str]  # outcome and last line by test

    @property
    def percent(self) -> str:
        """Of the compared tests; nothing where there are none."""
        passes = self.compared - len(self.failures)
        return f"{100 * passes / self.compared:.2f}" if self.compared else "none ran"


def compare(suite: str, one_in: int, cpu: Path, device: Path) -> Comparison:
    passed = {test for test, line in _read(cpu).items() if line["outcome"] == "passed"}
    on_device = {test: line for test, line in _read(device).items() if test in passed}
    skipped = {test for test, line in on_device.items() if line["outcome"] == "skipped"}
    failures = {
        test: f"{line['outcome']}: {_last_error(line.get('reason', ''))}"
        for test, line in on_device.items()
        if line["outcome"] not in ("passed", "skipped")
    }
    compared = len(on_device) - len(skipped)
    return Comparison(suite, one_in, compared, len(passed) - compared, failures)


def table(comparisons: list[Comparison]) -> str:
    lines = ["| suite | of its tests | the CPU passes | the device passes | percent | CPU only |"]
    lines += ["|---|---|---|---|---|---|"]
    total = Comparison(
        "all",
        1,
        sum(c.compared for c in comparisons),
        sum(c.skipped for c in comparisons),
        {f"{c.suite} {test}": why for c in comparisons for test, why in c.failures.items()},
    )
    for c in [*comparisons, total]:
        share = "" if c is total else "all" if c.one_in == 1 else f"one in {c.one_in}"
        passes = c.compared - len(c.failures)
        row = (c.suite, share, c.compared, passes, c.percent, c.skipped)
        lines.append("| " + " | ".join(map(str, row)) + " |")
    return "\n".join(lines)


def _read(results: Path) -> dict[str, dict[str, Any]]:
    lines = map(json.loads, results.read_text().splitlines())
    return {line["test"]: line for line in lines}


def _last_error(reason: str) -> str:
    lines = [line for line in reason.splitlines() if "Error" in line or "exit status" in line]
    return lines[-1] if lines else ""
