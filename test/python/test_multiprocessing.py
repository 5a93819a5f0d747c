"""Tensors in other processes: queues, arguments of processes, shared modules, loaders' workers.
Memory is shared, as that of CPU tensors is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.multiprocessing as mp
from behaviour import hot, same, wait_for_compiles
from saving import base_type, share_storage
from torch import nn
from torch.utils.data import DataLoader, Dataset

pytestmark = pytest.mark.on_cpu("processes share memory of the host")

PATIENCE = 120.0  # seconds; a spawned process imports torch first

each_method = pytest.mark.parametrize("method", ["fork", "spawn"])


def run_in_child(method: str, function: Callable[..., None], *args: Any) -> None:
    """Calls a function of this file in a child, and waits for it."""
    process = mp.get_context(method).Process(target=function, args=args)
    process.start()
    process.join(PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()
    assert process.exitcode == 0


# What children do.


def add_one(*tensors: torch.Tensor) -> None:
    for tensor in tensors:
        tensor.add_(1)


def triple_what_is_sent(inbox: Any, outbox: Any) -> None:
    whole, part = inbox.get()
    part.mul_(3)
    outbox.put((whole.device.type, share_storage(whole, part), whole.tolist()))


def send_views(outbox: Any, done: Any, device: str) -> None:
    x = torch.arange(6.0).to(device) * 2
    for thing in (x, x[4:], x.to(torch.bfloat16), x[:0], nn.Parameter(x)):
        outbox.put(thing)
    done.get()  # the memory is this process's until the other one has opened it


def report_values(inbox: Any, outbox: Any) -> None:
    x = inbox.get()
    while inbox.get():
        outbox.put(x.tolist())


def train_a_step(net: nn.Module, device: str) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    net(torch.ones(1, 2).to(device)).sum().backward()
    optimizer.step()


# ---------------------------------------------------------------- arguments of a process


@each_method
def test_a_child_writes_to_its_arguments(device, method):
    x = torch.arange(4.0).to(device).share_memory_()
    view = x[2:]
    hot(lambda: x.add_(0))

    run_in_child(method, add_one, x, view)

    assert x.tolist() == [1, 2, 4, 5]
    assert view.tolist() == [4, 5]


def test_memory_that_is_not_shared_is_the_childs_own_after_a_fork(device):
    x = torch.arange(4.0).to(device)

    run_in_child("fork", add_one, x)

    assert x.tolist() == [0, 1, 2, 3]


@each_method
def test_processes_train_one_module(device, method):
    torch.manual_seed(0)
    net = nn.Linear(2, 1).to(device).share_memory()
    before = {name: value.clone() for name, value in net.state_dict().items()}

    for _ in range(2):
        run_in_child(method, train_a_step, net, device)

    assert all(p.is_shared() for p in net.parameters())
    for name, value in net.state_dict().items():
        same(value.cpu(), before[name].cpu() - 1)


# ---------------------------------------------------------------- queues


@each_method
def test_a_sent_tensor_shares_its_memory(device, method):
    context = mp.get_context(method)
    inbox, outbox = context.SimpleQueue(), context.SimpleQueue()
    x = torch.arange(4.0).to(device)

    inbox.put((x, x[2:]))
    run_in_child(method, triple_what_is_sent, inbox, outbox)

    assert outbox.get() == (base_type(device), True, [0, 1, 6, 9])
    assert x.tolist() == [0, 1, 6, 9]


def test_a_write_reaches_the_other_process_at_the_call(device):
    context = mp.get_context("fork")
    inbox, outbox = context.SimpleQueue(), context.SimpleQueue()
    x = torch.zeros(2, device=device)
    child = context.Process(target=report_values, args=(inbox, outbox))
    child.start()
    inbox.put(x)

    seen = []
    for _ in range(6):  # until it would be deferred
        x.add_(1)
        inbox.put(True)
        seen.append(outbox.get())
        wait_for_compiles()
    inbox.put(False)
    child.join(PATIENCE)

    assert seen == [[i, i] for i in range(1, 7)]


def test_a_pending_value_is_sent(device):
    queue = mp.get_context("fork").SimpleQueue()
    x = torch.arange(4.0).to(device)

    def send() -> list[float]:
        queue.put(x * 2 + 1)
        return queue.get().tolist()

    assert hot(send) == [1, 3, 5, 7]


@pytest.mark.parametrize("strategy", sorted(mp.get_all_sharing_strategies()))
def test_a_child_sends_views(device, strategy):
    context = mp.get_context("fork")
    inbox, done = context.SimpleQueue(), context.SimpleQueue()
    strategy_before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(strategy)
    try:
        child = context.Process(target=send_views, args=(inbox, done, device))
        child.start()
        whole, part, cast, empty, weight = (inbox.get() for _ in range(5))
    finally:
        mp.set_sharing_strategy(strategy_before)
        done.put(None)
    child.join(PATIENCE)

    assert {t.device.type for t in (whole, part, cast, empty, weight)} == {base_type(device)}
    assert share_storage(whole, part)
    assert share_storage(whole, weight)
    part.zero_()
    assert whole.tolist() == weight.tolist() == [0, 2, 4, 6, 0, 0]
    assert (cast.dtype, cast.tolist()) == (torch.bfloat16, [0, 2, 4, 6, 8, 10])
    assert empty.shape == (0,)
    assert isinstance(weight, nn.Parameter)


def test_a_tensor_that_comes_back_is_on_the_same_storage(device):
    queue = mp.get_context("fork").SimpleQueue()
    x = torch.arange(4.0).to(device)

    queue.put(x)
    back = queue.get()

    assert share_storage(back, x)


def test_a_queue_with_a_thread_sends_tensors(device):
    queue = mp.get_context("fork").Queue()
    x = torch.arange(4.0).to(device)

    sent = [x * i for i in range(5)]
    for tensor in sent:
        queue.put(tensor)

    assert [queue.get(timeout=PATIENCE).tolist() for _ in sent] == [t.tolist() for t in sent]


def test_what_autograd_made_is_not_sent(device):
    x = torch.ones(2, device=device, requires_grad=True)

    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        mp.get_context("fork").SimpleQueue().put(x * 2)


# ---------------------------------------------------------------- workers of a loader


class Rows(Dataset):
    """Samples that are made on the device by whoever loads them."""

    def __init__(self, device: str):
        self.device = device

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((2,), float(index)).to(self.device) * 2, index


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_return_tensors_of_the_device(device, workers):
    loader = DataLoader(Rows(device), batch_size=3, num_workers=workers)

    batches = [(rows.device.type, rows.tolist(), labels.tolist()) for rows, labels in loader]

    assert batches == [
        (base_type(device), [[2.0 * i] * 2 for i in batch], batch)
        for batch in ([0, 1, 2], [3, 4, 5])
    ]
