"""Models whose parameters are sharded over ranks (FSDP) train as on the CPU."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from behaviour import torch_lazy, wait_for_compiles
from ranks import on_cpu
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

pytestmark = pytest.mark.skipif(
    torch_lazy is not None and not hasattr(torch_lazy, "Stream"),
    reason="FSDP orders its work by the streams of the device's module",
)


def make_model(device: str) -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 10), nn.Tanh(), nn.Linear(10, 3)]
    return nn.Sequential(*layers).to(device)


def shard(device: str, half: bool = False, **options) -> nn.Module:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    if half:
        options["mp_policy"] = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
    options["mesh"] = init_device_mesh(device, (dist.get_world_size(),))
    model = make_model(device)
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, **options)
    return fully_shard(model, **options)


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    device: str,
    steps: range,
    clip: bool = False,
) -> list[float]:
    """The losses of this rank, and the norms of all ranks' gradients where they are clipped."""
    seen = []
    for step in steps:
        x = torch.randn(4, 6, generator=torch.Generator().manual_seed(step + dist.get_rank()))
        optimizer.zero_grad()
        loss = model(x.to(device)).square().mean()
        loss.backward()
        seen.append(loss.item())
        if clip:
            seen.append(nn.utils.clip_grad_norm_(model.parameters(), 0.1).full_tensor().item())
        optimizer.step()
        wait_for_compiles()
    return seen


OPTIONS = {
    "plain": {},
    "clipping": {"clip": True},
    "gathered once": {"reshard_after_forward": False},
    "half precision": {"half": True},
}


def sharded(device: str, name: str) -> list:
    options = dict(OPTIONS[name])
    clip = options.pop("clip", False)
    model = shard(device, **options)
    losses = train(model, optimizer_of(model), device, range(6), clip)
    return [losses, on_cpu([p.full_tensor() for p in model.parameters()])]


@pytest.mark.parametrize("name", OPTIONS)
def test_fully_shard(two, device, name):
    tolerance = 2e-2 if name == "half precision" else 1e-4
    expected = two.run(sharded, "cpu", name)

    actual = two.run(sharded, device, name)

    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def fallbacks(device: str) -> list[str]:
    sharded(device, "plain")
    return [name for name in torch_lazy.metrics()["fallbacks"] if name.startswith("fsdp")]


@pytest.mark.recording
def test_packing_is_part_of_windows(two, device):
    assert two.run(fallbacks, device) == [[], []]


def first_version(device: str) -> list[float]:
    from torch.distributed.fsdp import FullyShardedDataParallel

    model = FullyShardedDataParallel(make_model(device))
    return train(model, optimizer_of(model), device, range(6))


@pytest.mark.recording  # FullyShardedDataParallel refuses the CPU
def test_fully_sharded_data_parallel(two, device):
    expected = [losses for losses, _ in two.run(sharded, "cpu", "plain")]

    actual = two.run(first_version, device)

    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def resumed(device: str, folder: str) -> list:
    """Losses after a checkpoint, and again from what was saved."""
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    model = shard(device)
    optimizer = optimizer_of(model)
    train(model, optimizer, device, range(3))
    weights, state = get_state_dict(model, optimizer)
    checkpoint.save({"model": weights, "optimizer": state}, checkpoint_id=folder)
    losses = train(model, optimizer, device, range(3, 6))
    weights, state = get_state_dict(model, optimizer)
    checkpoint.load({"model": weights, "optimizer": state}, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)
    return [losses, train(model, optimizer, device, range(3, 6))]


def test_a_distributed_checkpoint(two, device, tmp_path):
    for losses, again in two.run(resumed, device, str(tmp_path)):
        torch.testing.assert_close(again, losses, rtol=1e-4, atol=1e-5)
