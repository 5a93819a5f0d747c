"""Device lazy lives on the example accelerator built without eager kernels: windows run on it, and
every other operator on the CPU. What moves between both is counted.

All in child processes: a process has one execution device, and this one's is the CPU.
"""

from __future__ import annotations

import json

import pytest
from example_accelerator import PRELUDE, run, run_random_programs, run_samples
from test_opinfo import COMMON

pytestmark = pytest.mark.recording

BACKEND = {"TORCH_LAZY_BACKEND": "accel"}

TRAINING = """
import json, torch
from torch.nn import functional as F

steps, warm = 12, 8

def train(device, batches, labels):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16)]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(16, 4)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(steps):
        if step == warm:
            torch.lazy.reset_metrics()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batches[step].to(device)), labels[step].to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        torch.lazy.wait_for_compiles()
    moved = torch.lazy.metrics()["bytes_moved"]
    return moved, losses, [p.tolist() for p in model.parameters()]

batches, labels = torch.randn(steps, 32, 8), torch.randint(0, 4, (steps, 32))
_, *expected = train("cpu", batches, labels)
moved, *actual = train("lazy", batches, labels)
for e, a in zip(expected, actual):
    torch.testing.assert_close(a, e, rtol=1e-5, atol=1e-6)
print(json.dumps(moved))
"""


def test_training_moves_the_batch_in_and_the_loss_out(offload_site):
    batch, loss, hot_steps = 32 * (8 * 4 + 8), 4, 4

    moved = json.loads(run(offload_site, "-c", TRAINING, **BACKEND))

    assert moved == {
        "to device: a window": hot_steps * batch,
        "to host: aten::_local_scalar_dense": hot_steps * loss,
    }


def test_what_a_window_made_moves_to_the_operator_that_reads_it(offload_site):
    script = """
x = torch.ones(4, 4).to("lazy")
y = hot(lambda: (x + x).relu() * 2)
torch.lazy.reset_metrics()
y.median()                       # not in the table, and not in a known trace
torch.lazy.synchronize()
print(torch.lazy.metrics()["bytes_moved"])
"""

    printed = run(offload_site, "-c", PRELUDE + script, **BACKEND)

    assert printed.splitlines() == ["{'to host: aten::median': 64}"]


def test_writes_through_views_are_seen_on_both_sides(offload_site):
    script = """
base = torch.zeros(3, 2).to("lazy")
row = base[1]

def step():                      # on the device
    base.add_(1)
    row.mul_(3)

for i in range(6):
    hot(step, 1)
    with torch.no_grad():
        row.put_(torch.tensor([0]).to("lazy"), torch.tensor([float(i)]).to("lazy"))  # on the CPU
print(base.tolist())
"""
    expected = [[6.0, 6.0], [5.0, 1092.0], [6.0, 6.0]]

    printed = run(offload_site, "-c", PRELUDE + script, **BACKEND)

    assert printed.splitlines() == [str(expected)]


@pytest.mark.parametrize("longest_delay", [0, 50])
@pytest.mark.parametrize("profile", ["programs", "fusion"])
def test_random_programs_behave_as_on_the_cpu(offload_site, profile, longest_delay):
    delay = {"ACCEL_LONGEST_DELAY": str(longest_delay)}

    run_random_programs(offload_site, "lazy", profile, 30, **delay, **BACKEND)


def test_operators_behave_as_on_the_cpu(offload_site):
    run_samples(offload_site, "lazy", COMMON, **BACKEND)


def test_a_number_that_changes_fills_memory_of_the_device(offload_site):
    script = """
x = torch.arange(3.0).to("lazy")
for number in (0.5, 1.5, 2.5, 3.5, 4.5):
    y = hot(lambda: torch.empty_like(x).fill_(number) + x, 1)
print(y.tolist(), torch.lazy.metrics()["dynamic_scalars"])
"""

    printed = run(offload_site, "-c", PRELUDE + script, ACCEL_LONGEST_DELAY="2000", **BACKEND)

    assert printed.splitlines() == ["[4.5, 5.5, 6.5] 1"]


def test_the_device_has_the_backends_name_and_counts_its_memory(offload_site):
    script = """
import torch
print(torch.lazy.execution_device(), torch.lazy.get_device_name())
before = torch.lazy.memory_allocated()
x = torch.ones(1024).to("lazy")
print(torch.lazy.memory_allocated() - before, torch.accel.memory_allocated() > 0)
del x
print(torch.lazy.memory_allocated() - before)
"""

    printed = run(offload_site, "-c", script, **BACKEND)

    name, *memory = printed.splitlines()
    assert name == "accel accel on accel (example accelerator)"
    assert memory == ["4096 True", "0"]


