"""What a script for CUDA does around operators, with lazy tensors on the device that
test/fake_cuda makes: mixed precision, waiting for the device, memory statistics, ranges for NVTX,
checkpoints, optimizers, process groups, graphs."""

from __future__ import annotations

import pytest
from test_fake_cuda import run_on_device

# Repeats what a script does until it is deferred.
_PRELUDE = """
import torch_lazy
from torch import nn
import torch.nn.functional as F

def settle():
    torch.lazy.synchronize()
    torch.lazy.wait_for_compiles()

def hot(step, runs=4):
    for _ in range(runs):
        kept = None  # the last result is gone before the next is made
        kept = step()
        settle()
    torch.lazy.reset_metrics()

x = torch.linspace(-2, 2, 24).view(4, 6).to("lazy")
"""


def printed(script: str, **environment: str) -> list[str]:
    """The lines of a script with lazy tensors on the device, of which the last ones are hot."""
    environment.setdefault("TORCH_LAZY_BACKEND", "reference")
    return run_on_device(_PRELUDE + script, TORCH_LAZY_DEVICE="cuda", **environment)


# ---------------------------------------------------------------- mixed precision


@pytest.mark.parametrize("kind", ["lazy", "cuda"])
def test_autocast_casts_by_the_lists_of_cuda_to_half_unless_told_otherwise(kind):
    script = f"""
with torch.autocast({kind!r}):
    y = x @ x.t()
    print(y.dtype, y.exp().dtype, y.softmax(-1).dtype, (y + 1).dtype)
with torch.autocast({kind!r}, dtype=torch.bfloat16):
    print((x @ x.t()).dtype)
print((x @ x.t()).dtype)
"""

    assert printed(script) == [
        "torch.float16 torch.float32 torch.float32 torch.float16",
        "torch.bfloat16",
        "torch.float32",
    ]


def test_autocast_of_cuda_and_of_lazy_is_one_state():
    """As a script for CUDA and a library that asks by a tensor's device may be nested."""
    script = """
def product():
    return str((x @ x.t()).dtype).split(".")[1]
with torch.autocast("lazy"):
    inside = [product(), torch.is_autocast_enabled("cuda")]
    with torch.autocast("cuda", enabled=False):
        inside += [product(), torch.is_autocast_enabled("lazy")]
    inside += [product()]
    with torch.autocast("cuda", dtype=torch.bfloat16):
        inside += [torch.get_autocast_dtype("lazy")]
print(*inside, product())
"""

    assert printed(script) == ["float16 True float32 False float16 torch.bfloat16 float32"]


@pytest.mark.parametrize("kind", ["lazy", "cuda"])
def test_a_function_of_the_user_for_autocast_has_its_inputs_cast(kind):
    script = f"""
class Square(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type={kind!r}, cast_inputs=torch.float32)
    def forward(ctx, x, others):
        seen.append((x.dtype, others[0].dtype, torch.is_autocast_enabled({kind!r})))
        return x * x
    @staticmethod
    @torch.amp.custom_bwd(device_type={kind!r})
    def backward(ctx, gradient):
        return gradient, None
seen = []
with torch.autocast({kind!r}):
    Square.apply(x.half().requires_grad_(), [x.half()]).sum().backward()
print(*seen)
"""

    assert printed(script) == ["(torch.float32, torch.float32, False)"]


def test_entering_a_region_of_cuda_does_not_use_the_device():
    """A process that is yet to fork may do that."""
    script = """
import torch, torch_lazy
with torch.autocast("cuda"):
    torch.ones(2, 2) @ torch.ones(2, 2)
    print(torch.cuda.is_initialized(), torch.is_autocast_enabled("lazy"))
"""

    assert run_on_device(script) == ["False True"]


def test_autocast_of_the_cpu_leaves_lazy_tensors_alone():
    script = """
with torch.autocast("cpu"):
    print((x @ x.t()).dtype)
"""

    assert printed(script) == ["torch.float32"]


_TRAINING = """
def train(device, kind, **options):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, **options)
    scaler = torch.amp.GradScaler(kind, init_scale=1024, growth_interval=2)
    seen = []
    for step in range(8):
        batch = torch.randn(4, 6).to(device)
        if step == 5:
            batch[0, 0] = torch.inf
        before = net[0].weight.detach().clone()
        with torch.autocast(kind):
            loss = net(batch).float().pow(2).mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        seen.append((scaler.get_scale(), torch.equal(before, net[0].weight)))
        if device == "lazy":
            settle()
    return seen, [value.detach().cpu() for value in net.parameters()]
"""


