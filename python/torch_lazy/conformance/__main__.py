"""The command: ``python -m torch_lazy.conformance --backend NAME``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from torch_lazy.conformance.fork_server import ForkServer
from torch_lazy.conformance.page import Subject, page
from torch_lazy.conformance.runner import SectionReport, run_section, summary
from torch_lazy.conformance.section import Options, Section
from torch_lazy.conformance.sections import SECTIONS
from torch_lazy.conformance.worker import environment, work_of

_DESCRIPTION = """\
Tries whether a backend of torch_lazy keeps its contract, against eager on the CPU, and prints a
page in Markdown about it. The exit status is 0 if everything passed, 1 if something failed, 2 where
nothing could be tried.
"""


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m torch_lazy.conformance", description=_DESCRIPTION
    )
    parser.add_argument("--backend", metavar="NAME", help="as torch.lazy.backends() lists it")
    parser.add_argument("--quick", action="store_true", help="a part of it, in about two minutes")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="SECTION[/ITEM]",
        help="a section, or one item of it; may be repeated, or name several with commas between",
    )
    parser.add_argument("--seed", type=int, default=0, help="where random programs begin")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (all cores)"
    )
    parser.add_argument("--timeout", type=float, help="seconds for each item, in place of its own")
    parser.add_argument("--output", type=Path, metavar="PAGE.md", help="writes the page there too")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="writes there what came of each section so far"
    )
    parser.add_argument("--list", action="store_true", help="the sections; with --only their items")
    parser.add_argument(
        "--here",
        action="store_true",
        help="runs what --only names in this process, for a debugger, and prints no page",
    )
    chosen = parser.parse_args(arguments)
    if not chosen.backend and not chosen.list:
        parser.error("name the backend: --backend NAME")
    if chosen.here and not chosen.only:
        parser.error("--here needs --only SECTION/ITEM")
    return chosen


def _selection(only: Sequence[str], options: Options) -> list[tuple[Section, list[str]]]:
    """Sections, in their order, and the items of each."""
    wanted: dict[str, list[str]] = {}
    for word in ",".join(only or SECTIONS).split(","):
        name, _, item = word.partition("/")
        if name not in SECTIONS:
            _refuse(f"there is no section {name!r}: there are {', '.join(SECTIONS)}")
        wanted.setdefault(name, []).append(item)
    selected = []
    for name, section in SECTIONS.items():
        if name not in wanted:
            continue
        named = list(dict.fromkeys(item for item in wanted[name] if item))
        if section.missing:
            selected.append((section, named))
            continue
        for item in named:
            if not section.has(item):
                _refuse(f"section {name} has no item {item!r}: --list --only {name} lists them")
        selected.append((section, section.items(options) if "" in wanted[name] else named))
    return selected


def _refuse(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr)
    sys.exit(2)


_ASK = """
import json, sys
import torch, torch_lazy
from torch_lazy.conformance.section import Options
from torch_lazy.conformance.worker import prepare
options = Options(**json.loads(sys.argv[1]))
try:
    listed = {backend.name: backend for backend in torch_lazy.backends()}
    prepare(options)
    (torch.ones(2).to("lazy") * 2).tolist()
except (ValueError, RuntimeError) as error:
    sys.exit(str(error))
brought = listed[options.backend].distribution or f"torch_lazy {torch_lazy.__version__}"
count = torch_lazy.device_count()
print("\\n@@", json.dumps({
    "torch": torch.__version__,
    "torch_lazy": torch_lazy.__version__,
    "backend": f"{options.backend}, of {brought}",
    "device": f"{torch_lazy.get_device_name()}, {count} device{'s' * (count != 1)}",
}), flush=True)
"""


def _versions(options: Options, seconds: float) -> dict[str, str]:
    """What is tried, asked in a process of its own; the command ends where that is impossible."""
    command = [sys.executable, "-X", "faulthandler", "-c", _ASK, json.dumps(asdict(options))]
    try:
        told = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment(options),
            timeout=seconds,
            check=False,
        )
        found = [line for line in told.stdout.splitlines() if line.startswith("@@")]
        reason = told.stderr.strip() or f"the process ended with status {told.returncode}"
    except subprocess.TimeoutExpired:
        found, reason = [], f"no answer within {seconds:.0f} s"
    if not found:
        _refuse(f"backend {options.backend!r} cannot be used:\n{reason}")
    versions = json.loads(found[0].removeprefix("@@"))
    extent = "quick" if options.quick else "full"
    versions["Python"] = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    versions["kit"] = f"{extent}, seed {options.seed}"
    return versions


def _run_here(selected: list[tuple[Section, list[str]]], options: Options) -> int:
    failed = False
    for section, items in selected:
        work = work_of(section, options)
        for item in items:
            result = work(item)
            told = result["failure"] or result["does_not_apply"] or "passed"
            print(f"{section.name}/{item}: {told}")
            failed |= result["failure"] is not None
    return int(failed)


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _arguments(arguments)
    options = Options(chosen.backend or "", chosen.seed, chosen.quick)
    if chosen.list and not chosen.only:
        for section in SECTIONS.values():
            print(f"{section.name:16}{section.summary}")
        return 0
    selected = _selection(chosen.only, options)
    if chosen.list:
        for section, items in selected:
            print(*(f"{section.name}/{item}" for item in items), sep="\n")
        return 0
    if chosen.here:
        os.environ.update(environment(options))
        return _run_here(selected, options)
    reports: list[SectionReport] = []
    with ForkServer() as server:  # imports torch while the versions are asked for
        # The limit of an item is none for what a process imports before it.
        subject = Subject(_versions(options, seconds=max(chosen.timeout or 0.0, 60.0)), options)
        for section, items in selected:
            report = run_section(section, items, options, server, chosen.jobs, chosen.timeout)
            reports.append(report)
            state = "passed" if report.succeeded else f"{len(report.failed)} failed"
            print(f"{section.name}: {state} ({report.seconds:.0f} s)", file=sys.stderr, flush=True)
            if chosen.json:
                told = json.dumps([summary(report) for report in reports], indent=1)
                chosen.json.write_text(told)
    written = page(subject, reports)
    print(written)
    if chosen.output:
        chosen.output.write_text(written)
    return 0 if all(report.succeeded for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main())
