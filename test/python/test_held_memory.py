"""How much memory a deferring window may keep alive longer than eager would."""

from __future__ import annotations

import pytest
from behaviour import EXECUTION_DEVICE, run_script
from test_cuda_scripts import printed

pytestmark = pytest.mark.recording

# The zeros are pending until the window ends, and eager would have freed them in the same step.
_STEP = """
def step():
    return torch.zeros(BYTES, dtype=torch.uint8, device="lazy")[:4] + 1
hot(step, runs=3)
step()
print(torch.lazy.metrics()["flushes"])
"""


def test_a_window_on_a_gpu_may_hold_more_than_a_gibibyte():
    """A sixteenth of the 80 GiB that the fake device says it has."""
    assert printed(_STEP.replace("BYTES", "1_200_000_000")) == ["{}"]


def test_a_number_of_bytes_is_taken_as_it_is():
    script = _STEP.replace("BYTES", "5000")

    assert printed(script, TORCH_LAZY_WINDOW_BYTES="4096") == ["{'bytes limit': 1}"]
    assert printed(script, TORCH_LAZY_WINDOW_BYTES="8192") == ["{}"]


_BATCHES = """
import torch, torch_lazy
weight = torch.randn(64, 1 << 16).to("lazy")
def epoch():
    total = torch.zeros((), device="lazy")
    for _ in range(40):
        total += (torch.ones(64, 1 << 16).to("lazy") * weight).sum()
    return total.item()
for _ in range(4):
    epoch()
    torch_lazy.wait_for_compiles()
torch_lazy.reset_metrics()
torch.lazy.reset_peak_memory_stats()
epoch()
print(torch.lazy.max_memory_allocated() >> 20, torch.lazy.metrics()["windows"].get("hot", 0) > 0)
"""


on_the_cpu = pytest.mark.skipif(
    EXECUTION_DEVICE != "cpu", reason="a window on a GPU may hold a sixteenth of its memory"
)


@on_the_cpu
def test_a_loop_that_reads_nothing_back_does_not_keep_its_data():
    """40 batches of 16 MiB, of which eager has one."""
    peak, is_hot = run_script(_BATCHES).stdout.split()

    assert int(peak) < 16 + 128 + 4 * 16
    assert is_hot == "True"


@on_the_cpu
def test_what_is_changed_as_a_whole_is_as_much_dead_as_alive():
    script = """
import torch, torch_lazy
weights = [torch.ones(1 << 22, device="lazy") for _ in range(16)]  # of 16 MiB
def step():
    for i, weight in enumerate(weights):
        weights[i] = weight * 0.5 + 0.5
    torch_lazy.synchronize()
for _ in range(4):
    step()
    torch_lazy.wait_for_compiles()
torch_lazy.reset_metrics()
step()
print(torch_lazy.metrics()["flushes"])
"""

    assert run_script(script).stdout.strip() == "{'synchronize': 1}"