@pytest.mark.parametrize("kind", ["lazy", "cuda"])
@pytest.mark.parametrize("options", ["", "fused=True"])
def test_a_gradient_scaler_trains_as_eager_does_and_skips_steps_with_infinite_gradients(
    kind, options
):
    script = f"""
{_TRAINING}
expected, weights = train("cuda", "cuda", {options})
actual, actual_weights = train("lazy", {kind!r}, {options})
torch.testing.assert_close(actual_weights, weights, rtol=1e-3, atol=1e-5)
print(actual == expected, [step for step, (_, skipped) in enumerate(actual) if skipped])
print([scale for scale, _ in actual])
"""

    assert printed(script, TORCH_LAZY_BACKEND="cuda") == [
        "True [5]",
        "[1024.0, 2048.0, 2048.0, 4096.0, 4096.0, 2048.0, 2048.0, 4096.0]",
    ]


# ---------------------------------------------------------------- waiting for the device


# Whoever asks the device about work, in the words of the script that does.
_ASKS = [
    "torch.cuda.synchronize()",
    "torch.cuda.current_stream().synchronize()",
    "torch.cuda.current_stream().query()",
    "torch.cuda.current_stream().record_event()",
    "torch.cuda.Stream().wait_stream(torch.cuda.current_stream())",
    "torch.cuda.Event(enable_timing=True).record()",
    "torch.accelerator.synchronize()",
    "torch.accelerator.current_stream().synchronize()",
    "torch.accelerator.current_stream().record_event()",
    "torch.Event('cuda').record()",
    "torch.lazy.synchronize()",
    "torch.lazy.current_stream().synchronize()",
    "torch.lazy.Event().record()",
]


def test_what_is_pending_is_submitted_before_the_device_is_asked_about_its_work():
    script = f"""
hot(lambda: x * 3)
for ask in {_ASKS}:
    torch.lazy.reset_metrics()
    y = x * 3
    before = torch.lazy.metrics()["windows_run"]
    eval(ask)
    if (before, torch.lazy.metrics()["windows_run"]) != (0, 1):
        print(ask, before, torch.lazy.metrics()["windows_run"])
    del y
"""

    assert printed(script) == []


def test_the_time_between_two_events_is_that_of_the_operations_between_them():
    script = """
large = torch.ones(300, 300, device="lazy")
def step():
    events = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
    events[0].record()
    kept = large * 2 + 1
    events[1].record()
    events[2].record()
    torch.cuda.synchronize()
    return events
hot(step, runs=6)
first, second, third = step()
print(first.elapsed_time(second) > 10 * second.elapsed_time(third))
print(torch.lazy.metrics()["windows_run"])
"""

    assert printed(script, TORCH_LAZY_BACKEND="cuda") == ["True", "1"]


def test_an_index_out_of_range_raises_where_cuda_is_waited_for():
    script = """
table = torch.randn(10, 8).to("lazy")
def program(indices):
    return F.embedding(indices.to("lazy"), table) * 2
hot(lambda: program(torch.tensor([1, 2, 9])), runs=8)
late = program(torch.tensor([1, 20, 9]))
try:
    torch.cuda.synchronize()
except IndexError as error:
    print(str(error).splitlines()[0])
"""

    assert printed(script, TORCH_LAZY_BACKEND="cuda") == ["index out of range in self"]


# ---------------------------------------------------------------- what a script looks at


def test_memory_statistics_are_those_of_cuda():
    script = """
y = hot(lambda: (x @ x.t()).relu())
kept = torch.ones(1000, device="lazy")
for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved",
             "memory_stats", "mem_get_info", "memory_summary"):
    if getattr(torch.lazy, name)() != getattr(torch.cuda, name)():
        print(name)
before = torch.cuda.memory_allocated()
torch.lazy.reset_peak_memory_stats()
print(torch.cuda.max_memory_allocated() == before)
del kept
print(before - torch.cuda.memory_allocated())
"""

    assert printed(script) == ["True", "4000"]


