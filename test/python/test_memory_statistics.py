"""What `torch.lazy` says of its memory, and that the allocator behind it keeps and gives back as it
promises."""

from __future__ import annotations

import gc
import threading

import pytest
import torch
import torch.utils.checkpoint
from behaviour import hot, run_script, synchronize

pytestmark = pytest.mark.recording

MIB = 1 << 20


@pytest.fixture(autouse=True)
def _nothing_pending():
    synchronize()
    gc.collect()


def test_a_tensors_bytes_are_counted_while_it_lives():
    before = torch.lazy.memory_allocated()

    x = torch.empty(1000, 1000, device="lazy")
    assert torch.lazy.memory_allocated() - before == 4_000_000
    del x

    assert torch.lazy.memory_allocated() == before


def test_tensors_of_the_cpu_are_not_counted():
    x = torch.ones(1000, 1000, device="lazy")
    before = torch.lazy.memory_allocated()

    kept = [torch.ones(1000, 1000), x.cpu(), x.to("cpu", torch.float64)]

    assert torch.lazy.memory_allocated() == before
    assert len(kept) == 3


def test_the_peak_has_temporaries_and_can_be_reset():
    x = torch.ones(1000, 1000, device="lazy")
    torch.lazy.reset_peak_memory_stats()
    before = torch.lazy.memory_allocated()

    ((x + 1) * 2).sum().item()
    assert torch.lazy.max_memory_allocated() >= before + 8_000_000
    torch.lazy.reset_peak_memory_stats()

    assert torch.lazy.max_memory_allocated() == torch.lazy.memory_allocated() == before


def test_a_hot_windows_results_are_counted():
    x = torch.ones(1000, 1000, device="lazy")
    before = torch.lazy.memory_allocated()

    y = hot(lambda: (x + 1) * 2)

    assert torch.lazy.memory_allocated() - before == 4_000_000
    assert y.is_lazy


@pytest.mark.on_cpu("about the allocator of lazy tensors on the CPU")
def test_reserved_memory_outlives_a_tensor_until_the_cache_is_emptied():
    torch.lazy.empty_cache()
    before = torch.lazy.memory_reserved()

    torch.ones(4000, 4000, device="lazy")  # freed at once
    assert torch.lazy.memory_reserved() - before >= 64_000_000
    torch.lazy.empty_cache()

    assert torch.lazy.memory_reserved() - before < MIB
    assert torch.lazy.max_memory_reserved() - before >= 64_000_000


@pytest.mark.on_cpu("about the allocator of lazy tensors on the CPU")
def test_a_repeated_step_takes_no_new_memory_from_the_system():
    # Double: products of floats may go to oneDNN later on, which then takes scratch of its own.
    x = torch.ones(1000, 1000, dtype=torch.float64, device="lazy")

    def step():
        return torch.softmax(x @ x, dim=1).mean().item()

    hot(step)
    before = torch.lazy.memory_stats()
    for _ in range(10):
        step()
    after = torch.lazy.memory_stats()

    assert after["system_calls"] == before["system_calls"]
    assert after["allocations"] > before["allocations"]
    assert (
        after["cache_hits"] - before["cache_hits"] == after["allocations"] - before["allocations"]
    )


def test_checkpoints_save_memory_in_hot_steps():
    weight = torch.full((1 << 18,), 0.5, device="lazy", requires_grad=True)

    def block(x):
        for _ in range(6):
            x = torch.cumsum(x.view(512, -1) * 0.01, 1).view(-1).tanh()
        return x

    def step():
        y = weight
        for _ in range(6):
            y = torch.utils.checkpoint.checkpoint(block, y, use_reentrant=False)
        y.sum().backward()
        weight.grad = None

    def peak():
        torch.lazy.reset_peak_memory_stats()
        step()
        synchronize()
        return torch.lazy.max_memory_allocated()

    cold = peak()
    hot(step)

    assert peak() <= 1.1 * cold


def test_the_functions_take_a_device():
    for device in ("lazy", "lazy:0", 0, torch.device("lazy"), None):
        assert torch.lazy.memory_allocated(device) >= 0

    with pytest.raises(ValueError, match="expected a lazy device, but got cpu"):
        torch.lazy.memory_allocated("cpu")
    with pytest.raises(ValueError, match="there is no device lazy:3"):
        torch.lazy.max_memory_allocated(3)
    with pytest.raises(ValueError, match="there is no device lazy:3"):
        torch.lazy.reset_peak_memory_stats("lazy:3")


@pytest.mark.on_cpu("about the allocator of lazy tensors on the CPU")
def test_the_allocator_can_be_chosen_in_the_environment():
    code = """
import torch
x = torch.ones(1000, 1000, device="lazy") + 1
assert x.sum().item() == 2e6
print(torch.lazy.config.allocator, torch.lazy.memory_allocated())
"""
    caching = run_script(code, TORCH_LAZY_ALLOCATOR="caching")
    system = run_script(code, TORCH_LAZY_ALLOCATOR="system")
    wrong = run_script(code, TORCH_LAZY_ALLOCATOR="arena")

    assert caching.stdout.split() == ["caching", "4000000"], caching.stderr
    assert system.stdout.split() == ["system", "0"], system.stderr
    assert wrong.stdout.split() == ["caching", "4000000"], wrong.stderr
    assert "TORCH_LAZY_ALLOCATOR=arena is ignored: expected 'caching' or 'system'" in wrong.stderr


def test_the_allocator_cannot_be_changed_later():
    with pytest.raises(AttributeError, match="set TORCH_LAZY_ALLOCATOR in the environment"):
        torch.lazy.config.allocator = "system"


@pytest.mark.on_cpu("about the allocator of lazy tensors on the CPU")
@pytest.mark.parametrize("defer", ["hot", "never"])
def test_running_out_of_memory_raises_the_error_of_the_cpu(defer):
    torch.lazy.config.defer = defer
    with pytest.raises(RuntimeError) as expected:
        torch.ones(1 << 45)
    with pytest.raises(RuntimeError) as raised:
        torch.ones(1 << 45, device="lazy")

    assert str(raised.value) == str(expected.value)
    assert "can't allocate memory" in str(raised.value)


def test_tensors_live_longer_than_the_threads_that_made_them():
    before = torch.lazy.memory_allocated()
    made = []

    def work():
        for n in (10, 10_000, 10**6):
            made.append(torch.ones(n, device="lazy"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(tensor.sum().item() for tensor in made) == 4 * 1_010_010
    made.clear()
    synchronize()
    assert torch.lazy.memory_allocated() == before


def test_tensors_may_be_freed_while_the_process_exits():
    done = run_script(
        """
import atexit, torch
kept = [torch.ones(n, device="lazy") + 1 for n in (10, 10_000, 10**6)]
atexit.register(kept.clear)
late = torch.ones(10**6, device="lazy") * 2
print(late.sum().item())
"""
    )

    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["2000000.0"], "")


@pytest.mark.on_cpu("forked children have no device but the CPU")
def test_a_forked_child_allocates():
    """On one thread: OpenMP's team does not outlive a fork, on the CPU either."""
    done = run_script(
        """
import os, torch
torch.set_num_threads(1)
x = torch.ones(1000, 1000, device="lazy") + 1
child = os.fork()
y = (x + 1).sum().item()
assert y == 3e6
if child:
    assert os.waitpid(child, 0)[1] == 0
    print("both")
else:
    os._exit(0)
"""
    )

    assert done.stdout.strip() == "both", done.stderr
