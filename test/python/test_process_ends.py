"""A child forked before the first use works; a process ends with work pending."""

from __future__ import annotations

import pytest
from behaviour import run_script

FORK = """
import os, sys, torch
def work():
    x = torch.arange(4.0).to({device!r})
    for _ in range(6):
        y = (x * 2 + 1).tanh().sum()
    return y.item()
if {use_before}:
    work()
child = os.fork()
if child == 0:
    try:
        ok = abs(work() - (torch.arange(4.0) * 2 + 1).tanh().sum().item()) < 1e-6
        os._exit(0 if ok else 3)
    except RuntimeError as error:
        print("refused:", error, flush=True)
        os._exit(4)
_, status = os.waitpid(child, 0)
assert abs(work() - (torch.arange(4.0) * 2 + 1).tanh().sum().item()) < 1e-6
print("child", os.waitstatus_to_exitcode(status))
"""


def test_a_child_forked_before_the_first_use_works(device):
    done = run_script(FORK.format(device=device, use_before=False))

    assert done.returncode == 0, done.stderr
    assert "child 0" in done.stdout


def test_a_child_forked_after_the_first_use_works_or_says_what_to_do(device):
    done = run_script(FORK.format(device=device, use_before=True))

    assert done.returncode == 0, done.stderr
    if "child 4" in done.stdout:
        assert "fork" in done.stdout
        assert "spawn" in done.stdout
    else:
        assert "child 0" in done.stdout, done.stdout + done.stderr


PUT_OFF = """
import os, torch
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
import torch_lazy

def compute(y):
    for _ in range(50):
        y = y * 0.9 + 0.1
    return y.sum().item()

x = torch.arange(5.0)
lazy = x.to({device!r})
expected = compute(x)

def work():
    assert abs(compute(lazy) - expected) < 1e-5

def deferred():
    before = torch_lazy.metrics()["deferred"]
    work()
    return torch_lazy.metrics()["deferred"] - before

for _ in range(2):
    work()
assert torch_lazy.compile_count() == 0, "it was compiled before the fork"
child = os.fork()
if child == 0:
    torch_lazy.wait_for_compiles()
    compiled = torch_lazy.compile_count()
    os._exit(0 if compiled == 1 and deferred() > 0 else 3)
_, status = os.waitpid(child, 0)
print("child", os.waitstatus_to_exitcode(status))
assert torch_lazy.compile_count() == 0, "the child compiled in its parent"
torch_lazy.wait_for_compiles()
print("parent", torch_lazy.compile_count(), deferred() > 0)
"""


@pytest.mark.on_cpu("forked children have no device but the CPU")
@pytest.mark.recording
def test_a_compile_that_is_put_off_is_made_in_parent_and_child(device):
    """On one core a window that took little time yet is not compiled until it is asked for."""
    done = run_script(PUT_OFF.format(device=device))

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["child 0", "parent 1 True"], done.stdout + done.stderr


@pytest.mark.parametrize("thread", [False, True], ids=["main thread", "another thread"])
def test_a_process_ends_cleanly_with_work_pending(device, thread):
    code = f"""
import threading, torch
def work():
    global y
    x = torch.ones(8, device={device!r})
    for _ in range(50):
        y = (x * 2 + 1).tanh()
if {thread}:
    t = threading.Thread(target=work); t.start(); t.join()
else:
    work()
print("end", flush=True)
"""
    done = run_script(code)

    assert (done.returncode, done.stdout.strip(), done.stderr.strip()) == (0, "end", "")
