"""The example accelerator (examples/accelerator), installed as its users do, in child processes: a
process has one such device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "examples" / "accelerator"

# For scripts: repeats windows until they are hot.
PRELUDE = """
import torch, torch_accelerator

def hot(step, runs=5):
    for _ in range(runs):
        result = step()
        torch.lazy.synchronize()
        torch.lazy.wait_for_compiles()
    return result
"""


def install(target: Path, eager: bool) -> Path:
    """Has pip install the example into `target`, with eager kernels for PyTorch or without.

    Its objects stay in examples/accelerator/build.
    """
    options = ["-q", "--no-build-isolation", "--no-deps", "--disable-pip-version-check"]
    choice = f"-DACCELERATOR_EAGER={'ON' if eager else 'OFF'}"
    run(target, "-m", "pip", "install", *options, "--target", target, SOURCES, CMAKE_ARGS=choice)
    return target


def run(site: Path, *arguments: object, **environment: str) -> str:
    """What a Python script prints where the package is installed at `site`; it has to succeed."""
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = subprocess.run(
        [sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
        check=False,
    )
    assert child.returncode == 0, child.stdout
    return child.stdout


def run_random_programs(
    site: Path, device: str, profile: str, programs: int, **environment: str
) -> None:
    """Random programs on the device behave as on the CPU."""
    options = ("--device", device, "--profile", profile, "--programs", programs)
    run(site, "-m", "torch_lazy.conformance.random_programs", *options, **environment)


def run_samples(site: Path, device: str, operators: list[str], **environment: str) -> None:
    """PyTorch's samples of operators behave on the device as on the CPU."""
    options = ("--device", device, "--samples", 2, "--ops", ",".join(operators))
    run(site, "-m", "torch_lazy.conformance.opinfo", *options, **environment)
