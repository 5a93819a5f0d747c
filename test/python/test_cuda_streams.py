"""Streams and events of a script for CUDA, and threads that have streams of their own, with lazy
tensors on the device that test/fake_cuda makes."""

from __future__ import annotations

import pytest
from test_cuda_scripts import printed


@pytest.mark.parametrize("module", ["cuda", "lazy"])
def test_a_stream_that_waited_for_another_sees_what_was_deferred_on_it(module):
    script = f"""
module = torch.{module}
def step():
    side = module.Stream()
    made = x * 2
    side.wait_stream(module.current_stream())
    with module.stream(side):
        there = made + 1
    module.current_stream().wait_stream(side)
    there.record_stream(module.current_stream())
    return there * 2
hot(step)
result = step()
print(torch.equal(result.cpu(), (x.cpu() * 2 + 1) * 2), torch.lazy.metrics()["windows"])
"""

    assert printed(script) == ["True {'hot': 3}"]


def test_a_stream_that_waits_for_an_event_sees_what_was_deferred_before_it():
    script = """
def step():
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side):
        there = x * 2
        done.record()
    done.wait()
    return there + 1
hot(step)
print(torch.equal(step().cpu(), x.cpu() * 2 + 1))
"""

    assert printed(script) == ["True"]


def test_a_thread_that_waits_for_its_own_stream_leaves_other_threads_windows_whole():
    script = """
import threading
started, ended = threading.Event(), threading.Event()
def prefetch():
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    started.wait()
    with torch.cuda.stream(side):
        there = torch.ones(4).pin_memory().to("lazy", non_blocking=True) * 2
        done.record()
        side.record_event().query()
    done.synchronize()
    side.synchronize()
    ended.set()
def step():
    y = x * 2
    if ended.is_set() or not started.is_set() and thread.is_alive():
        started.set()
        ended.wait()
    return y + 1
thread = threading.Thread(target=lambda: None)
hot(step)
thread = threading.Thread(target=prefetch)
thread.start()
result = step()
print(torch.equal(result.cpu(), x.cpu() * 2 + 1), torch.lazy.metrics()["windows"].get("hot"))
"""

    assert printed(script) == ["True 1"]


@pytest.mark.parametrize("forward", ["side", "main"])
def test_backward_waits_for_the_stream_of_forward(forward):
    """PyTorch itself orders the two, and so no script does."""
    script = f"""
side, main = torch.cuda.Stream(), torch.cuda.current_stream()
right = 0
for i in range(8):
    weight = torch.full((64,), i + 1.0).to("lazy").requires_grad_()
    torch.cuda.synchronize()
    with torch.cuda.stream({forward}):
        y = weight.clone()
        loss = (y * y).sum()
    with torch.cuda.stream(main if {forward} is side else side):
        loss.backward()
        right += bool((weight.grad.cpu() == 2 * i + 2).all())
    torch.lazy.wait_for_compiles()
    del weight, y, loss
    with torch.cuda.stream({forward}):
        (x * 2).cpu()
print(right)
"""

    assert printed(script) == ["8"]


def test_backward_runs_on_the_stream_that_is_current_where_it_is_called():
    script = """
w = torch.ones(5, 5, device="lazy", requires_grad=True)
data = torch.full((5, 5), 2.0, device="lazy")
def step():
    w.grad = None
    side = torch.cuda.Stream()
    loss = (data @ w).relu().sum()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        (loss * 2).backward()
    torch.cuda.current_stream().wait_stream(side)
    return w.grad * 1
hot(step)
print(step().unique().tolist(), torch.lazy.metrics()["windows"].keys())
"""

    assert printed(script) == ["[20.0] dict_keys(['hot'])"]
