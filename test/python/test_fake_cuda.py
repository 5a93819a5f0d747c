"""The device cuda that test/fake_cuda makes inside a PyTorch without CUDA: an asynchronous device
that is stricter than a GPU, and device lazy on it. tools/test-on-fake-cuda runs the other tests
there.

All in child processes: a process has the device or has not, and this one's is without.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from behaviour import LEAVE
from example_accelerator import run, run_random_programs, run_samples
from test_opinfo import COMMON

SITE = Path(__file__).parents[1] / "fake_cuda" / "python"
LAZY_ON_IT = {"TORCH_LAZY_BACKEND": "reference", "TORCH_LAZY_DEVICE": "cuda"}


def run_on_device(script: str, **environment: str) -> list[str]:
    """The lines that a script prints in a process that has the device."""
    prelude = "import torch, fake_cuda\n"
    return run(SITE, "-c", prelude + script + LEAVE, **environment).splitlines()


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


def test_a_kernel_is_given_conjugate_tensors_as_they_are():
    script = """
x = torch.tensor([[1 + 1j, 2j], [3, 4]], device="cuda")
print(torch.equal((x.mH @ x).cpu(), x.cpu().mH @ x.cpu()))
"""

    assert run_on_device(script) == ["True"]


# ---------------------------------------------------------------- device lazy on it


def test_lazy_tensors_live_on_it_and_hot_windows_run_there():
    script = """
def step(x):
    return (x.mm(x) * 2 + x.sum(1, keepdim=True)).relu()
x = torch.arange(9.0).view(3, 3).to("lazy")
for _ in range(5):
    y = step(x)
    torch.lazy.synchronize()
    torch.lazy.wait_for_compiles()
print(torch.lazy.execution_device(), torch.equal(y.cpu(), step(x.cpu())))
print(torch.lazy.metrics()["windows"]["hot"] > 0)
"""

    assert run_on_device(script, **LAZY_ON_IT) == ["cuda True", "True"]


def test_torch_cuda_is_initialized_before_the_first_lazy_tensor():
    """Its statistics and seeds wait for that."""
    script = """
print(torch.cuda.is_initialized(), torch.lazy.memory_allocated())
x = torch.ones(100, device="lazy")
print(torch.cuda.is_initialized(), torch.lazy.memory_allocated())
"""

    assert run_on_device(script, **LAZY_ON_IT) == ["False 0", "True 400"]


def test_a_forked_child_is_told_that_it_has_no_device():
    script = """
import os
x = torch.ones(2, device="lazy") + 1
torch.lazy.synchronize()
if os.fork() == 0:
    for act in (lambda: torch.ones(2, device="lazy"), lambda: x + 1):
        try:
            act()
        except RuntimeError as error:
            print(error, flush=True)
    os._exit(0)
os.wait()
print(x.tolist())
"""
    refused = (
        "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you "
        "must use the 'spawn' start method"
    )

    assert run_on_device(script, **LAZY_ON_IT) == [refused, refused, "[2.0, 2.0]"]


def test_a_checkpointed_block_draws_the_same_numbers_again():
    """From the device's generator, whose state PyTorch keeps for devices that are initialized."""
    script = """
from torch.utils.checkpoint import checkpoint
x = torch.ones(40, 40, device="lazy", requires_grad=True)
y = checkpoint(lambda t: torch.nn.functional.dropout(t, 0.5), x, use_reentrant=False)
y.sum().backward()
print(torch.equal(x.grad.cpu(), y.detach().cpu()))
"""

    assert run_on_device(script, TORCH_LAZY_RNG="philox", **LAZY_ON_IT) == ["True"]


def test_a_write_that_a_schema_does_not_declare_is_found_in_its_memory():
    script = """
library = torch.library.Library("aten", "FRAGMENT")
library.define("torch_lazy_test_liar(Tensor x) -> Tensor")
library.impl("torch_lazy_test_liar", lambda x: x.add_(1).clone(), "CPU")
torch.lazy.config.check_effects = True
torch.ops.aten.torch_lazy_test_liar(torch.zeros(3, device="lazy"))
"""

    (warning, *_) = (line for line in run_on_device(script, **LAZY_ON_IT) if "liar" in line)
    assert "argument 'x' changed, but is not declared as written" in warning


def test_statistics_of_a_device_that_is_not_there_are_refused():
    script = """
torch.ones(1, device="lazy")
for device in (1, "lazy:1"):
    try:
        torch.lazy.max_memory_allocated(device)
    except ValueError as error:
        print(error)
"""

    assert (
        run_on_device(script, **LAZY_ON_IT)
        == ["there is no device lazy:1: device lazy has 1 device, lazy:0"] * 2
    )


def test_random_programs_behave_as_on_the_cpu():
    run_random_programs(SITE, "lazy", "programs", 15, **LAZY_ON_IT)


@pytest.mark.parametrize("device", ["cuda", "lazy"])
def test_operators_behave_as_on_the_cpu(device):
    run_samples(SITE, device, COMMON, **LAZY_ON_IT)
