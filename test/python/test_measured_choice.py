"""Windows that are timed both ways, as compiled and as library calls, and then run the faster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from behaviour import run_script
from vendor import install, run_with

pytestmark = pytest.mark.recording

# A window that writes its input and takes less than a microsecond, run far longer than anything
# takes to be chosen.
RUNS = 20_000
WINDOW = f"""
import json, torch
x = torch.zeros(8).to('lazy')
for _ in range({RUNS}):
    x.add_(1).mul_(1)
    torch.lazy.synchronize()
    torch.lazy.wait_for_compiles()
metrics = torch.lazy.metrics()
print(json.dumps({{key: metrics[key] for key in ('choices', 'chosen')}} | {{'x': x.tolist()}}))
"""


def counted(directory: Path, setup: str = "", **environment: str) -> dict[str, Any]:
    done = run_script(
        setup + WINDOW,
        anew=False,
        TORCH_LAZY_CACHE_DIR=str(directory),
        **{"TORCH_LAZY_MEASURED_CHOICE": "1", **environment},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def slow_backend(vendor_libraries, tmp_path) -> Path:
    """A folder of packages with a backend whose every run takes two milliseconds."""
    folder = tmp_path / "packages"
    folder.mkdir()
    install(folder, "vendor", vendor_libraries / "libvendor_backend.so", "vendor_package")
    return folder


def counted_with_slow_backend(packages: Path, directory: Path) -> dict[str, Any]:
    done = run_with(
        packages,
        WINDOW,
        anew=True,  # it remembers beyond the process
        TORCH_LAZY_BACKEND="vendor",
        VENDOR_BACKEND="slow",
        TORCH_LAZY_MEASURED_CHOICE="1",
        TORCH_LAZY_CACHE_DIR=str(directory),
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_run_of_the_program_happens_once_while_ways_take_turns(tmp_path):
    assert counted(tmp_path)["x"] == [float(RUNS)] * 8


@pytest.mark.kernels
@pytest.mark.on_cpu("nothing is measured on devices that run behind the host")
def test_what_was_chosen_is_counted_once_for_each_window(tmp_path):
    assert sum(counted(tmp_path)["choices"].values()) == 1


@pytest.mark.kernels
def test_a_backend_that_is_slow_is_replaced_by_library_calls_and_said_so(slow_backend, tmp_path):
    found = counted_with_slow_backend(slow_backend, tmp_path)

    assert found["choices"] == {"library calls": 1}
    assert found["x"] == [float(RUNS)] * 8
    assert "of 2 operations, recorded at" in found["chosen"][0]
    assert "library calls, 0.0" in found["chosen"][0]
    assert "in place of as compiled, 2." in found["chosen"][0]


def test_the_next_process_remembers(slow_backend, tmp_path):
    counted_with_slow_backend(slow_backend, tmp_path)

    found = counted_with_slow_backend(slow_backend, tmp_path)

    assert found["choices"] == {"library calls, remembered": 1}
    assert found["x"] == [float(RUNS)] * 8


@pytest.mark.parametrize(
    ("setup", "environment"),
    [
        ("", {"TORCH_LAZY_MEASURED_CHOICE": "0"}),
        ("", {"TORCH_LAZY_VERIFY": "1"}),
        ("", {"TORCH_LAZY_BACKEND": "reference"}),
        ("import torch\ntorch.use_deterministic_algorithms(True)\n", {}),
    ],
    ids=["the setting", "verify mode", "the reference backend", "deterministic algorithms"],
)
def test_nothing_is_measured_under(setup, environment, tmp_path):
    assert counted(tmp_path, setup, **environment)["choices"] == {}


def test_nothing_is_kept_where_no_cache_is_wanted(tmp_path):
    counted(tmp_path, TORCH_LAZY_CACHE_BYTES="0")

    assert list(tmp_path.iterdir()) == []
