"""Device lazy lives on the example accelerator, and windows are compiled by the example's table of
operators (examples/accelerator/csrc/backend.cpp), or run by `reference`.

All in child processes: a process has one execution device, and this one's is the CPU.
"""

from __future__ import annotations

import json

import pytest
from example_accelerator import PRELUDE, run, run_random_programs, run_samples
from test_opinfo import COMMON

pytestmark = pytest.mark.recording

BY_TABLE = {"TORCH_LAZY_BACKEND": "accel"}
BY_REFERENCE = {"TORCH_LAZY_BACKEND": "reference", "TORCH_LAZY_DEVICE": "accel"}
BOTH = pytest.mark.parametrize("backend", [BY_TABLE, BY_REFERENCE], ids=["table", "reference"])

TRAINING = """
import json, torch

def train(device):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16)]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(16, 4)).to(device)
    optimizer = {optimizer}
    x, y = torch.randn(32, 8).to(device), torch.randint(0, 4, (32,)).to(device)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        torch.lazy.wait_for_compiles()
    return [losses, *(p.tolist() for p in model.parameters())]

expected, actual = train("cpu"), train("lazy")
for e, a in zip(expected, actual):
    torch.testing.assert_close(torch.tensor(a), torch.tensor(e))
assert expected[0][-1] < 0.9 * expected[0][0]
print(json.dumps(torch.lazy.metrics()))
"""


def test_the_package_brings_the_backend_and_its_device(accelerator_site):
    script = """
import torch
print(torch.lazy.get_device_name(), torch.lazy.execution_device(), sep="\\n")
print(torch.lazy.backends()[-1])
"""

    name, device, listed = run(accelerator_site, "-c", script, **BY_TABLE).splitlines()

    assert (name, device) == ("accel on accel (example accelerator)", "accel")
    file = accelerator_site / "torch_accelerator" / "libtorch_accelerator_backend.so"
    assert listed == f"accel (torch_accelerator 0.1.0, {file}): available"


@BOTH
@pytest.mark.parametrize(
    "optimizer",
    [
        "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)",
        "torch.optim.Adam(model.parameters(), lr=0.01)",
    ],
    ids=["SGD", "Adam"],
)
def test_training_ends_in_hot_windows_and_equals_the_cpu(accelerator_site, backend, optimizer):
    script = TRAINING.replace("{optimizer}", optimizer)

    metrics = json.loads(run(accelerator_site, "-c", script, **backend))

    assert metrics["windows"]["hot"] >= 8
    by_table = backend is BY_TABLE
    assert set(metrics["fallbacks"]) <= ({"aten::nll_loss_forward by ATen"} if by_table else set())


def test_what_the_table_has_is_performed_by_commands(accelerator_site):
    script = """
def step():
    return (x.mm(x) * 2 + x.sum(1, keepdim=True)).relu().to(torch.int64)
x = torch.arange(9.0).view(3, 3).to("lazy")
print(hot(step).tolist(), torch.lazy.metrics()["fallbacks"])
"""

    printed = run(accelerator_site, "-c", PRELUDE + script, TORCH_LAZY_DEBUG="3", **BY_TABLE)

    assert printed.splitlines()[-1] == "[[33, 39, 45], [96, 120, 144], [159, 201, 243]] {}"
    assert "6 commands, 0 kernels, 0 library calls, 0 copies" in printed


@BOTH
@pytest.mark.parametrize("longest_delay", [0, 50])
@pytest.mark.parametrize("profile", ["programs", "fusion"])
def test_random_programs_behave_as_on_the_cpu(accelerator_site, backend, profile, longest_delay):
    delay = {"ACCEL_LONGEST_DELAY": str(longest_delay)}

    run_random_programs(accelerator_site, "lazy", profile, 30, **delay, **backend)


def test_operators_behave_as_on_the_cpu(accelerator_site):
    run_samples(accelerator_site, "lazy", COMMON, **BY_TABLE)


@BOTH
def test_a_command_that_fails_is_raised_at_a_sync_and_the_process_lives(accelerator_site, backend):
    script = """
x = torch.ones(3).to("lazy")
hot(lambda: (x * 2 + 1).relu())
torch_accelerator.inject(failing_command=1)
try:
    y = (x * 2 + 1).relu()
    torch.lazy.synchronize()
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(hot(lambda: (x * 2 + 1).relu()).tolist())
"""

    printed = run(accelerator_site, "-c", PRELUDE + script, **backend)

    assert printed.splitlines() == ["accel: this command was to fail", "[3.0, 3.0, 3.0]"]


def test_a_command_of_an_earlier_window_that_fails_is_raised_by_the_next(accelerator_site):
    """The next window learns of it in a library call, and is run again by its operations."""
    script = """
p, x = torch.zeros(3).to("lazy"), torch.rand(3).to("lazy")

def step():
    p.add_(1)
    torch.set_default_dtype(torch.float64)  # ends the window, and does not wait for the device
    ordered = torch.sort(x)[0] + 1
    torch.set_default_dtype(torch.float32)
    return ordered

hot(step)
torch_accelerator.inject(failing_command=1)
try:
    hot(step, 1)
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""

    printed = run(accelerator_site, "-c", PRELUDE + script, **BY_TABLE)

    assert printed.splitlines() == ["accel: this command was to fail"]


@pytest.mark.parametrize("runs", [0, 5], ids=["at the call", "in a window"])
def test_a_failure_told_late_names_the_operation_and_line_it_comes_from(accelerator_site, runs):
    """Whatever operation waits for it, and however late commands run."""
    script = f"""
x = torch.ones(1000).to("lazy")
def step():
    doubled = x * 2
    powers = doubled.exp()
    return powers.cos()
hot(step, {runs}) if {runs} else None
torch_accelerator.synchronize()
commands = 1
while True:
    torch_accelerator.inject(failing_command=commands, longest_delay=500, seed=1)
    try:
        step()
        torch.lazy.synchronize()
        break
    except RuntimeError as error:
        told = str(error).splitlines()
        print(told[1].split()[-1], told[2].split(":")[1])
    commands += 1
"""

    printed = run(accelerator_site, "-c", PRELUDE + script, **BY_TABLE).splitlines()

    first = PRELUDE.count("\n") + 4
    assert list(dict.fromkeys(printed)) == [
        f"aten::{name} {first + line}" for line, name in enumerate(["mul.Tensor", "exp", "cos"])
    ]


def test_a_condition_that_is_known_when_a_window_is_compiled_stays_a_condition(accelerator_site):
    script = """
x = torch.arange(3.0).to("lazy")
none = lambda: torch.full((3,), 0.5, device="lazy") > 2
print(hot(lambda: torch.where(none(), x * 2, x + 1)).tolist())
"""

    printed = run(accelerator_site, "-c", PRELUDE + script, **BY_TABLE)

    assert printed.splitlines() == ["[1.0, 2.0, 3.0]"]
