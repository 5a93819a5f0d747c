"""Collectives of torch.distributed with gloo: on each rank a lazy tensor gets what a CPU tensor
does, whatever was pending before and whatever is deferred after."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from behaviour import hot, torch_lazy
from ranks import pending
from torch import Tensor


def empty(device: str, count: int, rows: int = 4) -> list[Tensor]:
    return [torch.zeros(rows, 3, device=device) for _ in range(count)]


# ---------------------------------------------------------------- each collective


def all_reduce(device, operator):
    x = pending(device)
    if operator in ("BAND", "BOR", "BXOR"):
        x = x.to(torch.int32)
    dist.all_reduce(x, getattr(dist.ReduceOp, operator))
    return x * 2


@pytest.mark.parametrize("operator", ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"])
def test_all_reduce(two, device, operator):
    two.same_on(device, all_reduce, operator)


def all_reduce_of(device, dtype):
    x = pending(device).to(dtype)
    dist.all_reduce(x)
    return x


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8, torch.complex64],
    ids=str,
)
def test_all_reduce_of_a_dtype(two, device, dtype):
    two.same_on(device, all_reduce_of, dtype)


def all_reduce_of_sparse(device):
    rank = dist.get_rank()
    x = torch.sparse_coo_tensor([[rank]], [rank + 1.0], (4,)).to(device)
    dist.all_reduce(x)
    return x.to_dense()


def test_all_reduce_of_sparse_tensors(two, device):
    two.same_on(device, all_reduce_of_sparse)


def broadcast(device):
    x = pending(device)
    dist.broadcast(x, src=1)
    return x + 1


def reduce(device):
    x = pending(device)
    dist.reduce(x, dst=1)
    return x if dist.get_rank() == 1 else None


def all_gather(device):
    outputs = empty(device, dist.get_world_size())
    dist.all_gather(outputs, pending(device))
    return [x * 2 for x in outputs]


def all_gather_into_tensor(device):
    output = torch.zeros(4 * dist.get_world_size(), 3, device=device)
    dist.all_gather_into_tensor(output, pending(device))
    return output - 1


def gather(device):
    outputs = empty(device, dist.get_world_size()) if dist.get_rank() == 0 else None
    dist.gather(pending(device), outputs, dst=0)
    return outputs


def scatter(device):
    output = torch.zeros(4, 3, device=device)
    inputs = [pending(device) + i for i in range(dist.get_world_size())]
    dist.scatter(output, inputs if dist.get_rank() == 1 else None, src=1)
    return output


def reduce_scatter(device):
    output = torch.zeros(4, 3, device=device)
    dist.reduce_scatter(output, [pending(device) + i for i in range(dist.get_world_size())])
    return output


def reduce_scatter_tensor(device):
    output = torch.zeros(2, 3, device=device)
    dist.reduce_scatter_tensor(output, pending(device, rows=2 * dist.get_world_size()))
    return output


def all_to_all_single(device):
    output = torch.zeros(4, 3, device=device)
    dist.all_to_all_single(output, pending(device))
    return output


def all_to_all_single_unevenly(device):
    rank = dist.get_rank()  # of two, which keep 1 and 3 of their rows and send the others
    output = torch.zeros(2 if rank == 0 else 6, 3, device=device)
    counts = [[1, 1], [3, 3]][rank]
    dist.all_to_all_single(output, pending(device), counts, [1, 3])
    return output


def send_and_receive(device):
    x = pending(device)
    if dist.get_rank() == 0:
        dist.send(x, dst=1)
        dist.recv(x, src=1)
    else:
        received = torch.zeros_like(x)
        dist.recv(received, src=0)
        dist.send(received * 2, dst=0)
    return x


def receive_from_anyone(device):
    x = pending(device)
    if dist.get_rank() == 0:
        dist.send(x, dst=1)
        return None
    source = dist.recv(x)
    return [x, source]


def isend_and_irecv(device):
    other = 1 - dist.get_rank()
    received = torch.zeros(4, 3, device=device)
    works = [dist.isend(pending(device), other), dist.irecv(received, other)]
    for work in works:
        work.wait()
    return received + 1


def batch_isend_irecv(device):
    other = 1 - dist.get_rank()
    received = torch.zeros(4, 3, device=device)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, pending(device), other), dist.P2POp(dist.irecv, received, other)]
    )
    for work in works:
        work.wait()
    return received + 1


def all_reduce_coalesced(device):
    tensors = [pending(device), pending(device) * 3]
    with dist.distributed_c10d._coalescing_manager():
        for x in tensors:
            dist.all_reduce(x)
    return tensors


@pytest.mark.parametrize(
    "collective",
    [
        broadcast,
        reduce,
        all_gather,
        all_gather_into_tensor,
        gather,
        scatter,
        reduce_scatter,
        reduce_scatter_tensor,
        all_to_all_single,
        all_to_all_single_unevenly,
        send_and_receive,
        receive_from_anyone,
        isend_and_irecv,
        batch_isend_irecv,
        all_reduce_coalesced,
    ],
    ids=lambda function: function.__name__,
)
def test_collective(two, device, collective):
    two.same_on(device, collective)


def test_four_ranks(four, device):
    four.same_on(device, all_gather_into_tensor)
    four.same_on(device, reduce_scatter_tensor)


def objects(device):
    rank = dist.get_rank()
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, {"rank": rank})
    sent = [f"from {rank}"]
    dist.broadcast_object_list(sent, src=1, device=torch.device(device))
    return [str(gathered), sent]


def test_collectives_of_objects(two, device):
    two.same_on(device, objects)


def barriers(device):
    dist.barrier()
    dist.barrier(device_ids=[0])
    dist.monitored_barrier()
    return pending(device)


def test_barriers(two, device):
    two.same_on(device, barriers)


# ---------------------------------------------------------------- what is read and written


def views(device):
    """A collective of a view that is written to, between operations on its base."""
    base = torch.ones(6, 4).to(device) * (dist.get_rank() + 1)
    base.add_(1)
    dist.all_reduce(base[2:4])
    base.mul_(2)
    dist.all_reduce(base.view(-1)[:4])
    return base - 1


def test_a_view_is_communicated_in_its_base(two, device):
    two.same_on(device, views)


def not_contiguous(device):
    x = torch.zeros(3, 4).to(device)
    try:
        dist.all_gather_into_tensor(torch.zeros(8, 3, device=device), x.t())
    except (RuntimeError, ValueError) as error:
        return str(error)
    return None


def test_a_tensor_that_is_not_contiguous_is_refused_as_on_the_cpu(two, device):
    two.same_on(device, not_contiguous)


def in_inference_mode(device):
    with torch.inference_mode():
        x = pending(device)
        dist.all_reduce(x)
        return (x + 1).clone()


def test_in_inference_mode(two, device):
    two.same_on(device, in_inference_mode)


def parameter(device):
    """Weights that are broadcast in place, used, and trained."""
    weight = torch.nn.Parameter(pending(device).detach())
    dist.broadcast(weight.data, src=0)
    (weight * weight).sum().backward()
    dist.all_reduce(weight.grad)
    return [weight, weight.grad]


def test_a_parameter_and_its_gradient(two, device):
    two.same_on(device, parameter)


def deferred_around_a_collective(device):
    """How many operations of a hot step are deferred, and how many flushes it has."""

    def step():
        x = pending(device)
        dist.all_reduce(x)
        return x * 2 + 1

    hot(step)
    before = torch_lazy.metrics()
    step().sum().item()
    after = torch_lazy.metrics()
    name = "c10d::allreduce_"
    flushes = after["flushes"].get(name, 0) - before["flushes"].get(name, 0)
    return flushes, after["deferred"] - before["deferred"], name in after["fallbacks"]


@pytest.mark.recording
def test_a_collective_ends_its_window_and_no_more(two, device):
    for flushes, deferred, fell_back in two.run(deferred_around_a_collective, device):
        assert flushes == 1
        assert deferred >= 6
        assert not fell_back


def flushes_of_a_stranger(device):
    """Flushes by a collective of a tensor that the open window does not know."""
    x = torch.ones(3).to(device)
    y = torch.ones(3).to(device)
    before = torch_lazy.metrics()["flushes"].get("c10d::allreduce_", 0)
    z = y + 1
    dist.all_reduce(x)
    assert (z + x).tolist() == [4.0] * 3
    return torch_lazy.metrics()["flushes"].get("c10d::allreduce_", 0) - before


@pytest.mark.recording
def test_a_window_that_does_not_know_the_tensor_stays_open(two, device):
    assert two.run(flushes_of_a_stranger, device) == [0, 0]


def of_a_failed_value(device):
    """The error of a deferred operation is the collective's, which then is not begun; the ranks
    can communicate afterwards."""
    table = torch.arange(12.0).to(device).reshape(4, 3)

    def look_up(index):
        y = table.index_select(0, index.abs()) * 2
        dist.all_reduce(y)
        return y

    inside, outside = torch.tensor([1, 2]).to(device), torch.tensor([1, 9]).to(device)
    hot(look_up, inside)
    with pytest.raises((IndexError, RuntimeError), match="index out of range"):
        look_up(outside)
    return look_up(inside)


def test_a_collective_raises_the_error_of_a_deferred_operation(two, device):
    two.same_on(device, of_a_failed_value)
