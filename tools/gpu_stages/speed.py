"""The stages that measure: bandwidth by class of kernels, steps against peers, unseen programs."""

from __future__ import annotations

import json
import time
from typing import Any

from gpu_stages.stage import Context, Done, StageFailed, run

BANDWIDTH_SECONDS = 90
PEERS_SECONDS = 200
UNSEEN_SECONDS = 100
_ENDING = 15  # seconds in which a benchmark can still say what it has


def bandwidth(context: Context) -> dict[str, Any]:
    sizes = ["--mib", "1", "--rounds", "3", "--threads", "1"] if context.small else []
    return _rows(context, "bandwidth", sizes, BANDWIDTH_SECONDS)


def peers(context: Context) -> dict[str, Any]:
    seconds = min(PEERS_SECONDS, context.deadline - time.monotonic())
    arguments = ["--seconds", str(max(1.0, seconds - _ENDING))]
    if context.small:
        arguments += ["--small", "--modes", "eager,lazy", "--only", "mlp,chain_4k"]
        arguments += ["--budget", "0.1"]
    return _rows(context, "peers", arguments, seconds)


def unseen(context: Context) -> dict[str, Any]:
    """Test programs of benchmarks/unseen.py, as many as there is time for."""
    seconds = min(UNSEEN_SECONDS, context.deadline - time.monotonic())
    arguments = ["--test", "--cases", "1000", "--pace", "0.5"]
    arguments += ["--seconds", str(max(1.0, seconds - _ENDING))]
    if context.small:
        arguments[2:] = ["4", "--pace", "0.05"]
    return _rows(context, "unseen", arguments, seconds, TORCH_LAZY_RNG="eager")


def _rows(
    context: Context, name: str, arguments: list[str], seconds: float, **environment: str
) -> dict[str, Any]:
    """What the benchmark of that name has written; raises StageFailed where it complains."""
    written = context.results / f"{name}.part"
    written.unlink(missing_ok=True)
    script = [f"benchmarks/{name}.py", "--json", str(written), *arguments]
    done: Done = run(context, script, seconds, **environment)
    facts = {}
    if written.exists():
        facts["rows"] = json.loads(written.read_text())
        written.unlink()
    if not done.succeeded:
        raise StageFailed(f"benchmarks/{name}.py {done.reason}", done.output, facts)
    return facts
