"""Several Python threads read and write the same tensors."""

from __future__ import annotations

import math
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from random import Random
from time import perf_counter, sleep

import pytest
import torch
from behaviour import same, wait_for_compiles
from threads import run_threads

from torch_lazy import metrics


def test_what_another_thread_deferred_on_a_tensor_made_here_is_seen(device):
    passes = 8
    scratch = torch.ones(3, device=device)
    out = torch.zeros(2, device=device)
    turn = threading.Barrier(2)

    def add() -> None:
        for _ in range(passes):
            turn.wait(timeout=60)
            scratch.sum().item()
            out.add_(1)
            turn.wait(timeout=60)

    thread = threading.Thread(target=add)
    thread.start()
    seen = []
    for i in range(passes):
        torch.ones(i + 1, device=device)  # this thread's operations are never known
        out = torch.zeros(2, device=device)
        wait_for_compiles()
        turn.wait(timeout=60)
        turn.wait(timeout=60)
        seen.append(out.tolist())
    thread.join(timeout=60)

    assert seen == [[1.0, 1.0]] * passes


def test_threads_that_write_parts_of_one_tensor_lose_none(device):
    """The first thread's write runs its pending backward pass, and meanwhile the second writes."""
    steps = 12
    w = torch.randn(192, 192, device=device, requires_grad=True)
    out = torch.zeros(2, device=device)
    phase = threading.Barrier(3)
    runs_backward = threading.Event()

    def first() -> None:
        for _ in range(steps):
            phase.wait(timeout=60)
            w.grad = None
            (w @ w @ w @ w @ w @ w).tanh().sum().backward()
            runs_backward.set()
            out[0] = 1.0
            phase.wait(timeout=60)

    def second() -> None:
        for _ in range(steps):
            phase.wait(timeout=60)
            runs_backward.wait(timeout=60)
            out[1] = 1.0
            phase.wait(timeout=60)

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    seen = []
    for _ in range(steps):
        out = torch.zeros(2, device=device)
        runs_backward.clear()
        wait_for_compiles()
        phase.wait(timeout=60)
        phase.wait(timeout=60)
        seen.append(out.tolist())
    for thread in threads:
        thread.join(timeout=60)

    assert seen == [[1.0, 1.0]] * steps


def test_a_thread_keeps_its_order_while_another_waits_for_it(device):
    """The second thread reads beside what the first then writes: it has to run what it has deferred
    itself, which takes long, and what a third one has deferred, before what the first has."""
    contested = (7, 9, 11)  # the other passes, one thread after another, make the windows hot
    whole = torch.ones(2, 8, device=device)
    part, other_part = whole[0], whole[1]
    weights = [torch.randn(400, 400).div_(20).to(device) for _ in range(2)]
    duration = 0.0  # of the last pass that was not contested, in seconds

    def heavy(weight: torch.Tensor) -> torch.Tensor:
        result = weight
        for _ in range(24):
            result = result @ weight
        return result

    def first(pause: float) -> None:
        sleep(pause)
        part.mul_(0)
        sleep(pause * 2)
        part.copy_(torch.ones(8))

    def second(of_third: torch.Tensor, has_deferred: threading.Event) -> None:
        result = heavy(weights[0])
        has_deferred.set()
        (torch.add(other_part, of_third) + result[0, 0]).sum().item()

    seen = []
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two, ThreadPoolExecutor(1) as three:
        for i in range(max(contested) + 1):
            wait_for_compiles()
            begin = perf_counter()
            has_deferred = threading.Event()
            of_third = three.submit(lambda: heavy(weights[1]).sum()).result()
            waiting = two.submit(second, of_third, has_deferred)
            if i in contested:
                has_deferred.wait(timeout=60)
                one.submit(first, duration / 4).result()
                waiting.result()
            else:
                waiting.result()
                duration = perf_counter() - begin
                one.submit(first, 0).result()
            three.submit(of_third.item).result()
            seen.append(one.submit(part.tolist).result())

    assert seen == [[1.0] * 8] * len(seen)


def total(tensor: torch.Tensor) -> float:
    return (tensor + 1).sum().item()


def test_threads_that_read_one_tensor_record_beside_each_other(device):
    shared = torch.randn(8, 8).to(device)
    before = metrics()
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        for _ in range(20):
            first = one.submit(lambda: shared * 2 + shared.t()).result()
            second = two.submit(lambda: shared * 2 + shared.t()).result()
            one.submit(total, first).result()
            two.submit(total, second).result()
            wait_for_compiles()

    counts = metrics()
    assert counts["windows"]["hot"] - before["windows"].get("hot", 0) > 20
    reason = "used by another thread"
    assert counts["flushes"].get(reason, 0) == before["flushes"].get(reason, 0)


