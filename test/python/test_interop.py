"""What scripts do with tensors and modules besides arithmetic: print, copy, move, train."""

from __future__ import annotations

import copy

import pytest
import torch
from behaviour import hot, same, wait_for_compiles
from torch import nn


def make_net() -> nn.Sequential:
    torch.manual_seed(2)
    # No bias before batch norm: its gradient is rounding noise, which some optimizers scale up.
    return nn.Sequential(nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, 3))


def test_repr_shows_values_and_device(device):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.5]]).to(device)

    text = repr(hot(lambda: x + 0))

    assert "[1.0000, 2.0000]" in text
    assert "4.5000" in text
    assert ("device='lazy:0'" in text) == device.startswith("lazy")


def test_formatting_and_numbers(device):
    x = torch.tensor(2.5).to(device)

    assert f"{x:.2f}" == "2.50"
    assert (float(x), int(x), bool(x), x.item()) == (2.5, 2, True, 2.5)
    assert [1, 2, 3][torch.tensor(1).to(device)] == 2
    assert len({x, x}) == 1


def test_comparisons_of_devices(device):
    x = torch.ones(2, device=device)

    assert x.device == torch.ones(1, device=x.device).device
    assert (x + 1).device == x.device == torch.empty_like(x).device
    assert x.to(f"{x.device.type}:0").device.type == x.device.type


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.05),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-2, nesterov=True),
        lambda p: torch.optim.Adam(p, lr=0.01),
        lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
        lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True),
        lambda p: torch.optim.Adagrad(p, lr=0.01),
        lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
    ],
    ids=["SGD", "SGD with momentum", "Adam", "AdamW", "RMSprop", "Adagrad", "Adam foreach"],
)
def test_optimizers_train_as_on_the_cpu(device, make):
    def train(where):
        net = make_net().to(where)
        optimizer = make(net.parameters())
        losses = []
        for i in range(10):
            x = torch.randn(7, 6, generator=torch.Generator().manual_seed(i)).to(where)
            loss = nn.functional.mse_loss(net(x), x[:, :3])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            wait_for_compiles()
        return losses, [p.detach().cpu() for p in net.state_dict().values()]

    losses, state = train(device)
    expected_losses, expected_state = train("cpu")

    torch.testing.assert_close(losses, expected_losses, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(state, expected_state, rtol=1e-4, atol=1e-5)


def test_a_schedule_and_clipping(device):
    def train(where):
        net = make_net().to(where)
        optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
        norms = []
        for i in range(8):
            x = torch.ones(4, 6).to(where) * i
            optimizer.zero_grad()
            net(x).square().sum().backward()
            norms.append(nn.utils.clip_grad_norm_(net.parameters(), 0.5).item())
            optimizer.step()
            schedule.step()
        return norms

    torch.testing.assert_close(train(device), train("cpu"), rtol=1e-5, atol=1e-6)


def test_tied_weights_stay_tied(device):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = nn.Embedding(11, 4), nn.Linear(4, 11, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, tokens):
            return self.head(self.embedding(tokens))

    def gradient(where):
        torch.manual_seed(1)
        net, tokens = Tied().to(where), torch.arange(8).to(where)
        nn.functional.cross_entropy(net(tokens), tokens).backward()
        assert net.head.weight is net.embedding.weight
        assert len(list(net.parameters())) == 1
        return net.to("cpu"), net.head.weight.grad.cpu()

    back, found = gradient(device)

    torch.testing.assert_close(found, gradient("cpu")[1])
    assert back.head.weight is back.embedding.weight


def test_module_to_and_back(device):
    net, reference = make_net(), make_net()

    net.to(device)
    assert all(t.device.type == device.partition(":")[0] for t in net.state_dict().values())
    assert all(p.is_leaf and p.requires_grad for p in net.parameters())
    net.to("cpu")

    same(dict(net.state_dict()), dict(reference.state_dict()))


def test_module_casts(device):
    net = make_net().to(device, torch.float64)

    assert {p.dtype for p in net.parameters()} == {torch.float64}
    assert net(torch.ones(2, 6, dtype=torch.float64, device=device)).dtype == torch.float64


def test_deepcopy_of_a_module_is_independent(device):
    net = make_net().to(device)

    twin = copy.deepcopy(net)
    with torch.no_grad():
        twin[0].weight.zero_()

    same(net[0].weight.detach().cpu(), make_net()[0].weight.detach())
    assert twin[0].weight.abs().sum().item() == 0


def test_load_state_dict_across_devices(device):
    net, other = make_net().to(device), make_net()
    with torch.no_grad():
        other[0].weight.fill_(0.5)

    net.load_state_dict(other.state_dict())

    assert net[0].weight.unique().tolist() == [0.5]


def test_buffers_are_updated_in_training_only(device):
    def statistics(where):
        norm = nn.BatchNorm1d(3).to(where)
        x = torch.arange(12.0).reshape(4, 3).to(where)
        for _ in range(5):
            norm(x)
        norm.eval()
        norm(x * 100)
        return norm.running_mean, norm.running_var, norm.num_batches_tracked

    for actual, expected in zip(statistics(device), statistics("cpu"), strict=False):
        same(actual.cpu(), expected)


def test_default_device_and_device_context(device):
    with torch.device(device):
        assert torch.zeros(2).device.type == device.partition(":")[0]
        assert nn.Linear(2, 2).weight.device.type == device.partition(":")[0]
    assert torch.zeros(2).device.type == "cpu"


def test_factories_match_the_cpus(device):
    same(torch.arange(5, device=device).cpu(), torch.arange(5))
    same(torch.linspace(0, 1, 7, device=device).cpu(), torch.linspace(0, 1, 7))
    same(torch.eye(3, device=device).cpu(), torch.eye(3))
    same(torch.full((2, 2), 1.5, device=device).cpu(), torch.full((2, 2), 1.5))
    same(torch.as_tensor([1, 2], device=device).cpu(), torch.as_tensor([1, 2]))
    assert torch.empty(2, 3, device=device).shape == (2, 3)
    assert torch.empty_strided((2, 3), (1, 2), device=device).stride() == (1, 2)


def test_functional_transforms(device):
    def f(x):
        return (x.sin() * x).sum()

    x = torch.arange(3.0)

    same(torch.func.grad(f)(x.to(device)).cpu(), torch.func.grad(f)(x))
    same(
        torch.func.vmap(lambda r: r.cumsum(0) * 2)(x.expand(2, 3).to(device)).cpu(),
        torch.func.vmap(lambda r: r.cumsum(0) * 2)(x.expand(2, 3)),
    )
    same(torch.func.jacrev(torch.tanh)(x.to(device)).cpu(), torch.func.jacrev(torch.tanh)(x))


def test_a_transformer_layer_trains(device):
    def train(where):
        torch.manual_seed(4)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).to(where)
        x = torch.randn(2, 5, 8).to(where)
        losses = []
        for _ in range(6):
            loss = layer(x).square().mean()
            layer.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in layer.parameters():
                    p -= 0.1 * p.grad
            losses.append(loss.item())
            wait_for_compiles()
        return losses

    torch.testing.assert_close(train(device), train("cpu"), rtol=1e-5, atol=1e-6)


