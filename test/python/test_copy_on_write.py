"""Clones that share memory until one of both is written, `torch._lazy_clone`: whoever writes, an
operator at the call, a kernel or another library, writes memory of its own."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from behaviour import each_run, same_on, synchronize

pytestmark = pytest.mark.on_cpu("asks for addresses of the host")


def shares(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch._C._data_address(a) == torch._C._data_address(b)


def made(device: str) -> torch.Tensor:
    return torch.arange(6.0).to(device)


def test_a_clone_shares_memory_and_has_a_storage_of_its_own(device):
    x = made(device)

    clone = torch._lazy_clone(x[2:4])

    assert shares(x, clone)
    assert torch._C._is_cow_tensor(x)
    assert torch._C._is_cow_tensor(clone)
    assert torch._C._storage_address(clone) != torch._C._storage_address(x)
    assert (clone.storage_offset(), clone.tolist()) == (2, [2, 3])


def test_reading_leaves_memory_shared(device):
    x = made(device)
    clone = torch._lazy_clone(x)

    sums = each_run(lambda: (x * 2 + clone).sum().item())

    assert sums == [45.0] * len(sums)
    assert shares(x, clone)


@pytest.mark.parametrize("written", ["original", "clone"])
def test_a_kernel_that_writes_one_leaves_the_other(device, written):
    def step():
        x = made(device)
        clone = torch._lazy_clone(x)
        synchronize()
        target, other = (x, clone) if written == "original" else (clone, x)
        target.mul_(2).add_(1)
        synchronize()
        assert not shares(x, clone)
        return target.tolist(), other.tolist()

    for found in each_run(step):
        assert found == ([1, 3, 5, 7, 9, 11], [0, 1, 2, 3, 4, 5])


def test_a_kernel_reads_and_writes_one_that_is_shared(device):
    def step(on):
        x = made(on)
        clone = torch._lazy_clone(x)
        synchronize()
        y = x.flip(0) + clone
        x[1:].add_(x[:-1] * y[1:])
        return x, clone, y

    same_on(device, step)


def test_the_last_owner_keeps_the_memory(device):
    x = made(device)
    address = torch._C._data_address(x)
    clone = torch._lazy_clone(x)

    x.add_(1)
    clone.add_(2)
    synchronize()

    assert torch._C._data_address(clone) == address
    assert (x.tolist(), clone.tolist()) == ([1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 7])


def test_pending_work_is_in_the_clone_and_later_work_is_not(device):
    def step(on):
        x = made(on)
        x.mul_(3)
        clone = torch._lazy_clone(x)
        x.add_(1)
        return x, clone, torch._lazy_clone(clone[::2])

    same_on(device, step)


def test_gradients_flow_through_a_clone(device):
    def step(on):
        x = made(on).requires_grad_()
        (torch._lazy_clone(x) * x).sum().backward()
        return x.grad

    same_on(device, step)


def test_what_others_see_is_no_longer_shared(device):
    x = made(device)
    clone = torch._lazy_clone(x)

    seen = np.from_dlpack(x)
    seen[:] = 7
    later = torch._lazy_clone(x)
    seen[:] = 8

    assert (x.tolist(), clone.tolist()) == ([8] * 6, [0, 1, 2, 3, 4, 5])
    assert later.tolist() == [7] * 6


def test_a_shared_storage_is_resized(device):
    x = made(device)
    clone = torch._lazy_clone(x)

    x.untyped_storage().resize_(32)
    x.resize_(8).fill_(1)

    assert (x.tolist(), clone.tolist()) == ([1] * 8, [0, 1, 2, 3, 4, 5])


def test_threads_write_and_read_clones_of_one_tensor(device):
    x = torch.ones(1 << 16).to(device)
    failures = []

    def work(number):
        for _ in range(20):
            clone = torch._lazy_clone(x)
            clone.add_(number)
            if (clone + x).sum().item() != (number + 2) * x.numel():
                failures.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not failures
