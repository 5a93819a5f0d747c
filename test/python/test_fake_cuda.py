"""The device cuda that test/fake_cuda makes inside a PyTorch without CUDA: an asynchronous device
that is stricter than a GPU.

All in child processes: a process has the device or has not, and this one's is without.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from example_accelerator import run

SITE = Path(__file__).parents[1] / "fake_cuda" / "python"


def run_on_device(script: str, **environment: str) -> list[str]:
    """The lines that a script prints in a process that has the device."""
    prelude = "import torch, fake_cuda\n"
    return run(SITE, "-c", prelude + script, **environment).splitlines()


def test_tensors_are_on_it_and_operators_behave_as_on_the_cpu():
    script = """
x = torch.arange(6.0, device="cuda").view(2, 3).requires_grad_()
(x.t() @ x).relu().sum().backward()
print(x.device, x.grad.device, x.grad.tolist())
"""

    assert run_on_device(script) == ["cuda:0 cuda:0 [[6.0, 6.0, 6.0], [24.0, 24.0, 24.0]]"]


def test_torch_cuda_says_that_it_is_there():
    script = """
print(torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.get_device_name())
print(torch.accelerator.current_accelerator())
x = torch.empty(100, device="cuda")
print(torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())
"""

    assert run_on_device(script) == ["True 1 CUDA emulator", "cuda", "400 400"]


def test_random_numbers_of_its_generators_are_the_cpu_s():
    script = """
torch.manual_seed(1)
expected = torch.rand(3)
torch.manual_seed(1)
print(torch.equal(torch.rand(3, device="cuda").cpu(), expected))
own = torch.Generator("cuda").manual_seed(1)
print(own.device, torch.equal(torch.rand(3, device="cuda", generator=own).cpu(), expected))
state = own.get_state()
first = torch.rand(3, device="cuda", generator=own)
own.set_state(state)
print(torch.equal(first, torch.rand(3, device="cuda", generator=own)))
"""

    assert run_on_device(script) == ["True", "cuda:0 True", "True"]


def test_a_copy_from_pinned_memory_reads_it_when_the_stream_comes_to_it():
    script = """
pinned, pageable = torch.ones(3).pin_memory(), torch.ones(3)
late, at_once = (x.to("cuda", non_blocking=True) for x in (pinned, pageable))
pinned.fill_(2), pageable.fill_(2)
print(late.tolist(), at_once.tolist())
"""

    assert run_on_device(script) == ["[2.0, 2.0, 2.0] [1.0, 1.0, 1.0]"]


def test_a_copy_to_pinned_memory_is_there_when_the_stream_was_waited_for():
    script = """
there, here = torch.ones(3, device="cuda"), torch.zeros(3, pin_memory=True)
here.copy_(there, non_blocking=True)
print(here.tolist())
torch.cuda.synchronize()
print(here.tolist())
"""

    assert run_on_device(script) == ["[0.0, 0.0, 0.0]", "[1.0, 1.0, 1.0]"]


@pytest.mark.parametrize(("waits", "seen"), [(False, "[nan, nan]"), (True, "[1.0, 1.0]")])
def test_what_another_stream_has_not_done_is_not_there(waits, seen):
    script = f"""
side = torch.cuda.Stream()
with side:
    made = torch.ones(2, device="cuda")
if {waits}:
    torch.cuda.current_stream().wait_stream(side)
print((made + 0).tolist())
"""

    assert run_on_device(script) == [seen]


@pytest.mark.parametrize("recorded", [False, True])
def test_memory_waits_for_the_streams_that_were_recorded_only(recorded):
    """Another stream is yet to read it when it is freed."""
    script = f"""
side = torch.cuda.Stream()
source, target = torch.ones(2, device="cuda"), torch.zeros(2, device="cuda")
torch.cuda.synchronize()
with side:
    target.copy_(source)
if {recorded}:
    source.record_stream(side)
del source
torch.cuda.default_stream().synchronize()
side.synchronize()
print(target.tolist(), torch.cuda.memory_allocated())
"""

    if recorded:
        assert run_on_device(script) == ["[1.0, 1.0] 8"]
    else:
        with pytest.raises(AssertionError, match="which has been freed"):
            run_on_device(script)


def test_an_allocation_that_does_not_fit_raises_and_the_device_goes_on():
    script = """
try:
    torch.empty(1 << 50, device="cuda")
except torch.OutOfMemoryError as error:
    print(error)
print(torch.ones(1, device="cuda").item())
"""

    assert run_on_device(script)[-2:] == [
        "CUDA out of memory. Tried to allocate 4503599627370496 bytes.",
        "1.0",
    ]


def test_windows_run_by_kernels_and_agree_with_the_cpu():
    script = """
import torch_lazy

x, w = torch.randn(64, 100), torch.randn(100)
on_lazy = x.to("lazy"), w.to("lazy")
def program(x, w, scale):
    y = torch.nn.functional.gelu(x * w + 1.5) * scale
    return torch.softmax(y, -1).sum(0)
for step in range(24):
    result = program(*on_lazy, 0.5 + step).cpu()
    torch_lazy._C.wait_for_compiles(60.0)
torch.testing.assert_close(result, program(x, w, 23.5))
metrics = torch.lazy.metrics()
print(torch.lazy.config.backend, metrics["windows"]["hot"] > 0, metrics["fallbacks"])
"""

    assert run_on_device(script) == ["cuda True {}"]


def test_an_index_out_of_range_raises_where_the_host_waits_and_the_device_lives_on():
    script = """
import torch_lazy

rows = torch.randn(10, 8)
table = rows.to("lazy")
def program(indices):
    return torch.nn.functional.embedding(indices.to("lazy"), table) * 2
good = torch.tensor([1, 2, 9])
for _ in range(12):
    program(good).cpu()
    torch_lazy._C.wait_for_compiles(60.0)
late = program(torch.tensor([1, 20, 9]))
try:
    late.cpu()
except IndexError as error:
    print(error)
print(torch.equal(program(good).cpu(), rows[good] * 2), torch.lazy.metrics()["fallbacks"])
"""

    message, operation, line, after = run_on_device(script)

    assert message == "index out of range"
    assert operation.strip() == "raised by the operation aten::embedding"
    assert "recorded at" in line
    assert after == "True {}"


def test_kernels_of_an_earlier_process_are_found_on_disk(tmp_path):
    script = """
import torch_lazy

x = torch.randn(100, device="lazy")
for _ in range(12):
    (x.sin() * 2 + 1).exp().sum().item()
    torch_lazy._C.wait_for_compiles(60.0)
times = torch.lazy.metrics()["compile_ns"]
print("nvrtc" in times, "load" in times)
"""

    first = run_on_device(script, TORCH_LAZY_CACHE_DIR=str(tmp_path))
    second = run_on_device(script, TORCH_LAZY_CACHE_DIR=str(tmp_path))

    assert (first, second) == (["True False"], ["False True"])
