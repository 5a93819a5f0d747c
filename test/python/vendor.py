"""Backends from outside, as their vendors build and install them (test/vendor_backend)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from behaviour import of_all_workers, run_script, torch_lazy
from filelock import FileLock

SOURCES = Path(__file__).parents[1] / "vendor_backend"

# What users' scripts do: select a backend, and repeat a window until it is hot.
SCRIPT = """
import torch

def select(name):
    try:
        torch.lazy.set_backend(name)
    except (ValueError, RuntimeError) as error:
        print(error)

def hot(x, runs=4):
    for _ in range(runs):
        y = None
        torch.lazy.synchronize()
        y = (x * 2 + 1).relu()
        torch.lazy.synchronize()
        torch.lazy.wait_for_compiles()
    return y
"""


def build(factory: pytest.TempPathFactory) -> Path:
    """Builds the libraries out of the tree, once for all workers of a test run; returns where they
    are."""
    folder = of_all_workers(factory) / "vendor_backend"
    with FileLock(folder.with_suffix(".lock")):
        built = folder / "built"
        if not built.exists():
            _build(folder)
            built.touch()
    return folder


def _build(folder: Path) -> None:
    arguments = [f"-DCMAKE_PREFIX_PATH={torch_lazy.utils.cmake_prefix_path}"]
    arguments += [f"-DPython_EXECUTABLE={sys.executable}"]
    for command in (
        ["cmake", "-S", str(SOURCES), "-B", str(folder), *arguments],
        ["cmake", "--build", str(folder), "--parallel"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def install(folder: Path, backend: str, library: Path, package: str, body: str = "") -> None:
    """Makes `folder` hold an installed package whose entry point names the library."""
    (folder / f"{package}.py").write_text(
        f"def library():\n    {body or f'return {str(library)!r}'}\n"
    )
    information = folder / f"{package}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        f"[torch_lazy.backends]\n{backend} = {package}:library\n"
    )


def run_with(
    folder: Path, code: str, anew: bool = False, **environment: str
) -> subprocess.CompletedProcess:
    """Runs the script in a process, which may be one that is started anew, that has the packages in
    `folder`, with the default backend unless `environment` names another."""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    settings = {"TORCH_LAZY_BACKEND": "", "PYTHONPATH": path, **environment}
    return run_script(SCRIPT + code, anew=anew, **settings)
