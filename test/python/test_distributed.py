"""Ways to start and group processes for device lazy: names of backends, torchrun, sub-groups,
meshes and what is built on them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist
from behaviour import LEAVE, run_script
from ranks import on_cpu
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

# ---------------------------------------------------------------- starting

# One process is a world: what is asked is only how the group is made.
START = """
import torch, torch.distributed as dist
store = dist.HashStore()
dist.init_process_group({arguments} store=store, rank=0, world_size=1)
x = torch.full((3,), 2.0, device={device!r})
dist.all_reduce(x)
y = torch.full((3,), 3.0)
dist.all_reduce(y)
print(x.tolist(), y.tolist(), dist.get_backend())
"""


@pytest.mark.on_cpu("gloo communicates the host's memory")
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("'gloo',", "gloo"),
        ("", "undefined"),
        ("'cpu:gloo,lazy:gloo',", "cpu:gloo,lazy:gloo"),
        ("'lazy:gloo',", "lazy:gloo"),
        ("device_id=torch.device('lazy:0'),", "gloo"),
        ("'gloo', device_id=torch.device('lazy:0'),", "gloo"),
    ],
)
@pytest.mark.recording
def test_every_way_to_name_the_backend(arguments, name, device):
    done = run_script(START.format(arguments=arguments, device=device))

    expected = f"[2.0, 2.0, 2.0] [3.0, 3.0, 3.0] {name}"
    assert done.stdout.strip() == expected, done.stderr


@pytest.mark.on_cpu("gloo communicates the host's memory")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'cpu:gloo,lazy:fake',", "gloo for cpu: give both the same"),
        ("'cpu:gloo,lazy:nccl',", "nccl cannot communicate tensors on device lazy"),
        ("device_id=torch.device('lazy:1'),", "there is no device lazy:1"),
    ],
)
@pytest.mark.recording
def test_what_cannot_be_is_an_error_that_says_what_to_do(arguments, message, device):
    done = run_script(START.format(arguments=arguments, device=device))

    assert message in done.stderr


def tensors_of_two_devices(device):
    outputs = [torch.zeros(3), torch.zeros(3)]
    with pytest.raises(ValueError, match="move all tensors of a collective to one device"):
        dist.all_gather(outputs, torch.ones(3, device=device))


@pytest.mark.recording
def test_a_collective_of_tensors_on_two_devices_is_an_error(two, device):
    two.run(tensors_of_two_devices, device)


# ---------------------------------------------------------------- groups and meshes


def of_sub_groups(device):
    rank = dist.get_rank()
    evens, odds = dist.new_group([0, 2]), dist.new_group([1, 3])
    x = torch.full((3,), 1.0 + rank, device=device)
    dist.all_reduce(x, group=odds if rank % 2 else evens)
    pair, _ = dist.new_subgroups(2)
    dist.all_reduce(x, group=pair)
    return x


def test_sub_groups(four, device):
    four.same_on(device, of_sub_groups)


def of_a_mesh(device):
    mesh = init_device_mesh(device, (2, 2), mesh_dim_names=("data", "model"))
    x = torch.arange(4.0).to(device) + dist.get_rank()
    dist.all_reduce(x, group=mesh.get_group("data"))
    dist.all_reduce(x, dist.ReduceOp.MAX, group=mesh["model"].get_group())
    return [x, list(mesh.get_coordinate())]


def test_a_mesh_of_two_dimensions(four, device):
    four.same_on(device, of_a_mesh)


def distributed_tensors(device):
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    rows = distribute_tensor(torch.arange(8.0).view(4, 2), mesh, [Shard(0)])
    weight = distribute_tensor(torch.ones(2, 3), mesh, [Replicate()]).requires_grad_()
    y = (rows @ weight).relu()
    y.sum().backward()
    columns = y.redistribute(placements=[Shard(1)])
    return [columns.to_local(), y.full_tensor(), weight.grad.full_tensor()]


def test_distributed_tensors(two, device):
    two.same_on(device, distributed_tensors)


def drawn(device):
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    torch.manual_seed(2 + dist.get_rank())
    rows = distribute_tensor(torch.zeros(4, 2), mesh, [Shard(0)])
    return [rows.normal_().to_local(), torch.nn.functional.dropout(rows, 0.5).to_local()]


def test_distributed_tensors_are_drawn(two, device):
    two.same_on(device, drawn)


def tensor_parallel(device):
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)).to(device)
    model = parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.ones(3, 4).to(device)).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.testing.assert_close(losses[0] > losses[1] > losses[2], True)
    return [model(torch.ones(3, 4).to(device)), [p.to_local() for p in model.parameters()]]


def test_tensor_parallelism(two, device):
    two.same_on(device, tensor_parallel)


# ---------------------------------------------------------------- optimizers


def sharded_optimizer(device):
    from torch.distributed.optim import ZeroRedundancyOptimizer  # its import warns

    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(device)
    model = DistributedDataParallel(model)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        x = torch.full((2, 3), float(dist.get_rank() + step)).to(device)
        model(x).square().sum().backward()
        optimizer.step()
    return list(model.parameters())


def close_to_the_cpus(ranks, device, function):
    expected = ranks.run(function_on_cpu, function, "cpu")
    actual = ranks.run(function_on_cpu, function, device)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def function_on_cpu(function, device):
    return on_cpu(function(device))


def test_an_optimizer_whose_state_is_sharded(two, device):
    close_to_the_cpus(two, device, sharded_optimizer)


# ---------------------------------------------------------------- torchrun

TRAINING = """
import os, signal, sys
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

kind, path, killed_at = sys.argv[1], sys.argv[2], int(sys.argv[3])
rank = int(os.environ["LOCAL_RANK"])
device = torch.device(kind, rank)
dist.init_process_group("gloo")
if kind != "cpu":
    torch.get_device_module(kind).set_device(rank)
first_attempt = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
torch.manual_seed(0)
data = TensorDataset(torch.randn(16, 6), torch.randn(16, 2))
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
model = DistributedDataParallel(model, device_ids=None if kind == "cpu" else [rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
done, losses = 0, []
if os.path.exists(path):
    saved = torch.load(path, map_location={f"{kind}:0": str(device)})
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    done, losses = saved["epochs"], saved["losses"]
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=4, sampler=sampler)

for epoch in range(done, 6):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
    loss = loss.detach()
    dist.all_reduce(loss)
    losses.append(loss.item())
    if dist.get_rank() == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**state, "epochs": epoch + 1, "losses": losses}, path + ".new")
        os.replace(path + ".new", path)
    dist.barrier()
    if first_attempt and epoch == killed_at and dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
dist.destroy_process_group()
"""


# A store for each attempt: in the launcher's, gloo may find addresses of processes that died.
STORE_OF_ITS_OWN = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def losses_of_torchrun(folder, device: str, killed_at: int) -> list[float]:
    script, saved = folder / "training.py", folder / f"{device}{killed_at}.pt"
    script.write_text(TRAINING + LEAVE)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [
            *launcher,
            "--nproc-per-node=2",
            "--max-restarts=1",
            script,
            device,
            saved,
            str(killed_at),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", **STORE_OF_ITS_OWN},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return torch.load(saved)["losses"]


@pytest.mark.on_cpu("gloo communicates the host's memory")
def test_torchrun_goes_on_from_a_checkpoint_after_a_process_was_killed(tmp_path, device):
    expected = losses_of_torchrun(tmp_path, "cpu", killed_at=-1)

    losses = losses_of_torchrun(tmp_path, device, killed_at=2)

    assert len(losses) == 6
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-5)
