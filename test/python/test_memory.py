"""Memory: a loop leaves the process no larger, dropped tensors are freed, and nothing is kept by
recording."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import time
import weakref

import pytest
import torch
from behaviour import hot, run_script, synchronize, torch_lazy, wait_for_compiles
from torch import nn

PAGE = os.sysconf("SC_PAGE_SIZE")
MIB = 1 << 20


@pytest.fixture(autouse=True)
def _one_thread():
    """What is measured is memory; on a busy machine two threads would make it slow."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def resident() -> int:
    """Bytes that the process keeps in memory for itself, not pages of files: the compiler's code
    comes and goes."""
    synchronize()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what the C library keeps for later says nothing of leaks
    with open("/proc/self/status") as status:
        anonymous = next(line for line in status if line.startswith("RssAnon:"))
    return int(anonymous.split()[1]) << 10


def growth(step, iterations: int, warm_up: int) -> float:
    """MiB by which the process grew over `iterations` calls, after `warm_up` of them."""
    for i in range(warm_up):
        step(i)
        if i < 8:
            wait_for_compiles()
    wait_for_compiles()  # of a busy machine
    before = resident()
    for i in range(iterations):
        step(i)
    return (resident() - before) / MIB


def test_a_thousand_training_steps_leave_memory_flat(device):
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def step(i):
        x = torch.randn(32, 64).to(device)
        nn.functional.mse_loss(net(x), torch.zeros(32, 8, device=device)).backward()
        optimizer.step()
        optimizer.zero_grad()

    assert growth(step, iterations=1000, warm_up=100) < 4


def test_a_thousand_reads_leave_memory_flat(device):
    x = torch.randn(64, 64).to(device)

    def step(i):
        return (x * 2 + 1).sum().item()

    assert growth(step, iterations=1000, warm_up=100) < 2


def test_windows_that_never_repeat_leave_memory_flat(device):
    """Each value of i is another constant; what is remembered of a window seen once is small."""
    x = torch.randn(256, 256).to(device)

    def step(i):
        return ((x + i) * (i + 0.5)).sum().item()

    assert growth(step, iterations=1000, warm_up=100) < 8


def test_a_long_run_without_a_sync_does_not_pile_up(device):
    """8 GiB of temporaries pass through, one alive at a time."""
    x = torch.ones(1024, 1024, device=device)
    state = {"y": x}

    def step(i):
        state["y"] = state["y"] * 0.999

    step(0)
    before = resident()
    peak = 0
    for i in range(2000):
        step(i)
        if i % 100 == 99:
            with open("/proc/self/statm") as statm:
                peak = max(peak, int(statm.read().split()[1]) * PAGE)
    assert (peak - before) / MIB < 1024


def test_a_dropped_tensor_is_freed_at_once(device):
    def churn():
        for _ in range(20):
            big = torch.ones(2048, 1024, device=device)  # 8 MiB
            big.add_(1)
            del big

    hot(churn, runs=3)
    before = resident()
    churn()

    assert (resident() - before) / MIB < 32


def test_recording_holds_no_reference(device):
    x = torch.ones(3, device=device)
    hot(lambda: x * 2 + 1)
    y = x * 2
    reference, storage = weakref.ref(y), weakref.ref(y.untyped_storage())

    z = y + 1
    assert reference() is not None
    assert storage() is not None
    del y

    assert reference() is None
    assert storage() is None
    assert z.tolist() == [3] * 3


def test_an_autograd_graph_is_freed_with_its_output(device):
    class Watched(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.token = Token()
            alive.add(ctx.token)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    class Token:
        pass

    alive: weakref.WeakSet = weakref.WeakSet()

    def step():
        Watched.apply(torch.ones(3, device=device, requires_grad=True)).sum()

    hot(step, runs=5)
    gc.collect()

    assert len(alive) == 0


@pytest.mark.recording
def test_the_process_does_not_start_threads_that_multiply(device):
    """In a process of its own: threads that other tests have left come and go."""
    script = f"""
import os, time
import torch, torch_lazy

def threads():
    return len(os.listdir("/proc/self/task"))

def hot(size, runs):
    for _ in range(runs):
        kept = torch.ones(size, device={device!r}) + 1
        torch_lazy.synchronize()
        torch_lazy.wait_for_compiles()

hot(3, runs=5)
before = threads()
for i in range(20):
    hot(3 + i, runs=4)
deadline = time.monotonic() + 10  # on a busy machine those that have done their work end late
while threads() - before > 1 and time.monotonic() < deadline:
    time.sleep(0.01)
print(torch_lazy.compile_count(), threads() - before)
"""

    compiles, more = run_script(script).stdout.split()

    assert int(compiles) > 0
    assert int(more) <= 1


def test_memory_of_freed_tensors_of_the_cpu_is_used_by_lazy_ones():
    """As a checkpoint's that was loaded is by gradients in eager."""
    script = """
import torch, torch_lazy

def resident():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("RssAnon:")).split()[1]) >> 10

one = torch.ones(1, device="lazy")
checkpoint = [torch.ones(1 << 20) for _ in range(64)]
end_of_heap = torch.ones(1 << 20)
before = resident()
del checkpoint
kept = [one.expand(1 << 20).clone() for _ in range(64)]
torch.lazy.synchronize()
print(resident() - before)
"""

    # All of the heap, which keeps what is not at its end.
    done = run_script(script, MALLOC_MMAP_THRESHOLD_=str(1 << 30), TORCH_LAZY_DEVICE="cpu")

    assert int(done.stdout) < 96  # of 256 MiB


def test_the_compilers_code_leaves_memory_when_nothing_compiles(device):
    if torch_lazy.config.backend != "cpu":
        pytest.skip("only the CPU backend has a compiler")

    def resident_code() -> int:
        bytes_resident, inside = 0, False
        with open("/proc/self/smaps") as smaps:
            for line in smaps:
                if re.match("[0-9a-f]+-[0-9a-f]+ ", line):
                    inside = line.rstrip().endswith("libtorch_lazy_compiler.so")
                elif inside and line.startswith("Rss:"):
                    bytes_resident += int(line.split()[1]) << 10
        return bytes_resident

    x = torch.randn(7, 11).to(device)
    hot(lambda: (x * 3 + 1).tanh())
    deadline = time.monotonic() + 10
    while resident_code() > 8 * MIB and time.monotonic() < deadline:
        time.sleep(0.05)

    assert resident_code() < 8 * MIB
