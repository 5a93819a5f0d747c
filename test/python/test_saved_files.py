"""Files of `torch.save`: where their tensors go, and what other programs and versions make of
them."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from behaviour import run_script, same
from saving import base_type, each_format, reloaded, saved, share_storage
from torch import nn

# ---------------------------------------------------------------- map_location

LOCATIONS: dict[str, Callable[[str], Any]] = {
    "name": lambda to: to,
    "device": lambda to: torch.device(to),
    "dict": lambda to: {"lazy:0": to, "cpu": to},
    "callable": lambda to: lambda storage, location: storage.to(device=to),
}


@each_format
@pytest.mark.parametrize("how", LOCATIONS.values(), ids=LOCATIONS)
@pytest.mark.parametrize("source", ["cpu", "device"])
@pytest.mark.parametrize("target", ["cpu", "device", "device with index"])
def test_map_location(device, file_format, how, source, target):
    x = torch.arange(6.0).to("cpu" if source == "cpu" else device)
    with_index = str(torch.ones(1, device=device).device)
    to = {"cpu": "cpu", "device": base_type(device), "device with index": with_index}[target]

    whole, part = reloaded([x, x[2:]], file_format, map_location=how(to))

    assert whole.device.type == part.device.type == base_type(to)
    assert share_storage(whole, part)
    same(whole.cpu(), torch.arange(6.0))


@each_format
@pytest.mark.recording
def test_a_callable_sees_where_storages_were(device, file_format):
    seen = []

    def remember(storage, location):
        seen.append((storage.device.type, location))

    back = reloaded([torch.ones(2).to(device), torch.ones(2)], file_format, map_location=remember)

    assert seen == [("cpu", "lazy:0"), ("cpu", "cpu")]
    assert [t.device.type for t in back] == ["lazy", "cpu"]


@each_format
@pytest.mark.recording
def test_a_device_that_is_not_there_is_an_error(device, file_format):
    file = saved(torch.ones(2), file_format)

    with pytest.raises(ValueError, match="there is no device lazy:2"):
        torch.load(file, map_location="lazy:2")


def test_a_file_is_mapped(device, tmp_path):
    x = torch.arange(1000.0).to(device)
    torch.save({"x": x, "tail": x[990:]}, tmp_path / "x.pt")

    back = torch.load(tmp_path / "x.pt", mmap=True)
    mapped = torch.load(tmp_path / "x.pt", mmap=True, map_location="cpu")

    assert back["tail"].device == x.device
    assert share_storage(back["x"], back["tail"])
    assert mapped["tail"].tolist() == back["tail"].tolist() == list(range(990, 1000))


def test_meta_and_fake_tensors_come_of_a_file(device):
    x = torch.ones(3, 2).to(device)

    file = saved(x)
    with torch._subclasses.FakeTensorMode():
        fake = torch.load(file)
    meta = reloaded(x, map_location="meta")

    assert (fake.shape, fake.device) == (x.shape, x.device)
    assert (meta.shape, meta.device.type) == (x.shape, "meta")


# ---------------------------------------------------------------- other programs, other files

LOAD = """
import sys
import torch
thing = torch.load(sys.argv[1])
print({name: (t.device.type, t.tolist()) for name, t in thing.items()})
print(thing["x"].untyped_storage()._cdata == thing["view"].untyped_storage()._cdata)
"""


def load_elsewhere(path: Path, **environment: str) -> str:
    code = LOAD.replace("sys.argv[1]", repr(str(path)))
    result = run_script(code, **environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.recording
def test_a_file_needs_no_plugin(device, tmp_path):
    x = torch.arange(3.0).to(device)
    torch.save({"x": x, "view": x[1:], "here": torch.ones(1)}, tmp_path / "x.pt")

    without = load_elsewhere(tmp_path / "x.pt", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    with_plugin = load_elsewhere(tmp_path / "x.pt")

    assert without.splitlines() == [
        "{'x': ('cpu', [0.0, 1.0, 2.0]), 'view': ('cpu', [1.0, 2.0]), 'here': ('cpu', [1.0])}",
        "True",
    ]
    assert with_plugin.splitlines() == [
        "{'x': ('lazy', [0.0, 1.0, 2.0]), 'view': ('lazy', [1.0, 2.0]), 'here': ('cpu', [1.0])}",
        "True",
    ]


def test_a_file_of_cpu_tensors_is_what_it_was(tmp_path):
    torch.manual_seed(3)
    torch.save({"x": torch.arange(3.0), "net": nn.Linear(3, 4).state_dict()}, tmp_path / "with.pt")
    code = f"""
import torch
from torch import nn
torch.manual_seed(3)
net = nn.Linear(3, 4)
path = {str(tmp_path / "without.pt")!r}
torch.save({{"x": torch.arange(3.0), "net": net.state_dict()}}, path)
"""
    assert run_script(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").returncode == 0

    def records(name: str) -> dict[str, bytes]:
        with zipfile.ZipFile(tmp_path / f"{name}.pt") as file:
            return {n.partition("/")[2]: file.read(n) for n in file.namelist()}

    assert records("with") == records("without")


@pytest.mark.recording
def test_the_record_says_where_lazy_storages_were(device, tmp_path):
    x = torch.arange(3.0).to(device)
    torch.save([torch.ones(2), x, x[1:], torch.ones(1), x.clone()], tmp_path / "x.pt")

    with zipfile.ZipFile(tmp_path / "x.pt") as file:
        assert json.loads(file.read("x/.lazy_storages")) == {"1": "lazy:0", "3": "lazy:0"}


@each_format
def test_another_pickle_module_is_used(device, file_format):
    x = torch.arange(3.0).to(device)
    file = saved({"x": x, "f": len}, file_format, pickle_module=pickle, pickle_protocol=4)

    back = torch.load(file, pickle_module=pickle, weights_only=False)

    assert back["x"].device == x.device
    assert back["f"] is len


def test_weights_only_refuses_what_it_refused(device):
    file = saved({"x": torch.ones(2).to(device), "f": pytest.approx})

    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(file)
