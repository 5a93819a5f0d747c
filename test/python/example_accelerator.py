"""The example accelerator (examples/accelerator), installed as its users do, in child processes: a
process has one such device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from behaviour import of_all_workers, run_forked
from filelock import FileLock

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


def install(factory: pytest.TempPathFactory, eager: bool) -> Path:
    """Where pip has installed the example, with eager kernels for PyTorch or without: once for all
    workers of a test run.

    Both choices make their objects in examples/accelerator/build, so one install runs at a time.
    """
    site = of_all_workers(factory) / ("accelerator" if eager else "offload")
    options = ["-q", "--no-build-isolation", "--no-deps", "--disable-pip-version-check"]
    choice = f"-DACCELERATOR_EAGER={'ON' if eager else 'OFF'}"
    (SOURCES / "build").mkdir(exist_ok=True)
    with FileLock(SOURCES / "build" / "install.lock"):
        if not (site / "torch_accelerator").is_dir():
            subprocess.run(
                [sys.executable, "-m", "pip", "install", *options, "--target", site, SOURCES],
                env={**os.environ, "CMAKE_ARGS": choice},
                check=True,
            )
    return site


def run(site: Path, *arguments: object, **environment: str) -> str:
    """What Python prints where the package is installed at `site`; it has to succeed."""
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = run_forked(*arguments, merge=True, PYTHONPATH=path, **environment)
    assert child.returncode == 0, child.stdout
    return child.stdout


def run_random_programs(
    site: Path, device: str, profile: str, programs: int, **environment: str
) -> None:
    """Random programs on the device behave as on the CPU."""
    options = ("--device", device, "--profile", profile, "--programs", programs)
    _conform(site, "random_programs", *options, **environment)


def run_samples(site: Path, device: str, operators: list[str], **environment: str) -> None:
    """PyTorch's samples of operators behave on the device as on the CPU."""
    options = ("--device", device, "--samples", 2, "--ops", ",".join(operators))
    _conform(site, "opinfo", *options, **environment)


def _conform(site: Path, module: str, *options: object, **environment: str) -> None:
    printed = run(site, "-m", f"torch_lazy.conformance.{module}", *options, **environment)
    assert "is ignored" not in printed, printed  # else the CPU was compared with itself