def test_ranges_for_nvtx_have_the_names_of_kernels_and_operators():
    script = """
def step():
    return (x @ x.t()).exp().sum(0)
hot(step)
with torch.autograd.profiler.emit_nvtx():
    kept = step()
    torch.cuda.synchronize()
names = [name.partition(",")[0] for name in torch.ops.fake_cuda.take_ranges()]
for name in ("torch_lazy::library_call aten::mm", "torch_lazy::kernel_exp_sum"):
    print(names.count(name))
"""

    assert printed(script, TORCH_LAZY_BACKEND="cuda") == ["1", "1"]


def test_nobody_is_told_of_ranges_who_does_not_ask():
    script = """
hot(lambda: (x @ x.t()).exp().sum(0))
print(torch.ops.fake_cuda.take_ranges())
"""

    assert printed(script) == ["[]"]


# ---------------------------------------------------------------- checkpoints


def test_a_distributed_checkpoint_has_lazy_tensors_and_those_of_cuda(tmp_path):
    script = f"""
import warnings
from torch.distributed import checkpoint
warnings.filterwarnings("ignore", "torch.distributed is disabled")
state = {{"x": x + 1, "part": x[1:3, ::2], "cuda": torch.ones(3, device="cuda")}}
checkpoint.save(state, checkpoint_id={str(tmp_path)!r})
loaded = {{name: torch.zeros_like(value) for name, value in state.items()}}
checkpoint.load(loaded, checkpoint_id={str(tmp_path)!r})
for name, value in loaded.items():
    print(name, value.device.type, torch.equal(value.cpu(), state[name].cpu()))
"""

    assert printed(script) == ["x lazy True", "part lazy True", "cuda cuda True"]


# ---------------------------------------------------------------- optimizers


@pytest.mark.parametrize(("device", "foreach"), [("cpu", False), ("cuda", True)])
def test_the_default_form_of_an_optimizer_is_that_of_the_device(device, foreach):
    script = """
from torch.optim.optimizer import _default_to_fused_or_foreach
parameter = nn.Parameter(x)
print(_default_to_fused_or_foreach([parameter], differentiable=False))
"""

    assert run_on_device(
        _PRELUDE + script, TORCH_LAZY_DEVICE=device, TORCH_LAZY_BACKEND="reference"
    ) == [str((False, foreach))]


# ---------------------------------------------------------------- process groups


def test_the_backend_of_a_process_group_is_that_of_the_device():
    script = """
import torch.distributed as dist
from torch.distributed.distributed_c10d import Backend, BackendConfig
for names in ("cpu:gloo,lazy:nccl", "nccl"):
    print(BackendConfig(Backend(names)).device_backend_map.get("lazy"))
print(dist.get_default_backend_for_device("lazy:0"))
try:
    BackendConfig(Backend("lazy:nccl,cuda:gloo"))
except ValueError as error:
    print(error)
"""

    assert printed(script) == [
        "nccl",
        "nccl",
        "nccl",
        "tensors on device lazy are communicated by the backend of cuda, but nccl was given for "
        "lazy and gloo for cuda: give both the same",
    ]


# ---------------------------------------------------------------- graphs

# PyTorch without CUDA has a type of graphs, but none can be made.
_GRAPH = """
class Graph:
    def capture_begin(self):
        print("begins", torch.lazy.metrics()["flushes"])
    def capture_end(self):
        print("ends")
torch.cuda.CUDAGraph = Graph
torch_lazy.integration.import_module("torch_lazy.integration.cuda_graphs").install()
hot(lambda: x * 2)
"""


def test_what_is_pending_is_submitted_before_a_graph_is_captured():
    script = """
y = x * 2
Graph().capture_begin()
"""

    assert printed(_GRAPH + script) == ["begins {'global state changed': 1}"]


def test_an_operation_that_a_graph_would_not_have_raises_while_it_is_captured():
    script = """
graph = Graph()
graph.capture_begin()
for _ in range(2):
    try:
        x * 2
    except RuntimeError as error:
        print(str(error).splitlines()[0].split(",")[0])
graph.capture_end()
print(torch.equal((x * 2).cpu(), x.cpu() * 2))
"""

    refused = "torch.cuda.graph cannot capture operations on lazy tensors"
    assert printed(_GRAPH + script) == ["begins {}", refused, refused, "ends", "True"]
