"""What goes wrong in CUDA's driver is told, computes nothing wrong, and leaves no memory behind."""

from __future__ import annotations

import re

import pytest
from behaviour import run_script
from test_fake_cuda import run_on_device

# A training step of a window with kernels, library calls and writes to what it reads, which a
# failure interrupts at each place in turn. A step that raises is made again by the program.
_STEPS = """
import gc, warnings
import torch_lazy
warnings.simplefilter("ignore")
torch.manual_seed(0)

def state(device):
    torch.manual_seed(0)
    made = torch.randn(16, 8), torch.randn(16, 4), torch.zeros(16, 4)
    return [value.to(device) for value in made]

def step(weight, momentum, total, x):
    y = torch.softmax((x @ weight[:8]).repeat(1, 2)[:, :4].tanh() + 1, -1)
    momentum.mul_(0.9).add_(y, alpha=0.1)
    total.add_(momentum.cumsum(0) * 2)
    return (y.sum() + total.mean()).cpu()

def run(device, around=None):
    values = state(device)
    x = torch.randn(16, 8).to(device)
    results = []
    for i in range(10):
        if device == "lazy":
            torch_lazy._C.wait_for_compiles(60.0)
        before = [value.cpu() for value in values]
        try:
            if around and i == 8:
                around()
            results.append(step(*values, x))
            if device == "lazy":
                torch.accelerator.synchronize()
        except (RuntimeError, torch.OutOfMemoryError) as error:
            message = str(error).splitlines()[0]
            raised.add(message)
            fake_cuda.fail()
            for value, old in zip(values, before):
                value.copy_(old)
            results[8:] = [step(*values, x)]
        finally:
            awaited = fake_cuda.fail()
            if i == 8:
                not_come.append(awaited)
    return [*results, *(value.cpu() for value in values)]

raised, not_come = set(), []
expected = run("cpu")
run("lazy")
"""


def test_every_launch_and_every_allocation_may_fail():
    script = (
        _STEPS
        + """
for kind in ("launches", "allocations"):
    for n in range(100):
        gc.collect()
        memory = torch.cuda.memory_allocated()
        actual = run("lazy", lambda: fake_cuda.fail(**{kind: n}))
        torch.testing.assert_close(actual, expected)
        del actual
        gc.collect()
        assert torch.cuda.memory_allocated() == memory, (kind, n)
        if not_come.pop():  # the step has no more than n of them
            break
    print(kind, n > 0)
print(torch.lazy.metrics()["windows"]["hot"] > 50)
for message in sorted(raised):
    print(message)
"""
    )

    launches, allocations, hot, *messages = run_on_device(script, TORCH_LAZY_EARLY_OPERATIONS="4")

    assert [launches, allocations] == ["launches True", "allocations True"]
    assert hot == "True"
    of_launches = [message for message in messages if "cannot be launched" in message]
    of_memory = [message for message in messages if "CUDA out of memory" in message]
    assert of_launches
    assert of_memory
    assert len(messages) == len(of_launches) + len(of_memory)


def test_a_kernel_that_does_not_compile_is_told_with_its_source_and_the_line_of_the_script(
    tmp_path,
):
    script = """
import torch_lazy
x = torch.ones(8, 8, device="lazy")
fake_cuda.replace_in_programs("lazy_exp(", "nonsense(")
for _ in range(6):
    y = (x @ x).exp() + 1
    torch.lazy.synchronize()
    torch.lazy.wait_for_compiles()
print(torch.equal(y.cpu(), (x.cpu() @ x.cpu()).exp() + 1), torch.lazy.metrics()["fallbacks"])
"""

    *told, after = run_on_device(
        script, TORCH_LAZY_BACKEND="cuda", TORCH_LAZY_CACHE_DIR=str(tmp_path)
    )

    (warning,) = (line for line in told if "does not compile" in line)
    assert "the kernel kernel_exp_add_" in warning
    assert "(aten::exp <string>:7:" in warning
    assert re.search(r"line \d+, `.*lazy_exp\(.*`: .*torch_lazy.cu\(\d+\): error: ", warning)
    assert after == "True {'window not compiled': 1}"


def test_a_lost_device_is_an_error_at_once():
    script = (
        _STEPS
        + """
values = state("lazy")
x = torch.randn(16, 8, device="lazy")
fake_cuda.lose_device()
for _ in range(3):
    try:
        print(step(*values, x))
    except RuntimeError as error:
        print(str(error).splitlines()[0])
import os
os._exit(0)
"""
    )

    for line in run_on_device(script):
        assert "CUDA" in line or "launch failed" in line.lower(), line


@pytest.mark.on_cpu("the environment has a driver")
def test_without_a_driver_the_backend_says_what_is_missing():
    script = (
        "import torch, torch_lazy\n"
        "try:\n    torch_lazy.config.backend = 'cuda'\n"
        "except RuntimeError as error:\n    print(error)\n"
        "print(torch.ones(2, device='lazy').sum().item(), torch_lazy.config.backend)"
    )

    missing, after = run_script(script).stdout.splitlines()
    assert missing.startswith(
        "backend 'cuda' cannot be made: CUDA's driver cannot be opened as libcuda.so.1"
    )
    assert after == "2.0 cpu"


@pytest.mark.on_cpu("the environment has a driver")
def test_backends_are_listed_with_the_libraries_that_they_open():
    listed = "print(next(b for b in torch.lazy.backends() if b.name == 'cuda'))"

    without = run_script(f"import torch\n{listed}").stdout
    (found,) = run_on_device(listed)

    assert without.startswith("cuda (built in): CUDA's driver cannot be opened as libcuda.so.1")
    assert found.startswith("cuda (built in): available, by driver of CUDA ")
    assert "libnvrtc.so" in found
