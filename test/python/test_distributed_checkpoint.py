"""`torch.distributed.checkpoint` in one process, without a process group."""

from __future__ import annotations

import pytest
import torch
from behaviour import same
from saving import base_type
from torch import nn
from torch.distributed import checkpoint
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")


def trained(device: str, seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    net(torch.randn(5, 3).to(device)).square().sum().backward()
    optimizer.step()
    return net, optimizer


def states(net: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, dict]:
    model, optim = get_state_dict(net, optimizer)
    return {"model": model, "optim": optim}


def test_modules_and_optimizers_are_loaded_in_place(device, tmp_path):
    net, optimizer = trained(device, 0)
    other, other_optimizer = trained(device, 1)
    checkpoint.save(states(net, optimizer), checkpoint_id=tmp_path)

    loaded = states(other, other_optimizer)
    checkpoint.load(loaded, checkpoint_id=tmp_path)
    set_state_dict(
        other,
        other_optimizer,
        model_state_dict=loaded["model"],
        optim_state_dict=loaded["optim"],
    )

    same(dict(other.state_dict()), dict(net.state_dict()))
    moments = [o.state_dict()["state"][0]["exp_avg"] for o in (other_optimizer, optimizer)]
    assert moments[0].device.type == base_type(device)
    same(*moments)


def test_a_checkpoint_is_saved_beside_training(device, tmp_path):
    net, optimizer = trained(device, 0)
    saved = {name: value.cpu().clone() for name, value in net.state_dict().items()}

    future = checkpoint.async_save(states(net, optimizer), checkpoint_id=tmp_path)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
    future.result()

    other = {"model": trained(device, 1)[0].state_dict()}
    checkpoint.load(other, checkpoint_id=tmp_path)
    same({name: value.cpu() for name, value in other["model"].items()}, saved)


def test_a_checkpoint_becomes_a_file(device, tmp_path):
    net, optimizer = trained(device, 0)
    checkpoint.save(states(net, optimizer), checkpoint_id=tmp_path / "parts")

    dcp_to_torch_save(tmp_path / "parts", tmp_path / "file.pt")
    loaded = torch.load(tmp_path / "file.pt", map_location=device, weights_only=False)

    same(dict(loaded["model"]), dict(net.state_dict()))
