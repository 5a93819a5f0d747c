"""Whether results are right: classes of kernels, a model in training, and the kit for backends."""

from __future__ import annotations

import json
from typing import Any

from gpu_stages.stage import Context, StageFailed, run

SECONDS = 200  # an H200 with 16 cores did the first eight sections in 120
_SAMPLE_SECONDS = 60
_TRAINING_SECONDS = 60
# Of the kit, when the stages themselves are tried.
_SMALL_SECTIONS = ("copies/float32", "writes/an-input-may-be-given-twice")


def check(context: Context) -> dict[str, Any]:
    """Raises StageFailed, with all that was found out, unless everything passed."""
    facts: dict[str, Any] = {}
    failures, outputs = [], []

    def tried(name: str, script: list[str], seconds: float) -> None:
        written = context.results / f"{name}.part"
        written.unlink(missing_ok=True)
        done = run(context, [*script, "--json", str(written)], seconds)
        if written.exists():
            facts[name] = json.loads(written.read_text())
            written.unlink()
        if not done.succeeded:
            failures.append(f"{name} {done.reason}")
            outputs.append(f"--- {name}\n{done.output[-1500:]}")

    tried("samples", ["tools/gpu_stages/sample.py"], _SAMPLE_SECONDS)
    small = ["--small"] * context.small
    tried("training", ["tools/gpu_stages/training.py", *small], _TRAINING_SECONDS)
    kit = ["-m", "torch_lazy.conformance", "--backend", context.backend, "--quick"]
    kit += ["--jobs", str(context.jobs)]
    if context.small:
        kit += ["--only", ",".join(_SMALL_SECTIONS)]
    tried("kit", kit, SECONDS)
    if failures:
        raise StageFailed("; ".join(failures), "\n".join(outputs), facts)
    return facts
