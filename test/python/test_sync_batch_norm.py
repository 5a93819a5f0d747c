"""SyncBatchNorm: ranks that share a batch normalize as BatchNorm does on all of it, on the CPU."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from behaviour import wait_for_compiles
from ranks import on_cpu
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

pytestmark = pytest.mark.recording  # the CPU has no SyncBatchNorm

SHAPES = {
    "rows": (8, 3),
    "signals": (8, 3, 5),
    "images": (8, 3, 4, 5),
    "channels last": (8, 3, 4, 5),
}


def samples(name: str, step: int) -> Tensor:
    x = torch.randn(SHAPES[name], generator=torch.Generator().manual_seed(step)) * 3 + 1
    return x.to(memory_format=torch.channels_last) if name == "channels last" else x


def norm_of(name: str, momentum: float | None) -> nn.Module:
    kind = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[len(SHAPES[name])]
    norm = kind(3, momentum=momentum)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([0.5, 1.0, 2.0]))
    return norm


def train(norm: nn.Module, name: str, mine: slice, device: str) -> list:
    """Outputs and gradients of a few steps, then the statistics and what evaluation gives."""
    results = []
    for step in range(4):
        x = samples(name, step)[mine].to(device).requires_grad_()
        weights = samples(name, step + 10)[mine].to(device)
        norm.zero_grad()
        y = norm(x)
        (y * weights).sum().backward()
        results += [y, x.grad]
        wait_for_compiles()
    parameters = [p.grad for p in norm.parameters()]
    norm.eval()
    results.append(norm(samples(name, 5)[mine].to(device)))
    return [on_cpu(results), on_cpu(parameters), on_cpu(list(norm.buffers()))]


def of_one_rank(device: str, name: str, momentum: float | None, first: int) -> list:
    """Rank 0 has the `first` rows of the batch, rank 1 the others."""
    norm = nn.SyncBatchNorm.convert_sync_batchnorm(norm_of(name, momentum)).to(device)
    mine = slice(0, first) if dist.get_rank() == 0 else slice(first, None)
    return train(norm, name, mine, device)


@pytest.mark.parametrize("first", [4, 3], ids=["even", "uneven"])
@pytest.mark.parametrize("momentum", [0.1, None], ids=["momentum", "mean of all"])
@pytest.mark.parametrize("name", SHAPES)
def test_ranks_normalize_as_one_process_does(two, device, name, momentum, first):
    values, parameters, buffers = train(norm_of(name, momentum), name, slice(None), "cpu")

    ranks = two.run(of_one_rank, device, name, momentum, first)

    close = {"rtol": 1e-4, "atol": 1e-4}
    together = [torch.cat(parts) for parts in zip(*(rank[0] for rank in ranks), strict=True)]
    torch.testing.assert_close(together, values, **close)
    summed = [sum(parts) for parts in zip(*(rank[1] for rank in ranks), strict=True)]
    torch.testing.assert_close(summed, parameters, **close)
    for rank in ranks:
        torch.testing.assert_close(rank[2], buffers, **close)


def in_half_precision(device):
    norm = nn.SyncBatchNorm(3).to(device)
    x = samples("images", 0)[dist.get_rank() :: 2].to(device, torch.bfloat16)
    return [norm(x).float().cpu(), norm.running_mean.cpu()]


def test_statistics_of_half_precision_are_float(two, device):
    batch = samples("images", 0).to(torch.bfloat16)
    norm = nn.BatchNorm2d(3)
    expected = norm(batch.float())

    for rank, (y, mean) in enumerate(two.run(in_half_precision, device)):
        assert mean.dtype == torch.float32
        torch.testing.assert_close(mean, norm.running_mean, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(y, expected[rank::2], rtol=2e-2, atol=2e-2)


def in_a_model(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    model = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(model).to(device))
    model(samples("images", dist.get_rank()).to(device)).sum().backward()
    return on_cpu([p.grad for p in model.parameters()])


def test_in_a_model_of_ddp_gradients_are_everyones(two, device):
    first, second = two.run(in_a_model, device)

    torch.testing.assert_close(first, second)


def test_alone_it_is_batch_norm(device):
    norm, same = nn.SyncBatchNorm(3).to(device), nn.BatchNorm1d(3)
    x = samples("signals", 0)

    torch.testing.assert_close(norm(x.to(device)).cpu(), same(x))
    torch.testing.assert_close(norm.running_var.cpu(), same.running_var)
