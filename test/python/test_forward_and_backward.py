"""A window goes from forward into backward, and ends where backward does."""

from __future__ import annotations

import pytest
import torch
from behaviour import hot, same, same_on, synchronize, torch_lazy, wait_for_compiles

pytestmark = pytest.mark.recording


def test_forward_and_backward_are_one_window(device):
    w = torch.randn(4, 4).to(device).requires_grad_()

    def train():
        loss = (w * w).tanh().sum()
        loss.backward()
        w.grad = None

    hot(train)
    torch_lazy.reset_metrics()
    train()
    synchronize()

    metrics = torch_lazy.metrics()
    assert metrics["flushes"] == {"synchronize": 1}
    assert metrics["windows"] == {"hot": 1}


def test_what_follows_backward_has_a_window_of_its_own(device):
    w = torch.randn(4, 4).to(device).requires_grad_()
    optimizer = torch.optim.SGD([w], lr=0.1)

    def train():
        (w * w).tanh().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    hot(train)
    torch_lazy.reset_metrics()
    train()
    synchronize()

    metrics = torch_lazy.metrics()
    assert metrics["flushes"] == {"backward ends": 1, "synchronize": 1}
    assert metrics["windows"] == {"hot": 2}


def test_a_sync_inside_backward_gives_the_values_of_the_cpu(device):
    def step(where):
        seen = []
        w = torch.randn(8, 8).to(where).requires_grad_()
        h = (w * w).tanh()
        h.register_hook(lambda grad: seen.append(grad.sum().item()))
        (h.exp() * h).sum().backward()
        return w.grad, torch.tensor(seen)

    same_on(device, step)


def test_backward_without_forward_before_it_in_the_window(device):
    def step(where):
        w = torch.randn(8, 8).to(where).requires_grad_()
        loss = (w * w).tanh().sum()
        value = loss.item()  # a sync point between the two
        loss.backward()
        return w.grad, torch.tensor(value)

    same_on(device, step)


def test_two_backward_passes_over_one_graph(device):
    def step(where):
        w = torch.randn(8, 8).to(where).requires_grad_()
        loss = (w * w).tanh().sum()
        loss.backward(retain_graph=True)
        between = (w.grad * 2).sum()
        loss.backward()
        return w.grad, between

    same_on(device, step)


def test_what_autograd_kept_can_be_read_after_backward(device):
    def step(where):
        w = torch.randn(64, 64).to(where).requires_grad_()
        kept = (w * 3).sigmoid()
        (kept * w).sum().backward()
        return w.grad, kept

    same_on(device, step)


def test_an_error_of_forward_is_raised_at_the_next_sync(device):
    w = torch.randn(4, 3).to(device).requires_grad_()

    def step(index):
        loss = (w.tanh()[index.abs()] * 2).sum()
        loss.backward()
        grad = w.grad
        w.grad = None
        return grad

    good, bad = torch.tensor([0, 3]).to(device), torch.tensor([0, 4]).to(device)
    for _ in range(5):
        expected = step(good).cpu()
        wait_for_compiles()

    with pytest.raises(IndexError, match=r"out of range|out of bounds"):
        step(bad).cpu()
    w.grad = None
    same(step(good), expected)
