"""Memory with lazy tensors on the device that test/fake_cuda makes: pinned memory, and what other
libraries and PyTorch's memory pools see of the device's."""

from __future__ import annotations

import pytest
from test_cuda_scripts import printed

# ---------------------------------------------------------------- pinned memory


def test_memory_is_pinned_for_the_device():
    script = """
pinned = torch.ones(3).pin_memory("lazy")
print(pinned.is_pinned(), pinned.is_pinned("lazy"), torch.ones(3).is_pinned("lazy"))
print(torch.empty(3, pin_memory=True).is_pinned())
"""

    assert printed(script) == ["True True False", "True"]


def test_a_copy_from_pinned_memory_does_not_wait_and_one_from_other_memory_reads_it_at_the_call():
    script = """
def step():
    pinned, pageable = torch.ones(3).pin_memory(), torch.ones(3)
    late, at_once = (t.to("lazy", non_blocking=True) for t in (pinned, pageable))
    pinned.fill_(2), pageable.fill_(2)
    return (late + 1).tolist(), (at_once + 1).tolist()
hot(step)
print(*step())
"""

    assert printed(script) == ["[3.0, 3.0, 3.0] [2.0, 2.0, 2.0]"]


def test_a_copy_from_pinned_memory_into_what_a_window_knows_does_not_wait():
    script = """
buffer = torch.zeros(3, device="lazy")
def step():
    pinned, pageable = torch.ones(3).pin_memory(), torch.ones(3)
    results = [buffer * 2]
    for source in pinned, pageable:
        buffer.copy_(source, non_blocking=True)
        results.append(buffer + 1)
        source.fill_(2)
    return [result.tolist() for result in results[1:]]
hot(step)
print(*step())
"""

    assert printed(script) == ["[3.0, 3.0, 3.0] [2.0, 2.0, 2.0]"]


def test_a_copy_to_pinned_memory_does_not_wait_and_is_there_after_an_event():
    script = """
def step():
    here, done = torch.zeros(3, pin_memory=True), torch.cuda.Event()
    here.copy_(x[0, :3] * 2, non_blocking=True)
    done.record()
    early = here.tolist()
    done.synchronize()
    return early, here.tolist() == (x.cpu()[0, :3] * 2).tolist()
hot(step)
print(step())
"""

    assert printed(script) == ["([0.0, 0.0, 0.0], True)"]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_pins_its_batches(workers):
    script = f"""
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(
    TensorDataset(torch.arange(4)), batch_size=2, pin_memory=True, num_workers={workers}
)
for (batch,) in loader:
    print(batch.is_pinned(), batch.to("lazy", non_blocking=True).tolist())
"""

    assert printed(script) == ["True [0, 1]", "True [2, 3]"]


# ---------------------------------------------------------------- other libraries


def test_other_libraries_see_the_memory_of_a_lazy_tensor_as_that_of_cuda():
    script = """
import ctypes
kept = x * 2
other = kept[:, 1:3]
interface = other.__cuda_array_interface__
expected = other.to("cuda").__cuda_array_interface__
print(interface["typestr"], interface["shape"], interface["strides"], interface["version"])
print(interface["data"] == (other.data_ptr(), False), expected["typestr"])
ctypes.c_float.from_address(interface["data"][0]).value = 7
print(kept.tolist()[0][1], (other + 1).tolist()[0][0])
"""

    assert printed(script) == ["<f4 (4, 2) (24, 4) 2", "True <f4", "7.0 8.0"]


def test_a_tensor_that_needs_a_gradient_shows_no_memory_as_on_cuda():
    script = """
for tensor in (x.clone().requires_grad_(), x.to("cuda").requires_grad_()):
    try:
        tensor.__cuda_array_interface__
    except RuntimeError as error:
        print(error)
"""

    of_lazy, of_cuda = printed(script)
    assert of_lazy == of_cuda


# ---------------------------------------------------------------- memory pools

# PyTorch without CUDA has the type of a pool, but none can be made.
_POOL = """
import contextlib

@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    print("begins", torch.lazy.metrics()["flushes"])
    yield
    print("ends", torch.lazy.metrics()["windows_run"])
torch.cuda.use_mem_pool = use_mem_pool
torch_lazy.integration.import_module("torch_lazy.integration.memory_pools").install()
hot(lambda: x * 2)
"""


def test_what_is_made_while_a_memory_pool_is_used_is_made_at_the_call():
    script = """
before = x * 2
with torch.cuda.use_mem_pool("pool"):
    allocated = torch.cuda.memory_allocated()
    inside = x * 2
    print(torch.cuda.memory_allocated() > allocated)
allocated = torch.cuda.memory_allocated()
behind = x * 2
print(torch.cuda.memory_allocated() > allocated)
print(torch.equal(before.cpu(), inside.cpu()))
"""

    assert printed(_POOL + script) == [
        "begins {'global state changed': 1}",
        "True",
        "ends 1",
        "False",
        "True",
    ]
