"""`copy.deepcopy`, `copy.copy` and `pickle`: copies are independent of the original, and what
shared memory in it shares memory in the copy, wherever it does on the CPU."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from behaviour import deferred, hot, same, same_on
from saving import share_storage
from torch import nn


class Tagged(torch.Tensor):
    """A subclass that says how it is made anew."""

    def new_empty(self, *args, **kwargs):
        return super().new_empty(*args, **kwargs).as_subclass(Tagged)


# ---------------------------------------------------------------- deepcopy


def test_a_copy_is_independent(device):
    x = torch.arange(4.0).to(device)

    twin = copy.deepcopy(x)
    x.zero_()

    assert twin.device == x.device
    assert twin.tolist() == [0, 1, 2, 3]


def test_a_pending_value_is_copied(device):
    x = torch.arange(4.0).to(device)

    twin = hot(lambda: copy.deepcopy(x * 2 + 1))

    assert twin.tolist() == [1, 3, 5, 7]


def test_views_stay_views_of_each_other(device):
    x = torch.arange(12.0).to(device)
    things = {"rows": [x.view(3, 4)[i] for i in range(3)], "base": x, "other": x.clone()}

    twin = copy.deepcopy(things)
    twin["base"].zero_()

    assert [row.tolist() for row in twin["rows"]] == [[0] * 4] * 3
    assert twin["other"].tolist() == x.tolist() == list(range(12))
    assert share_storage(twin["base"], twin["rows"][1])
    assert not share_storage(twin["base"], x)


def test_views_of_other_dtypes_stay_views(device):
    x = torch.ones(4).to(device)

    whole, as_integers = copy.deepcopy([x, x.view(torch.int32)])
    whole.zero_()

    assert as_integers.tolist() == [0] * 4


def test_strides_and_offsets_are_kept(device):
    x = torch.arange(60.0).reshape(3, 4, 5).to(device)

    for view in (x.transpose(0, 2), x[1, 2:, ::2], x[0, 0, 3], x[:0], x[:1].expand(3, 4, 5)):
        same(copy.deepcopy(view), view)


@pytest.mark.parametrize("view", [torch.conj, lambda z: z.conj().imag], ids=["conj", "neg"])
def test_conjugate_and_negative_views_keep_their_values(device, view):
    z = torch.tensor([1 + 2j, 3 - 4j])

    twin = copy.deepcopy(view(z.to(device)))

    same(twin.cpu(), copy.deepcopy(view(z)))


def test_gradients_are_copied_with_their_aliases(device):
    x = torch.ones(3, device=device, requires_grad=True)
    (x * 2).sum().backward()

    twin, gradient = copy.deepcopy([x, x.grad])

    assert twin.requires_grad
    assert twin.is_leaf
    assert twin.grad is gradient
    assert twin.grad.tolist() == [2, 2, 2]
    assert not share_storage(twin.grad, x.grad)


def test_one_tensor_in_two_places_is_copied_once(device):
    x = torch.ones(2).to(device)

    first, second = copy.deepcopy([x, x])

    assert first is second


def test_attributes_are_copied(device):
    x = torch.ones(2).to(device)
    x.notes = ["kept"]

    twin = copy.deepcopy(x)
    x.notes.append("later")

    assert twin.notes == ["kept"]


def test_subclasses_are_copied_as_themselves(device):
    x = torch.arange(4.0).to(device).as_subclass(Tagged)
    x.tag = "kept"

    twin, view = copy.deepcopy([x, x[2:]])
    twin.zero_()

    assert type(twin) is type(view) is Tagged
    assert twin.tag == "kept"
    assert view.tolist() == [0, 0]
    assert x.tolist() == [0, 1, 2, 3]


def test_a_subclass_that_cannot_be_made_anew_is_an_error(device):
    class Plain(torch.Tensor):
        pass

    with pytest.raises(RuntimeError, match=r"new_empty\(\)"):
        copy.deepcopy(torch.ones(2).to(device).as_subclass(Plain))


def test_what_is_no_leaf_is_refused(device):
    x = torch.ones(2, device=device, requires_grad=True)

    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


@pytest.mark.recording
def test_copying_does_not_stop_deferring(device):
    x = torch.arange(8.0).to(device)

    def step():
        x.mul_(0.5).add_(1)

    copy.deepcopy([x, x[2:]])
    hot(step)

    assert deferred(step) == 2


# ---------------------------------------------------------------- modules


class Net(nn.Module):
    """Tied weights, and buffers that are views of one another."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("statistics", torch.zeros(6))
        self.link()

    def link(self) -> None:
        """Moving a module takes views apart, on every device."""
        self.register_buffer("mean", self.statistics[:3])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        self.mean += 1
        return self.head(self.embedding(tokens))


