"""The example accelerator (examples/accelerator) installs, passes its own tests, and behaves as the
CPU on random programs and PyTorch's samples.

All in child processes: a process has one such device, and this one's tests are about none.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_opinfo import COMMON

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "accelerator"


def _run(site: Path, *arguments: object, **environment: str) -> str:
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip has installed the example; its objects stay in examples/accelerator/build."""
    target = tmp_path_factory.mktemp("accelerator")
    options = ["-q", "--no-build-isolation", "--no-deps", "--disable-pip-version-check"]
    _run(target, "-m", "pip", "install", *options, "--target", target, EXAMPLE)
    return target


@pytest.mark.parametrize("beside_torch_lazy", [False, True])
def test_its_own_tests_pass(site, beside_torch_lazy):
    options = ["-q", "-c", os.devnull, "-p", "no:cacheprovider", "--rootdir", EXAMPLE]

    _run(
        site,
        "-m",
        "pytest",
        *options,
        EXAMPLE / "test",
        TORCH_DEVICE_BACKEND_AUTOLOAD=str(int(beside_torch_lazy)),
    )


@pytest.mark.parametrize("longest_delay", [0, 50])
@pytest.mark.parametrize("profile", ["programs", "fusion"])
def test_random_programs_behave_as_on_the_cpu(site, profile, longest_delay):
    _run(
        site,
        HERE / "random_programs.py",
        *("--device", "accel", "--profile", profile, "--programs", 15),
        TORCH_LAZY_BACKEND="reference",  # values have to be equal to the bit
        ACCEL_LONGEST_DELAY=str(longest_delay),
    )


def test_operators_behave_as_on_the_cpu(site):
    _run(
        site,
        HERE / "opinfo.py",
        *("--device", "accel", "--samples", 2, "--ops", ",".join(COMMON)),
        TORCH_LAZY_BACKEND="reference",
    )


def test_tensors_move_between_it_and_lazy(site):
    script = """
import torch
there = torch.arange(3.0, device="lazy").to("accel")
back = (there + 1).to("lazy")
print(there.device, back.device, *back.tolist())
"""

    assert _run(site, "-c", script).split() == ["accel:0", "lazy:0", "1.0", "2.0", "3.0"]


def test_without_eager_kernels_it_is_a_driver_and_no_device(tmp_path):
    configure = ["cmake", "-S", EXAMPLE, "-B", tmp_path, "-DACCELERATOR_EAGER=OFF"]
    subprocess.run([*configure, f"-DPython_EXECUTABLE={sys.executable}"], check=True)
    subprocess.run(["cmake", "--build", tmp_path], check=True)
    script = """
import torch, torch_accelerator
torch_accelerator.synchronize()
print(torch._C._get_privateuse1_backend_name(), torch.accelerator.current_accelerator())
"""

    assert _run(tmp_path, "-c", script).split() == ["privateuseone", "None"]
