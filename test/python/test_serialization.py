"""`torch.save` and `torch.load`: what was on the device comes back to it, and is what it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from behaviour import deferred, hot, same
from saving import base_type, each_format, reloaded, saved, share_storage
from torch import nn

DTYPES = (
    torch.bool,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.complex64,
)
NEW_DTYPES = (torch.uint16, torch.float8_e4m3fn, torch.float8_e5m2)


def make_net() -> nn.Sequential:
    # No bias before batch norm: its gradient is rounding noise, which some optimizers scale up.
    return nn.Sequential(nn.Linear(3, 4, bias=False), nn.BatchNorm1d(4), nn.Linear(4, 2))


# ---------------------------------------------------------------- tensors


@each_format
@pytest.mark.parametrize("weights_only", [True, False])
def test_a_tensor_comes_back_to_its_device(device, file_format, weights_only):
    x = torch.arange(6.0).reshape(2, 3).to(device)

    back = reloaded(x, file_format, weights_only=weights_only)

    assert back.device == x.device
    same(back, x)


@each_format
def test_a_pending_value_is_saved(device, file_format):
    x = torch.arange(6.0).to(device)

    back = hot(lambda: reloaded(x * 3 + 1, file_format))

    assert back.tolist() == [1, 4, 7, 10, 13, 16]


@pytest.mark.parametrize(
    ("file_format", "dtype"),
    # The legacy format has no dtypes that are younger than itself, on no device.
    [("zip", dtype) for dtype in DTYPES + NEW_DTYPES] + [("legacy", dtype) for dtype in DTYPES],
    ids=str,
)
def test_every_dtype_is_saved(device, file_format, dtype):
    x = torch.arange(5).to(dtype).to(device)

    back = reloaded(x, file_format)

    assert (back.device, back.dtype) == (x.device, dtype)
    assert torch.equal(back.cpu().view(torch.uint8), x.cpu().view(torch.uint8))


SHAPES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a scalar": lambda x: x[0, 0, 0, 1],
    "no element": lambda x: x[:0],
    "a transposed view": lambda x: x.transpose(1, 3),
    "an offset and steps": lambda x: x[1, :, ::2, 1:],
    "expanded": lambda x: x[:1].expand(3, 4, 4, 5),
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
}


@each_format
@pytest.mark.parametrize("view", SHAPES.values(), ids=SHAPES)
def test_strides_and_offsets_are_saved(device, file_format, view):
    x = torch.arange(160.0).reshape(2, 4, 4, 5).to(device)

    back = reloaded(view(x), file_format)

    same(back, view(x))


def test_conjugate_and_negative_views_are_saved(device):
    x = torch.tensor([1 + 2j, 3 - 4j]).to(device)

    conjugate, negative = reloaded(x.conj()), reloaded(x.conj().imag)

    assert conjugate.is_conj()
    assert negative.is_neg()
    assert torch.equal(conjugate, x.conj())
    assert torch.equal(negative, x.conj().imag)


@each_format
def test_views_share_their_storage_again(device, file_format):
    x = torch.arange(12.0).to(device)

    base, row, other = reloaded([x, x.view(3, 4)[1], x.clone()], file_format)
    base.zero_()

    assert row.tolist() == [0, 0, 0, 0]
    assert other.tolist() == list(range(12))
    assert share_storage(base, row)


@each_format
def test_devices_are_told_apart_in_one_file(device, file_format):
    x, here = torch.ones(3).to(device), torch.zeros(3)

    back = reloaded({"here": here, "there": x, "view of here": here[1:]}, file_format)

    assert back["there"].device == x.device
    assert back["here"].device.type == back["view of here"].device.type == "cpu"
    assert share_storage(back["here"], back["view of here"])


@each_format
def test_parameters_and_gradients_are_asked_for_again(device, file_format):
    weight = nn.Parameter(torch.ones(2, device=device))
    leaf = torch.ones(2, device=device, requires_grad=True)

    weight_back, leaf_back = reloaded([weight, leaf], file_format)

    assert isinstance(weight_back, nn.Parameter)
    assert weight_back.requires_grad
    assert leaf_back.requires_grad
    assert leaf_back.is_leaf


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_a_storage_is_saved_by_itself(device):
    storage = torch.arange(4, dtype=torch.uint8).to(device).untyped_storage()

    back = reloaded(storage, weights_only=False)

    assert back.device == storage.device
    assert back.tolist() == [0, 1, 2, 3]


def test_hooks_are_warned_about(device):
    x = torch.ones(2, device=device, requires_grad=True)
    x.register_hook(lambda gradient: gradient)

    with pytest.warns(UserWarning, match="will not be serialized"):
        saved(x)


def test_attributes_and_subclasses_are_saved(device):
    x = torch.ones(2).to(device)
    x.note = "kept"

    back = reloaded(x, weights_only=False)

    assert back.note == "kept"
    assert back.device == x.device


@pytest.mark.recording
def test_saving_does_not_stop_deferring(device):
    x = torch.arange(8.0).to(device)

    def step():
        x.mul_(0.5).add_(1)

    saved({"x": x, "view": x[2:]})
    hot(step)

    assert deferred(step) == 2


def test_an_error_of_a_deferred_operation_is_raised(device):
    x = torch.arange(4).to(device)
    one, zero = torch.ones_like(x), torch.zeros_like(x)
    hot(lambda: saved(x // one))

    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        saved(x // zero)


# ---------------------------------------------------------------- modules and checkpoints


@each_format
def test_tied_weights_stay_tied(device, file_format):
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight

    back = reloaded(net.to(device), file_format, weights_only=False)

    assert back[0].weight is back[1].weight
    same(dict(back.state_dict()), dict(net.state_dict()))


def train(net: nn.Module, optimizer: torch.optim.Optimizer, device: str, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.randn(5, 3).to(device)).square().mean().backward()
        optimizer.step()


@each_format
def test_training_goes_on_from_a_checkpoint(device, file_format):
    """Module, optimizer, schedule and random numbers: the run that was interrupted and the one that
    was not end alike."""

    def make() -> tuple[nn.Module, torch.optim.Optimizer]:
        net = make_net().to(device)
        return net, torch.optim.AdamW(net.parameters(), lr=0.01)

    net, optimizer = make()
    train(net, optimizer, device, 3)
    checkpoint = {
        "model": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "rng": torch.get_rng_state(),
        "epoch": 3,
    }
    file = saved(checkpoint, file_format)
    train(net, optimizer, device, 3)

    resumed, optimizer = make()
    checkpoint = torch.load(file)
    resumed.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    torch.set_rng_state(checkpoint["rng"])
    train(resumed, optimizer, device, 3)

    moment = checkpoint["optimizer"]["state"][0]["exp_avg"]
    assert moment.device.type == base_type(device)
    same(dict(resumed.state_dict()), dict(net.state_dict()))