def test_a_recurrent_network(device):
    def run(where):
        torch.manual_seed(4)
        cell = nn.LSTMCell(4, 6).to(where)
        state = None
        for i in range(10):
            state = cell(torch.full((2, 4), i / 10).to(where), state)
        state[0].sum().backward()
        return state[0].detach().cpu(), cell.weight_ih.grad.cpu()

    for _ in range(4):
        torch.testing.assert_close(run(device), run("cpu"))
        wait_for_compiles()


def test_a_torchscript_file_is_loaded_to_the_device(device, tmp_path):
    x = torch.ones(2, 6).to(device)
    net = make_net().to(device).eval()
    torch.jit.save(torch.jit.trace(net, x), tmp_path / "net.pt")

    loaded = torch.jit.load(tmp_path / "net.pt", map_location=device)

    assert {p.device for p in loaded.parameters()} == {x.device}
    same(loaded(x), net(x))


class NamedLazy(torch.nn.Module):
    """Of a script that knows nothing of the device."""

    def __init__(self, member):
        super().__init__()
        if isinstance(member, torch.nn.Parameter | torch.nn.Module):
            self.lazy = member
        else:
            self.register_buffer("lazy", member)


MEMBERS = {
    "module": lambda: torch.nn.Linear(2, 2),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "buffer": lambda: torch.ones(2),
}


@pytest.mark.parametrize("make", MEMBERS.values(), ids=MEMBERS)
def test_a_module_may_have_a_member_named_lazy(make):
    member = make()

    module = NamedLazy(member)

    assert module.lazy is member
    assert copy.deepcopy(module).lazy is not member
    assert [name for name, _ in module.named_children()] == ["lazy"] * isinstance(
        member, torch.nn.Module
    )


def test_other_modules_move_by_the_method_of_that_name():
    module = torch.nn.Sequential(torch.nn.Linear(2, 2))
    module.add_module("lazy", torch.nn.Linear(2, 2))

    assert module[0].lazy() is module[0]
    assert module[0].weight.is_lazy
    assert isinstance(module.lazy, torch.nn.Linear)


def test_a_tensor_may_be_given_an_attribute_named_is_lazy():
    x = torch.ones(2)
    assert not x.is_lazy

    x.is_lazy = "perhaps"

    assert x.is_lazy == "perhaps"
