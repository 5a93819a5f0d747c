"""Saving, loading, copying and sharing."""

from __future__ import annotations

import copy
import io
import pickle
import tempfile
from pathlib import Path

import torch


def _trained(device: str):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    _step(model, optimizer, device)
    return model, optimizer


def _step(model, optimizer, device: str):
    loss = model(torch.arange(8.0).view(2, 4).to(device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def checkpoint(device: str):
    """`torch.save` and `torch.load` of a model and its optimizer, and going on from there"""
    model, optimizer = _trained(device)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file, map_location=device)
    model, optimizer = _trained(device)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return [_step(model, optimizer, device) for _ in range(3)]


def load_elsewhere(device: str):
    """A file saved from the device and loaded with `map_location="cpu"`, `mmap` too"""
    model, _ = _trained(device)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.pt"
        torch.save(model.state_dict(), path)
        loaded = torch.load(path, map_location="cpu", mmap=True)
        return {name: value.clone() for name, value in loaded.items()}


def whole_module(device: str):
    """`torch.save` of a whole module, loaded with `weights_only=False`"""
    file = io.BytesIO()
    torch.save(_trained(device)[0], file)
    file.seek(0)
    return torch.load(file, weights_only=False).weight.detach()


def pickled(device: str):
    """`pickle` and `copy.deepcopy` of tensors that share memory"""
    base = torch.arange(6.0).to(device)
    pair = pickle.loads(pickle.dumps((base, base[2:4])))
    twin = copy.deepcopy((base, base[2:4]))
    twin[1].mul_(2)
    return [*pair, *twin]


def storages(device: str):
    """`untyped_storage()`: its size, a copy, `resize_`"""
    x = torch.arange(6, dtype=torch.uint8).to(device)
    sizes = [x.untyped_storage().nbytes()]
    clone = x.untyped_storage().clone()
    x.untyped_storage().resize_(16)
    return [*sizes, x.untyped_storage().nbytes(), list(clone)]


def numpy_arrays(device: str):
    """`torch.from_numpy` to the device, and `.numpy()` of what comes back"""
    import numpy

    x = torch.from_numpy(numpy.arange(6.0)).to(device)
    return (x * 2).cpu().numpy().tolist()


def dlpack(device: str):
    """DLPack: tensors from arrays of NumPy, and back"""
    import numpy

    x = torch.from_numpy(numpy.arange(4.0)).to(device)
    return torch.from_dlpack((x + 1).cpu()).tolist()


def printed(device: str):
    """`repr` of tensors and parameters, but for the name of the device"""
    x = torch.arange(4.0).view(2, 2).to(device)
    return repr(x * 1.5).replace(", device='lazy:0'", "")
