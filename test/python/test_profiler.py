"""What `torch.profiler` shows of device lazy: ranges that nest, with names, lines and shapes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from behaviour import hot, torch_lazy
from torch.profiler import ProfilerActivity

pytestmark = pytest.mark.recording


def profiled(fn: Callable[..., Any], *args: Any, **options: Any) -> torch.profiler.profile:
    torch_lazy.synchronize()
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], **options) as profiler:
        fn(*args)
    return profiler


def ranges(profiler: torch.profiler.profile, start: str) -> list[Any]:
    return [event for event in profiler.events() if event.name.startswith(start)]


def ancestors(event: Any) -> Iterator[str]:
    while (event := event.cpu_parent) is not None:
        yield event.name


def train(x: torch.Tensor, w: torch.Tensor) -> float:
    return ((x @ w).tanh() * 2 + 1).sum().item()


TRAIN_LINE = f"test_profiler.py:{train.__code__.co_firstlineno + 1}"


@pytest.fixture
def inputs(device) -> tuple[torch.Tensor, torch.Tensor]:
    """Of a product that is a library call."""
    return torch.randn(3, 30).to(device), torch.randn(30, 8000).to(device)


@pytest.mark.kernels
def test_kernels_and_library_calls_lie_in_their_window_and_it_in_the_sync(inputs):
    hot(train, *inputs)

    profiler = profiled(train, *inputs)

    (kernel,) = ranges(profiler, "torch_lazy::kernel_")
    (call,) = ranges(profiler, "torch_lazy::library_call")
    inside = [
        f"torch_lazy::window ({TRAIN_LINE})",
        "torch_lazy::sync (aten::_local_scalar_dense)",
        "aten::_local_scalar_dense",
        "aten::item",
    ]
    assert call.name == "torch_lazy::library_call aten::mm"
    assert list(ancestors(kernel)) == inside
    assert list(ancestors(call)) == inside


@pytest.mark.on_cpu("the fake CUDA device's operators show the CPU's within them")
def test_deferred_operations_are_marked_and_hold_no_work(inputs):
    hot(train, *inputs)
    before = torch_lazy.metrics()["deferred"]

    profiler = profiled(train, *inputs)

    (tanh,) = ranges(profiler, "aten::tanh")
    assert [child.name for child in tanh.cpu_children] == ["torch_lazy::deferred"]
    deferred = ranges(profiler, "torch_lazy::deferred")
    assert len(deferred) == torch_lazy.metrics()["deferred"] - before


@pytest.mark.on_cpu("the fake CUDA device's operators show the CPU's within them")
def test_operations_of_a_cold_window_show_as_eager_ones_do(device):
    x = torch.randn(6, 11).to(device)

    profiler = profiled(lambda: ((x + 1) * 3).sum().item())

    (product,) = ranges(profiler, "aten::mul")
    assert not any(child.name.startswith("torch_lazy::") for child in product.cpu_children)
    assert not ranges(profiler, "torch_lazy::window")
    assert len(ranges(profiler, "torch_lazy::sync")) == 1


def test_flushes_that_nobody_waits_for_say_their_reason(device):
    w = torch.randn(4, 3, requires_grad=True, device=device)

    def step() -> torch.Tensor:
        (w * 2).sin().sum().backward()
        w.grad = None
        return w.detach() * 3

    hot(step)

    profiler = profiled(step)

    (window,) = ranges(profiler, "torch_lazy::window")
    assert "torch_lazy::flush (backward ends)" in ancestors(window)


@pytest.mark.kernels
@pytest.mark.on_cpu("the fake CUDA device's operators show the CPU's within them")
def test_shapes_are_those_of_the_tensors(inputs):
    hot(train, *inputs)

    profiler = profiled(train, *inputs, record_shapes=True)

    (call,) = ranges(profiler, "torch_lazy::library_call")
    (kernel,) = ranges(profiler, "torch_lazy::kernel_")
    assert call.input_shapes == [[3, 30], [30, 8000]]
    assert [3, 8000] in kernel.input_shapes


@pytest.mark.kernels
def test_a_trace_names_lines_and_bytes(inputs, tmp_path: Path):
    hot(train, *inputs)

    profiled(train, *inputs, record_shapes=True).export_chrome_trace(str(tmp_path / "trace.json"))

    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (kernel,) = (event for event in events if "torch_lazy::kernel_" in event.get("name", ""))
    assert TRAIN_LINE in kernel["args"]["lines"]
    assert int(kernel["args"]["bytes"]) == 4 * (3 * 8000 + 1)


@pytest.mark.kernels
def test_a_kernel_that_threads_share_is_one_range_on_the_calling_thread(device):
    x = torch.randn(1 << 20).to(device)

    def double() -> torch.Tensor:
        result = (x * 2).exp()
        torch_lazy.synchronize()
        return result

    hot(double)

    profiler = profiled(double)

    (kernel,) = ranges(profiler, "torch_lazy::kernel_")
    (call,) = ranges(profiler, "aten::exp")
    assert kernel.thread == call.thread


def test_an_operation_that_differs_shows_as_guard_failure(device):
    x = torch.randn(5, 13).to(device)

    def step(branch: bool) -> float:
        y = (x * 2).tanh()
        y = y.sin() if branch else y.exp()
        return y.sum().item()

    hot(step, False)

    profiler = profiled(step, True)

    (failure,) = ranges(profiler, "torch_lazy::guard_failed")
    (run,) = ranges(profiler, "torch_lazy::window_by_operation")
    assert "aten::sin" in ancestors(failure)
    assert "aten::sin" in ancestors(run)
    calls = [child.name for child in run.cpu_children if child.name.startswith("torch_lazy::")]
    assert calls == [
        "torch_lazy::library_call aten::mul.Tensor",
        "torch_lazy::library_call aten::tanh",
    ]


@pytest.mark.kernels
@pytest.mark.on_cpu("indices are looked at in the host's memory only")
def test_a_window_that_fails_closes_its_ranges(device):
    table = torch.randn(4, 3).to(device)

    def look_up(row: int) -> torch.Tensor:
        index = torch.tensor([0, row]).to(device)
        return (table * 2).index_select(0, index.abs()).cpu()  # indices that are pending

    hot(look_up, 1)

    def fail() -> None:
        with pytest.raises(IndexError):
            look_up(9)

    profiler = profiled(lambda: (fail(), look_up(1)))

    failed, succeeded = ranges(profiler, "torch_lazy::sync (copy to cpu)")
    assert failed.time_range.end <= succeeded.time_range.start
    assert ranges(profiler, "torch_lazy::window_by_operation")
    for event in ranges(profiler, "torch_lazy::"):
        if event.cpu_parent is not None:
            assert event.time_range.end <= event.cpu_parent.time_range.end


def test_compiles_show_where_all_threads_are_profiled(device):
    x = torch.randn(3, 17).to(device)
    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)

    def become_hot() -> None:
        hot(lambda: (x.cos() * 3).sum().item())

    profiler = profiled(become_hot, experimental_config=config)

    compiles = ranges(profiler, "torch_lazy::compile (test_profiler.py:")
    (item, *_) = ranges(profiler, "aten::item")
    assert compiles
    assert all(event.thread != item.thread for event in compiles)
