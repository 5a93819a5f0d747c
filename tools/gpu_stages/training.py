"""A small GPT trained on device lazy, against eager on the same device.

    python tools/gpu_stages/training.py [--small] [--json FILE]

Both begin with the same numbers and see the same tokens. Rounding makes two runs drift apart, so
what is compared is the loss of each step, and the bound grows with the steps.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from peer_workloads import gpt, make_step

STEPS = 20
# Relative: of the first step, which differs by the rounding of one forward pass, and of the last.
BOUNDS = {False: (1e-4, 5e-3), True: (1e-2, 5e-2)}


def losses(device: str, bf16: bool, small: bool) -> list[float]:
    torch.manual_seed(0)
    step = make_step(gpt(bf16)(small), device, lambda function: function)
    found = []
    for _ in range(STEPS):
        found.append(step().item())
        if device == "lazy":
            torch.lazy.wait_for_compiles()
    return found


def compared(bf16: bool, small: bool) -> dict[str, object]:
    """Losses, and their greatest relative difference; "failure" says what is off."""
    torch.lazy.reset_metrics()
    ours = losses("lazy", bf16, small)
    counted = torch.lazy.metrics()
    eager = losses(str(torch.lazy.execution_device()), bf16, small)
    first, last = BOUNDS[bf16]
    differences = [abs(a - b) / abs(b) for a, b in zip(ours, eager, strict=True)]
    failure = None
    for step, difference in enumerate(differences):
        bound = first + (last - first) * step / (STEPS - 1)
        if not difference <= bound:  # also where it is no number
            failure = f"step {step}: the loss is {ours[step]:.6f}, eager's {eager[step]:.6f}"
            break
    if eager[-1] >= eager[0]:
        failure = failure or f"eager itself does not learn: {eager[0]:.4f} to {eager[-1]:.4f}"
    if not counted["windows_run"]:
        failure = failure or f"no window ran compiled: {counted['windows']}"
    return {
        "first": eager[0],
        "last": eager[-1],
        "last of lazy": ours[-1],
        "greatest difference": max(differences),
        "windows": counted["windows"],
        "fallbacks": counted["fallbacks"],
        "failure": failure,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="where the figures are written too")
    parser.add_argument("--small", action="store_true", help="a tiny model")
    chosen = parser.parse_args()
    found = {}
    for name, bf16 in (("float32", False), ("autocast to bf16", True)):
        found[name] = compared(bf16, chosen.small)
        print(f"{name}: {found[name]}", flush=True)
        if chosen.json:
            chosen.json.write_text(json.dumps(found))
    return 1 if any(run["failure"] for run in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
