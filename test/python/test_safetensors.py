"""Files of the `safetensors` library, read to the device and written from it."""

from __future__ import annotations

import pytest
import safetensors.torch as safetensors_torch
import torch
from behaviour import deferred, hot, run_script, same
from saving import base_type
from torch import nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.second.weight = self.first.weight


@pytest.fixture
def file(device, tmp_path):
    """A file of tensors that were on the device."""
    tensors = {
        "x": torch.arange(6.0).reshape(2, 3),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "flags": torch.tensor([True, False]),
        "empty": torch.ones(0, 2),
    }
    path = tmp_path / "tensors.safetensors"
    safetensors_torch.save_file({name: t.to(device) for name, t in tensors.items()}, path)
    return path, tensors


@pytest.mark.parametrize("spell", [base_type, lambda d: str(torch.ones(1, device=d).device)])
def test_a_file_is_loaded_to_the_device(device, file, spell):
    path, tensors = file

    loaded = safetensors_torch.load_file(path, device=spell(device))

    assert {t.device.type for t in loaded.values()} == {base_type(device)}
    same({name: t.cpu() for name, t in loaded.items()}, tensors)


def test_a_file_is_loaded_to_the_cpu(file):
    path, tensors = file

    same(safetensors_torch.load_file(path), tensors)


def test_torch_load_reads_the_file(device, file):
    path, tensors = file

    loaded = torch.load(path, map_location=device)

    assert loaded["x"].device.type == base_type(device)
    same(loaded["x"].cpu(), tensors["x"])


def test_parts_of_a_file_are_read(device, file):
    path, tensors = file

    with safetensors_torch.safe_open(path, framework="pt", device=device) as opened:
        names = sorted(opened.keys())
        whole, part = opened.get_tensor("x"), opened.get_slice("x")[:, 1:]
        shape = opened.get_slice("x").get_shape()

    assert names == sorted(tensors)
    assert shape == [2, 3]
    assert whole.device.type == part.device.type == base_type(device)
    same(whole.cpu(), tensors["x"])
    assert torch.equal(part.cpu(), tensors["x"][:, 1:])


def test_a_tied_module_is_saved_and_loaded(device, tmp_path):
    net, other = Tied().to(device), Tied().to(device)

    safetensors_torch.save_model(net, tmp_path / "net.safetensors")
    missing, unexpected = safetensors_torch.load_model(
        other, tmp_path / "net.safetensors", device=device
    )

    assert (missing, unexpected) == (set(), [])
    assert other.first.weight is other.second.weight
    same(dict(other.state_dict()), dict(net.state_dict()))


def test_a_device_that_is_not_there_is_an_error(file):
    path, _ = file

    with pytest.raises(Exception, match="device quatsch is invalid"):
        safetensors_torch.load_file(path, device="quatsch")


@pytest.mark.recording
def test_there_is_one_lazy_device(file):
    path, _ = file

    with pytest.raises(ValueError, match="there is no device lazy:1"):
        safetensors_torch.load_file(path, device="lazy:1")
    with pytest.raises(ValueError, match='say framework="pt"'):
        safetensors_torch.safe_open(path, framework="np", device="lazy")


@pytest.mark.recording
@pytest.mark.parametrize("whole_model", [False, True], ids=["save_file", "save_model"])
def test_saving_does_not_stop_deferring(device, tmp_path, whole_model):
    net = nn.Linear(3, 3).to(device).requires_grad_(False)

    def step():
        net.weight.mul_(0.5).add_(1)

    if whole_model:
        safetensors_torch.save_model(net, tmp_path / "net.safetensors")
    else:
        safetensors_torch.save_file(net.state_dict(), tmp_path / "net.safetensors")
    hot(step)

    assert deferred(step) == 2


@pytest.mark.recording
@pytest.mark.parametrize(
    "imports",
    [
        "import torch, safetensors.torch",
        "import safetensors.torch, torch",
        "import safetensors, torch, safetensors.torch",
        "import torch_lazy, safetensors.torch",
    ],
)
def test_the_order_of_imports_does_not_matter(file, imports):
    path, _ = file
    code = (
        f"{imports}\nprint(safetensors.torch.load_file({str(path)!r}, device='lazy')['x'].device)"
    )

    result = run_script(code)

    assert result.stdout.strip() == "lazy:0", result.stderr
