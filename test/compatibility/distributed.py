"""`torch.distributed` with gloo, in two processes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing
from training import losses_of


def _rank(rank: int, work: Callable[[str], Any], device: str, folder: str) -> None:
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/store", 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    torch.manual_seed(0)
    result = work(device)
    if rank == 0:
        torch.save(result, f"{folder}/result")
    dist.destroy_process_group()


def _on_two(work: Callable[[str], Any], device: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_rank, (work, device, folder), nprocs=2)
        return torch.load(f"{folder}/result", map_location="cpu")


def _collectives(device: str):
    x = torch.arange(3.0).to(device) * (dist.get_rank() + 1)
    dist.all_reduce(x)
    parts = [torch.empty_like(x) for _ in range(2)]
    dist.all_gather(parts, x * (dist.get_rank() + 1))
    objects: list[Any] = [None, None]
    dist.all_gather_object(objects, {"rank": dist.get_rank()})
    return [x.cpu(), *(part.cpu() for part in parts), objects]


def _losses(model, device: str):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    numbers = (float(step + dist.get_rank()) for step in range(4))
    return losses_of(model, optimizer, (torch.full((2, 3), n).to(device) for n in numbers))


def _data_parallel(device: str):
    model = torch.nn.Linear(3, 2).to(device)
    return _losses(torch.nn.parallel.DistributedDataParallel(model), device)


def _fully_sharded(device: str):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)).to(device)
    fully_shard(model, mesh=init_device_mesh(device, (2,)))
    return _losses(model, device)


def collectives(device: str):
    """Collectives, of tensors and of objects"""
    return _on_two(_collectives, device)


def data_parallel(device: str):
    """`DistributedDataParallel`"""
    return _on_two(_data_parallel, device)


def fully_sharded(device: str):
    """FSDP: `fully_shard`"""
    return _on_two(_fully_sharded, device)