def test_a_checkpoint_of_the_device_loads_on_the_cpu_and_back(offload_site, tmp_path):
    script = f"""
import torch
model = torch.nn.Linear(4, 4).to("lazy")
torch.save(model.state_dict(), {str(tmp_path / "model.pt")!r})
on_cpu = torch.load({str(tmp_path / "model.pt")!r}, map_location="cpu")
back = torch.load({str(tmp_path / "model.pt")!r})
print(on_cpu["weight"].device, back["weight"].device)
assert torch.equal(model.weight.cpu(), on_cpu["weight"])
assert torch.equal(model.weight, back["weight"])
"""

    printed = run(offload_site, "-c", script, **BACKEND)

    assert printed.splitlines() == ["cpu lazy:0"]


def test_attention_is_composed_of_what_the_device_has(offload_site):
    script = """
import torch
from torch.nn import functional as F

def run(device):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True).to(device)
    x = torch.randn(2, 5, 16).to(device)
    layer(x).square().mean().backward()
    attended = F.scaled_dot_product_attention(x, x, x, is_causal=True)
    with torch.no_grad():
        return [layer.eval()(x), attended, layer.linear1.weight.grad]

for step in range(5):
    actual = [value.cpu() for value in run("lazy")]
    torch.lazy.wait_for_compiles()
torch.testing.assert_close(actual, run("cpu"))
print("equal")
"""

    assert run(offload_site, "-c", script, **BACKEND).splitlines() == ["equal"]


def test_a_failure_of_the_device_is_raised_where_the_host_waits(offload_site):
    script = """
x = torch.ones(4).to("lazy")
step = lambda: x * 2 + 1
hot(step)
torch_accelerator.inject(failing_command=1)
try:
    hot(step, 1)
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(hot(step, 1).tolist())
"""

    printed = run(offload_site, "-c", PRELUDE + script, **BACKEND)

    assert printed.splitlines() == ["accel: this command was to fail", "[3.0, 3.0, 3.0, 3.0]"]


def test_a_failure_names_its_operation_where_each_is_waited_for(offload_site):
    script = """
x = torch.ones(4).to("lazy")
step = lambda: (x + 1).tanh() * 3
hot(step)
torch_accelerator.inject(failing_command=2)
try:
    hot(step, 1)
except RuntimeError as error:
    print(*str(error).splitlines()[:3], sep="\\n")
print(hot(step, 1).tolist() == (x.cpu() + 1).tanh().mul(3).tolist())
"""

    printed = run(offload_site, "-c", PRELUDE + script, TORCH_LAZY_BLOCKING="1", **BACKEND)

    error, operation, line, equal = printed.splitlines()
    assert error == "accel: this command was to fail"
    assert operation == "  raised by the operation aten::tanh"
    assert line.startswith("  recorded at <string>:")
    assert equal == "True"


def test_collectives_exchange_the_hosts_bytes(offload_site, tmp_path):
    script = f"""
import torch.distributed as dist
dist.init_process_group("gloo", init_method="file://{tmp_path / "store"}", rank=0, world_size=1)
x = torch.ones(4).to("lazy")
y = hot(lambda: x * 2)
dist.all_reduce(y)
print((y + 1).tolist())
dist.destroy_process_group()
"""

    printed = run(offload_site, "-c", PRELUDE + script, **BACKEND)

    assert printed.splitlines() == ["[3.0, 3.0, 3.0, 3.0]"]


def test_sparse_gradients_are_the_hosts(offload_site):
    script = """
import torch
table = torch.nn.Embedding(5, 2, sparse=True).to("lazy")
table(torch.tensor([1, 3, 1]).to("lazy")).sum().backward()
print(table.weight.grad.coalesce().values().tolist())
"""

    printed = run(offload_site, "-c", script, **BACKEND)

    assert printed.splitlines() == ["[[2.0, 2.0], [1.0, 1.0]]"]


def test_what_operators_write_into_members_is_seen_on_the_device(offload_site):
    script = """
import warnings
warnings.simplefilter("ignore")
x = torch.eye(2).to("lazy")
compressed = x.to_sparse_csr()
view = compressed.values()
print((view + 1).tolist())
compressed.mul_(3)
print((view + 1).tolist(), (compressed @ x).tolist())
quantized = torch.quantize_per_tensor(x, 0.5, 0, torch.qint8)
quantized.view(4)[:2].copy_(torch.zeros(2).to("lazy"))
print(quantized.dequantize().tolist())
nested = torch.nested.nested_tensor([x[0], x[1, :1]])
part = nested.unbind()[0]
nested.mul_(4)
print((part + 1).tolist())
"""

    printed = run(offload_site, "-c", PRELUDE + script, **BACKEND)

    assert printed.splitlines() == [
        "[2.0, 2.0]",
        "[4.0, 4.0] [[3.0, 0.0], [0.0, 3.0]]",
        "[[0.0, 0.0], [0.0, 1.0]]",
        "[5.0, 1.0]",
    ]
