"""The example accelerator (examples/accelerator) installs, passes its own tests, and behaves as the
CPU on random programs and PyTorch's samples.

All in child processes: a process has one such device, and this one's tests are about none.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from example_accelerator import SOURCES, run, run_random_programs, run_samples
from test_opinfo import COMMON


@pytest.mark.parametrize("beside_torch_lazy", [False, True])
def test_its_own_tests_pass(accelerator_site, beside_torch_lazy):
    options = ["-q", "-c", os.devnull, "-p", "no:cacheprovider", "--rootdir", SOURCES]

    run(
        accelerator_site,
        "-m",
        "pytest",
        *options,
        SOURCES / "test",
        TORCH_DEVICE_BACKEND_AUTOLOAD=str(int(beside_torch_lazy)),
    )


@pytest.mark.parametrize("longest_delay", [0, 50])
@pytest.mark.parametrize("profile", ["programs", "fusion"])
def test_random_programs_behave_as_on_the_cpu(accelerator_site, profile, longest_delay):
    environment = {
        "TORCH_LAZY_BACKEND": "reference",  # values have to be equal to the bit
        "ACCEL_LONGEST_DELAY": str(longest_delay),
    }

    run_random_programs(accelerator_site, "accel", profile, 15, **environment)


def test_operators_behave_as_on_the_cpu(accelerator_site):
    run_samples(accelerator_site, "accel", COMMON, TORCH_LAZY_BACKEND="reference")


def test_tensors_move_between_it_and_lazy(accelerator_site):
    script = """
import torch
there = torch.arange(3.0, device="lazy").to("accel")
back = (there + 1).to("lazy")
print(there.device, back.device, *back.tolist())
"""

    assert run(accelerator_site, "-c", script).split() == ["accel:0", "lazy:0", "1.0", "2.0", "3.0"]


@pytest.mark.on_cpu("elsewhere PyTorch has an accelerator already")
def test_without_eager_kernels_it_is_a_driver_and_no_device(tmp_path):
    configure = ["cmake", "-S", SOURCES, "-B", tmp_path, "-DACCELERATOR_EAGER=OFF"]
    subprocess.run([*configure, f"-DPython_EXECUTABLE={sys.executable}"], check=True)
    subprocess.run(["cmake", "--build", tmp_path], check=True)
    script = """
import torch, torch_accelerator
torch_accelerator.synchronize()
print(torch._C._get_privateuse1_backend_name(), torch.accelerator.current_accelerator())
"""

    assert run(tmp_path, "-c", script).split() == ["privateuseone", "None"]
