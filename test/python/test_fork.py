"""Children forked while windows are compiled, recorded and run by other threads."""

from __future__ import annotations

import pytest
from behaviour import run_script

pytestmark = pytest.mark.on_cpu("forked children have no device but the CPU")

PROGRAMS = """
import os, random, signal, sys, threading, time
import torch, torch_lazy
torch.set_num_threads(1)  # OpenMP's team does not outlive a fork, on the CPU either

OPERATORS = [torch.tanh, torch.exp, torch.sin, torch.sigmoid, torch.neg, torch.cos]
# Few programs begin alike: such that do and mostly go on otherwise are not deferred for a while.
INPUTS = [torch.linspace(-1, 1, size) for size in range(64, 164)]
LAZY_INPUTS = [x.to({device!r}) for x in INPUTS]

def program(i, inputs):
    y = inputs[i % len(inputs)]
    for _ in range(4):  # so few operations that a window of them is never parted
        y = OPERATORS[i % len(OPERATORS)](y) * 0.5
        i //= len(OPERATORS)
    return y

def run(i):
    "Whether the result is right."
    return torch.allclose(program(i, LAZY_INPUTS).cpu(), program(i, INPUTS), atol=1e-5)

def hot(i):
    "Whether the result is right and the program runs compiled."
    before = torch_lazy.metrics()["deferred"]
    return run(i) and torch_lazy.metrics()["deferred"] > before

def compiled(i):
    "Whether the program runs compiled once it was seen often enough."
    return all(run(i) and torch_lazy.wait_for_compiles(60) for _ in range(6)) and hot(i)

def in_child(check):
    "Whether it holds in a child, which has a minute."
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        right = False
        try:
            right = check()
        finally:
            os._exit(0 if right else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

WHILE_COMPILING = """
random.seed(0)
assert compiled(0)
queued, under_way = 1, 0
not_used = []  # where many compiled traces are not, it takes more recordings to compile another
for i in range(100):
    not_used = [program_number for program_number in not_used if not hot(program_number)]
    for program_number in range(3 * i + 1, 3 * i + 4):
        assert all([run(program_number) for _ in range(2)])
        queued += 1
        not_used.append(program_number)
    time.sleep(random.random() * 0.05)
    under_way += not torch_lazy.wait_for_compiles(0)
    if i % 3 == 0:  # some children make what was on its way themselves
        assert in_child(lambda: hot(0) and compiled(3 * i + 1) and compiled(5000 + i)), i
    else:
        assert in_child(lambda: hot(0) and compiled(5000 + i)), i
assert under_way > 50, under_way
assert torch_lazy.wait_for_compiles(60)
assert all(compiled(i) for i in range(301))
assert torch_lazy.compile_count() == queued, (torch_lazy.compile_count(), queued)
print("done")
"""

WHILE_THREADS_RECORD = """
stop = False

def record():
    i = 0
    while not stop:
        assert run(i % 5)
        i += 1
        time.sleep(0.001)  # the compile thread of a child yields to whoever is busy

assert compiled(7)
threads = [threading.Thread(target=record) for _ in range(2)]
for thread in threads:
    thread.start()
for i in range(30):
    time.sleep(0.01)
    assert in_child(lambda: hot(7) and compiled(5000 + i)), i
stop = True
for thread in threads:
    thread.join()
print("done")
"""

# The window of another thread is inside a product when the process is forked.
WHILE_A_WINDOW_RUNS = """
def product(a):
    return (a @ a) * 2

big = torch.ones(2500, 2500).to({device!r})
for _ in range(4):
    product(big).sum().item()
    torch_lazy.wait_for_compiles()
results = []

def work():
    results.append(product(big))
    torch_lazy.synchronize()

thread = threading.Thread(target=work)
thread.start()
while not results:
    time.sleep(0.001)
time.sleep(0.05)

def check():
    try:
        right = results[0][0, 0].item() == 5000  # it had not begun, or has ended
    except RuntimeError as error:
        right = "forked" in str(error)
    return right and hot_product()

def hot_product():
    return product(big)[0, 0].item() == 5000

assert in_child(check)
thread.join()
assert results[0][0, 0].item() == 5000
print("done")
"""


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(WHILE_COMPILING, id="compiles", marks=pytest.mark.kernels),  # these take time
        pytest.param(WHILE_THREADS_RECORD, id="threads record"),
        pytest.param(WHILE_A_WINDOW_RUNS, id="a window runs"),
    ],
)
def test_children_use_what_is_compiled_and_compile_more_while(script, device):
    code = (PROGRAMS + script).format(device=device)

    done = run_script(code, timeout=400, TORCH_LAZY_CACHE_BYTES="0")

    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stdout + done.stderr
