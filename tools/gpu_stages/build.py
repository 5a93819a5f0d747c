"""Builds the package against the torch of a Python, without the embedded Clang and without a
network; or takes one that was built elsewhere from the same sources and carried here."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from gpu_stages.stage import PACK, ROOT, Command, Context, StageFailed

SECONDS = 300
# The build follows from these, and from nothing else of the tree.
_SOURCES = (
    "csrc",
    "python",
    "cmake",
    "third_party",
    "CMakeLists.txt",
    "setup.py",
    "pyproject.toml",
)
_MADE_FOLDERS = {("python", "torch_lazy", "include"), ("python", "torch_lazy", "share")}
_STAMP = "built_from.json"  # in a site folder, beside the package


def fingerprint(python: str) -> dict[str, str]:
    """What a build depends on: the sources, and the minor versions of Python and torch."""
    versions = (
        "import sys, importlib.metadata as m;"
        "print('%d.%d' % sys.version_info[:2], '.'.join(m.version('torch').split('.')[:2]))"
    )
    told = subprocess.run([python, "-c", versions], capture_output=True, text=True, check=True)
    of_python, of_torch = told.stdout.split()
    return {"sources": _hash_of_sources(), "Python": of_python, "torch": of_torch}


def _hash_of_sources() -> str:
    whole = hashlib.sha256()
    for name in _SOURCES:
        top = ROOT / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and not _is_made(path.relative_to(ROOT)):
                whole.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()


def _is_made(path: Path) -> bool:
    """Whether a build or Python itself writes the file, which git then ignores."""
    return (
        path.suffix in (".so", ".pyc")
        or path.name == "_build_info.py"
        or any(part.endswith(".egg-info") for part in path.parts)
        or path.parts[:3] in _MADE_FOLDERS
    )


def install(python: str, site: Path, jobs: int, seconds: float, strip: bool = False) -> float:
    """Has pip build the package into `site`; returns how long it took. Raises StageFailed."""
    # Before: sources may be edited while they are compiled.
    stamp = {"fingerprint": fingerprint(python), "commit": _commit()}
    shutil.rmtree(site, ignore_errors=True)
    # Another compiler's warnings are no reason not to test there.
    options = ["-DTORCH_LAZY_CPU_COMPILER=OFF", "-DTORCH_LAZY_WERROR=OFF"]
    options += [f"-DCMAKE_PREFIX_PATH={PACK}"]
    environment = {
        **os.environ,
        "TORCH_LAZY_BUILD_DIR": str(ROOT / "build" / f"gpu-{Path(python).resolve().name}"),
        "CMAKE_ARGS": " ".join([*options, os.environ.get("CMAKE_ARGS", "")]),
        "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    pip = [python, "-m", "pip", "install", "-v", "--no-build-isolation", "--no-deps", "--no-index"]
    done = Command([*pip, "--target", str(site), str(ROOT)], seconds, environment).wait()
    if not done.succeeded:
        raise StageFailed(f"the build {done.reason}", done.output)
    if strip:
        for library in (site / "torch_lazy").glob("*.so"):
            subprocess.run(["strip", "--strip-debug", str(library)], check=True)
    (site / _STAMP).write_text(json.dumps(stamp))
    return done.seconds


def run(context: Context) -> dict[str, Any]:
    """Makes the package be in `context.site`."""
    wanted = fingerprint(sys.executable)
    carried = PACK / "site"
    for site, how in (
        (context.site, "was there already"),
        (carried, "was built elsewhere and carried"),
    ):
        stamp = _stamp_of(site)
        if stamp.get("fingerprint") == wanted:
            if site != context.site:
                shutil.copytree(site, context.site, dirs_exist_ok=True)
            return {"package": how, "commit": stamp["commit"], **_tried(context)}
    seconds = install(sys.executable, context.site, context.jobs, SECONDS)
    how = f"was built here in {seconds:.0f} s by {context.jobs} jobs"
    return {"package": how, "commit": _stamp_of(context.site)["commit"], **_tried(context)}


def _stamp_of(site: Path) -> dict[str, Any]:
    stamp = site / _STAMP
    return json.loads(stamp.read_text()) if stamp.is_file() else {}


def _commit() -> str | None:
    """The commit that the sources are of, None where that is not known."""
    git = ["git", "-C", str(ROOT)]
    quietly = {"capture_output": True, "text": True, "check": False}
    try:
        head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], **quietly)
        changed = subprocess.run([*git, "diff", "--quiet", "HEAD"], **quietly)
    except OSError:
        return None
    if head.returncode != 0:
        return None
    return head.stdout.strip() + (", with changes" if changed.returncode != 0 else "")


def _tried(context: Context) -> dict[str, Any]:
    """What the package says of its backends; raises where it cannot be imported."""
    ask = "import torch; print(*torch.lazy.backends(), sep='\\n')"
    done = Command([sys.executable, "-c", ask], 60, context.environment()).wait()
    if not done.succeeded:
        raise StageFailed(
            f"the package that was built cannot be used: it {done.reason}", done.output
        )
    return {"backends": done.output.splitlines()}
