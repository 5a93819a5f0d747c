"""The device's memory: out of the host's reach, allocated, resized and freed."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
import torch
import torch_accelerator


def test_a_touch_of_the_host_faults():
    touch = """
import ctypes, torch, torch_accelerator
tensor = torch.ones(4, device="accel")
torch.accel.synchronize()
ctypes.string_at(tensor.data_ptr(), 4)
"""

    child = subprocess.run([sys.executable, "-c", touch], check=False)

    assert child.returncode == -signal.SIGSEGV


def test_memory_freed_while_commands_wait_keeps_what_they_read():
    torch_accelerator.inject(longest_delay=5000, seed=1)
    read = torch.empty(1000, device="accel")
    for value in range(10):
        written = torch.full((1000,), float(value), device="accel")
        read.copy_(written)
        del written
        torch.full((1000,), -1.0, device="accel")

    assert (read.cpu() == 9).all()


def test_a_resized_storage_keeps_its_contents():
    tensor = torch.arange(4.0, device="accel")

    tensor.untyped_storage().resize_(64)

    assert tensor.untyped_storage().nbytes() == 64
    assert tensor.tolist() == [0, 1, 2, 3]


def test_a_resized_tensor_has_new_memory_and_its_old_values():
    tensor = torch.arange(4.0, device="accel")
    view = tensor[1:]

    tensor.resize_(2, 50)

    assert tensor.shape == (2, 50)
    assert tensor[0, :4].tolist() == [0, 1, 2, 3]
    view.fill_(7)
    assert tensor[0, 1].item() == 7


def test_more_than_there_is_is_out_of_memory():
    with pytest.raises(torch.OutOfMemoryError, match="accel: out of memory: 1099511627776 bytes"):
        torch.empty(1 << 40, dtype=torch.uint8, device="accel")


def test_an_allocation_fails_where_it_is_told_to():
    torch_accelerator.inject(failing_allocation=2)
    torch.empty(3, device="accel")

    with pytest.raises(torch.OutOfMemoryError, match="was to fail"):
        torch.empty(3, device="accel")

    torch.empty(3, device="accel")
