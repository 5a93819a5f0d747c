"""Collectives whose work goes on after the call, and those that are functions of tensors."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.nn.functional as differentiable
from ranks import pending

# ---------------------------------------------------------------- asynchronous work


def asynchronous(device):
    """Other operations are deferred and run while the work is under way."""
    x = (torch.ones(1 << 18) * 3).to(device) * (dist.get_rank() + 1)
    y = pending(device)
    work = dist.all_reduce(x, async_op=True)
    for _ in range(3):
        y = y * 2 + 1
    total = y.sum().item()
    work.wait()
    assert work.is_completed()
    assert work.is_success()
    return [x[::1000] + 1, total]


def test_work_that_is_waited_for_later(two, device):
    two.same_on(device, asynchronous)


def future(device):
    work = dist.all_reduce(pending(device), async_op=True)
    (result,) = work.get_future().then(lambda done: [x * 2 for x in done.value()]).wait()
    assert result.device.type == torch.device(device).type
    return result


def test_the_future_of_work_has_tensors_of_the_device(two, device):
    two.same_on(device, future)


def dropped(device):
    """Nobody holds the tensors while they are sent."""
    other = 1 - dist.get_rank()
    received = torch.zeros(1 << 16, device=device)
    works = [dist.isend(torch.full((1 << 16,), 7.0, device=device) + 1, other)]
    noise = [torch.rand(1 << 16, device=device) for _ in range(4)]
    works.append(dist.irecv(received, other))
    for work in works:
        work.wait()
    return [received.sum(), len(noise)]


def test_a_tensor_that_is_dropped_while_it_is_sent(two, device):
    two.same_on(device, dropped)


# ---------------------------------------------------------------- functional collectives


def functional_collectives(device):
    ranks = list(range(dist.get_world_size()))
    x = pending(device)
    return [
        functional.all_reduce(x, "sum", ranks) + 1,
        functional.all_gather_tensor(x, 0, ranks) + 1,
        functional.reduce_scatter_tensor(x, "sum", 0, ranks) + 1,
        functional.broadcast(x, 1, ranks) + 1,
        functional.all_to_all_single(x, None, None, ranks) + 1,
        x,
    ]


def test_functional_collectives(two, device):
    two.same_on(device, functional_collectives)


def gradients(device):
    x = pending(device).requires_grad_()
    y = differentiable.all_reduce(x * 2)
    z = torch.cat(differentiable.all_gather(x.square()))
    (y.sum() + z.sum()).backward()
    return [y, z, x.grad]


def test_gradients_of_collectives(two, device):
    two.same_on(device, gradients)
