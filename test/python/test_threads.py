"""Several Python threads record at once, each its own work."""

from __future__ import annotations

import threading

import pytest
import torch
from behaviour import LAZY, hot, same, wait_for_compiles
from threads import THREADS, run_threads


def train(where: str, seed: int, steps: int = 30) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    w = torch.randn(4, 3, generator=generator).to(where).requires_grad_()
    x = torch.randn(5, 4, generator=generator).to(where)
    for _ in range(steps):
        ((x @ w).tanh() ** 2).sum().backward()
        with torch.no_grad():
            w -= 0.01 * w.grad
        w.grad = None
    return w.detach().cpu()


def test_threads_train_independently(device):
    results = run_threads(lambda i: train(device, i))

    for i, result in enumerate(results):
        same(result, train("cpu", i))


def test_threads_share_what_is_known(device):
    train(device, 0, steps=6)
    wait_for_compiles()

    for i, result in enumerate(run_threads(lambda i: train(device, 10 + i))):
        same(result, train("cpu", 10 + i))


def test_a_tensor_made_on_another_thread_is_complete(device):
    def make(i):
        return (torch.full((3,), float(i), device=device) * 2 + 1).tanh()

    for _ in range(4):
        made = run_threads(make)
        wait_for_compiles()
        for i, t in enumerate(made):
            same(t.cpu(), (torch.full((3,), float(i)) * 2 + 1).tanh())


def test_a_write_on_one_thread_is_seen_by_another(device):
    x = torch.zeros(3, device=device)
    for i in range(6):
        hot(lambda: x.add_(1), runs=1)
        seen: list = []
        reader = threading.Thread(target=lambda seen=seen: seen.append((x * 10).tolist()))
        x.mul_(2)
        reader.start()
        reader.join(timeout=60)
        expected = x.cpu() * 10
        assert seen == [expected.tolist()], f"pass {i}"


def test_a_tensor_dropped_on_another_thread_is_freed_there(device):
    def work(i):
        kept = [torch.ones(16, device=device) * i for _ in range(50)]
        box.append(kept)
        return len(kept)

    box: list = []
    assert run_threads(work) == [50] * THREADS
    dropper = threading.Thread(target=box.clear)
    dropper.start()
    dropper.join(timeout=60)

    assert (torch.ones(2, device=device) + 1).tolist() == [2, 2]


def test_a_backward_pass_beside_recording_threads(device):
    def work(i):
        if i % 2:
            return train(device, i, steps=20)
        x = torch.ones(3, device=device)
        for _ in range(60):
            x = x * 0.9 + 0.1
        return x.cpu()

    results = run_threads(work)

    same(results[1], train("cpu", 1, steps=20))
    torch.testing.assert_close(results[0], torch.ones(3))


@pytest.mark.recording
def test_waiting_for_work_releases_the_gil(device):
    """A long window runs while another Python thread counts."""
    x = torch.randn(600, 600).to(device)

    def long_window():
        y = x
        for _ in range(20):
            y = (y @ x).tanh()
        return y.sum().item()

    for _ in range(3):
        long_window()
        wait_for_compiles()
    ticks, stop = [0], threading.Event()

    def count():
        while not stop.wait(0.001):
            ticks[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    long_window()
    stop.set()
    counter.join(timeout=60)

    assert device.startswith(LAZY)
    assert ticks[0] >= 3