def test_a_copied_module_is_tied_as_the_original(device):
    net = Net().to(device)
    net.link()

    twin = copy.deepcopy(net)
    twin(torch.arange(3).to(device)).sum().backward()

    assert twin.head.weight is twin.embedding.weight
    assert twin.statistics.tolist() == [1, 1, 1, 0, 0, 0]
    assert net.statistics.tolist() == [0] * 6
    assert net.head.weight.grad is None


def test_a_moving_average_follows_the_trained_module(device):
    def average(where):
        torch.manual_seed(1)
        net = nn.Linear(3, 2).to(where)
        ema = copy.deepcopy(net).requires_grad_(False)
        for i in range(6):
            net(torch.full((2, 3), float(i)).to(where)).sum().backward()
            with torch.no_grad():
                for slow, fast in zip(ema.parameters(), net.parameters(), strict=True):
                    fast -= 0.1 * fast.grad
                    slow.lerp_(fast, 0.25)
        return [p.detach().cpu() for p in ema.parameters()]

    same_on(device, average)


def test_a_copied_optimizer_goes_on_alike(device):
    torch.manual_seed(0)
    net = nn.Linear(3, 2).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)

    def step(module, optimizer):
        optimizer.zero_grad()
        module(torch.ones(2, 3, device=device)).square().sum().backward()
        optimizer.step()

    step(net, optimizer)
    twin, twin_optimizer = copy.deepcopy((net, optimizer))
    step(net, optimizer)
    step(twin, twin_optimizer)

    same(dict(twin.state_dict()), dict(net.state_dict()))


# ---------------------------------------------------------------- copy and pickle


def test_a_shallow_copy_shares_the_memory(device):
    x = torch.arange(3.0).to(device)

    twin = copy.copy(x)
    x.zero_()

    assert twin.tolist() == [0, 0, 0]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_tensor_is_pickled(device, protocol):
    x = torch.arange(6.0).reshape(2, 3).to(device).t()

    back = pickle.loads(pickle.dumps(x, protocol))

    assert back.device == x.device
    same(back, x)


def test_a_parameter_and_a_subclass_are_pickled(device):
    weight = nn.Parameter(torch.ones(2, device=device), requires_grad=False)
    tagged = torch.ones(2).to(device).as_subclass(Tagged)
    tagged.tag = "kept"

    weight_back, tagged_back = pickle.loads(pickle.dumps([weight, tagged]))

    assert isinstance(weight_back, nn.Parameter)
    assert not weight_back.requires_grad
    assert weight_back.device == tagged_back.device == weight.device
    assert (type(tagged_back), tagged_back.tag) == (Tagged, "kept")


def test_a_tied_module_is_pickled(device):
    net = Net().to(device)

    back = pickle.loads(pickle.dumps(net))

    assert back.head.weight is back.embedding.weight
    same(dict(back.state_dict()), dict(net.state_dict()))


def test_a_pickled_hook_is_warned_about(device):
    x = torch.ones(2, device=device, requires_grad=True)
    x.register_hook(lambda gradient: gradient)

    with pytest.warns(UserWarning, match="will not be serialized"):
        pickle.dumps(x)