def test_a_thread_records_while_another_runs_its_window(device):
    """One thread hands results to another as through a queue, and goes on. Both read the same."""
    shared = [torch.randn(4).to(device) for _ in range(24)]
    handed: Queue[torch.Tensor | None] = Queue(4)

    def give() -> None:
        start = torch.randn(4).to(device)
        for i in range(4000):
            x = start
            for k, tensor in enumerate(shared):
                x = torch.tanh(x + tensor)
                if k % 8 == 7:
                    handed.put(x)
            x.sum().item()
            if i == 8:
                wait_for_compiles()
        handed.put(None)

    def take() -> int:
        taken = 0
        while (x := handed.get(timeout=60)) is not None:
            for tensor in shared[:6]:
                x = x * tensor
            taken += math.isfinite(x.sum().item())
        return taken

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        with ThreadPoolExecutor(2) as pool:
            giving, taken = pool.submit(give), pool.submit(take)
            giving.result(timeout=120)
            assert taken.result(timeout=120) == 4000 * 3
    finally:
        sys.setswitchinterval(interval)


def test_tensors_that_two_threads_read_can_be_swapped(device):
    first, second = torch.full((8, 8), 1.0).to(device), torch.full((8, 8), 2.0).to(device)
    seen = []
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        for _ in range(12):
            results = [(pool, pool.submit(lambda: first * 3).result()) for pool in (one, two)]
            two.submit(torch.utils.swap_tensors, first, second).result()
            seen.append([pool.submit(total, tensor).result() for pool, tensor in results])
            wait_for_compiles()

    assert seen == [[64 * 4.0] * 2, [64 * 7.0] * 2] * 6


def test_a_tensor_that_threads_read_for_the_first_time_at_once_is_read_right(device):
    base = [torch.full((4,), float(i)).to(device) for i in range(500)]
    expected = torch.stack([tensor.cpu() for tensor in base])
    for _ in range(20):
        unused = [tensor.detach() for tensor in base]
        for result in run_threads(lambda _, unused=unused: torch.stack(unused).cpu()):
            same(result, expected)


@pytest.mark.parametrize("writer", [0, 1, 2])
def test_what_threads_read_of_one_tensor_is_from_before_another_writes_it(device, writer):
    """Two threads have deferred reads of one tensor when one of them, or a third, writes it."""
    shared = torch.full((8, 8), 1.0).to(device)
    passes = 20
    seen = []
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two, ThreadPoolExecutor(1) as three:
        for _ in range(passes):
            first = one.submit(lambda: shared * 2).result()
            second = two.submit(lambda: shared * 3).result()
            (one, two, three)[writer].submit(lambda: shared.mul_(-1)).result()
            totals = [(one, first), (two, second), ((one, two, three)[writer], shared)]
            seen.append([pool.submit(total, tensor).result() for pool, tensor in totals])
            wait_for_compiles()

    signs = [(-1) ** i for i in range(passes)]
    assert seen == [[64 * (1 + 2 * sign), 64 * (1 + 3 * sign), 64 * (1 - sign)] for sign in signs]


WRITES = {
    "scale": lambda part, shared, f: part.mul_(f),
    "add": lambda part, shared, f: part.add_(shared, alpha=f),
    "fill": lambda part, shared, f: part.fill_(f),
    "chain": lambda part, shared, f: part.copy_(((shared * f).tanh() + shared).tanh()),
    "sum": lambda part, shared, f: part[:1].copy_(part.sum()),
    "where": lambda part, shared, f: part.copy_(torch.where(part > f, part, shared)),
    "look": lambda part, shared, f: part.add_(1) if part[0].item() < f else None,
}


def test_threads_of_a_pool_write_parts_of_one_tensor(device):
    """Random writes, the same for some passes, so that they are deferred."""
    random = Random(0)
    torch.manual_seed(0)
    shared = {"cpu": torch.randn(4, 700)}
    shared[device] = shared["cpu"].to(device)

    def write(out, part, writes, where) -> None:
        for name, row, f in writes:
            WRITES[name](out[part, row], shared[where][row], f)

    with ThreadPoolExecutor(3) as pool:
        for i in range(240):
            if i % 12 == 0:
                plans = [
                    [
                        (random.choice(list(WRITES)), random.randrange(4), random.random())
                        for _ in range(random.randint(3, 12))
                    ]
                    for _ in range(3)
                ]
            out, expected = torch.zeros(3, 4, 700, device=device), torch.zeros(3, 4, 700)
            written = [pool.submit(write, out, k, plan, device) for k, plan in enumerate(plans)]
            for part in written:
                part.result(timeout=60)
            if i % 12 == 3:
                wait_for_compiles()
            for k, plan in enumerate(plans):
                write(expected, k, plan, "cpu")
            torch.testing.assert_close(out.cpu(), expected, msg=lambda m, i=i: f"pass {i}: {m}")
