"""How much memory a deferring window may keep alive longer than eager would."""

from __future__ import annotations

from test_cuda_scripts import printed

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
