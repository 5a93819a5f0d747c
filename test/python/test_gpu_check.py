"""tools/gpu_check: its stages, tried on the CPU with shrunken sizes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from behaviour import torch_lazy

pytestmark = pytest.mark.recording

ROOT = Path(__file__).parents[2]


def gpu_check(*arguments: object, **environment: str) -> subprocess.CompletedProcess:
    """Runs the command with the package that is under test."""
    site = Path(torch_lazy.__file__).parents[1]
    command = [sys.executable, str(ROOT / "tools" / "gpu_check"), *map(str, arguments)]
    return subprocess.run(
        [*command, "--site", str(site)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.on_cpu("the environment gives its stages another device")
def test_each_stage_writes_its_part_and_the_last_one_a_page_of_them(tmp_path):
    done = gpu_check("--device", "cpu", "--small", "--results", tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    states = {p.stem: json.loads(p.read_text())["state"] for p in tmp_path.glob("*.json")}
    assert states == {
        "correctness": "passed",
        "sanitizer": "does not apply",
        "bandwidth": "passed",
        "peers": "passed",
        "unseen": "passed",
    }
    page = (tmp_path / "gpu-results.md").read_text()
    assert "A trial of the stages on the CPU" in page
    for row in ("| float32 | ", "| copies | ", "| softmax | ", "| mlp | ", "| all | 4 | "):
        assert row in page


def test_a_stage_that_fails_is_reported_and_the_next_one_goes_on(tmp_path):
    done = gpu_check(
        *("bandwidth", "sanitizer", "page"),
        *("--device", "cpu", "--small", "--results", tmp_path),
        TORCH_LAZY="0",  # nothing is deferred, so there is nothing to measure
    )

    assert done.returncode == 1
    assert "bandwidth: failed" in done.stdout
    assert "sanitizer: does not apply" in done.stdout
    page = (tmp_path / "gpu-results.md").read_text()
    assert "## How stage bandwidth ended" in page
    assert "still not deferred after 20 repetitions" in page


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_it_says_so(tmp_path):
    done = gpu_check("correctness", "--results", tmp_path)

    assert done.returncode == 1
    assert "sees no CUDA device" in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_unknown_stage_is_refused_with_those_there_are(tmp_path):
    done = gpu_check("speed", "--results", tmp_path)

    assert done.returncode == 2
    assert "there is no stage 'speed': there are build, correctness, " in done.stderr


def test_the_page_names_files_without_the_folders_of_the_machine(tmp_path):
    facts = {
        "package": "was built",
        "commit": "0123abc",
        "backends": ["cuda: by /usr/lib64/libcuda.so.1 (a/b.py)"],
    }
    part = {
        "stage": "build",
        "machine": {"device": None, "date": "today"},
        "state": "failed",
        "reason": "it fails",
        "seconds": 1.0,
        "facts": facts,
        "output": 'File "/home/someone/tree/tools/try.py", line 1',
    }
    (tmp_path / "build.json").write_text(json.dumps(part))

    gpu_check("page", "--results", tmp_path)

    page = (tmp_path / "gpu-results.md").read_text()
    assert "The package was built, of commit 0123abc." in page
    assert "- `cuda: by libcuda.so.1 (a/b.py)`" in page
    assert 'File "try.py", line 1' in page
