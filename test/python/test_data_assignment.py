"""`tensor.data = other` across devices, and what is built on it: `module.to("lazy")` and back."""

import copy

import pytest
import torch
from behaviour import hot, same, wait_for_compiles


def make_module() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


def train(module, optimizer, where, steps=8):
    for step in range(steps):
        batch = torch.full((4, 8), 1.0 + step).to(where)
        loss = module(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 4:
            wait_for_compiles()
    return loss


@pytest.mark.parametrize("make_optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_an_optimizer_made_before_the_move_trains_the_module(device, make_optimizer):
    losses = {}
    for where in (device, "cpu"):
        module = make_module()
        optimizer = make_optimizer(module.parameters(), lr=0.01)

        module.to(where)

        losses[where] = train(module, optimizer, where).item()
    assert losses[device] == pytest.approx(losses["cpu"], rel=1e-5)


def test_parameters_are_the_same_objects_there_and_back(device):
    module = make_module()
    before = list(module.parameters())

    there = list(module.to(device).parameters())
    back = list(module.to("cpu").parameters())

    assert all(a is b is c for a, b, c in zip(before, there, back, strict=True))
    assert {p.device.type for p in back} == {"cpu"}
    same(module(torch.ones(2, 8)), make_module()(torch.ones(2, 8)))


def test_tied_parameters_are_moved_once(device):
    module = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)])
    module[1].weight = module[0].weight

    module.to(device)

    assert module[1].weight is module[0].weight
    module[0].weight.data.fill_(3.0)
    assert module[1].weight.sum().item() == 48.0


def test_hooks_set_before_the_move_are_called_after_it(device):
    module = make_module()
    seen = []
    module[0].weight.register_hook(lambda gradient: seen.append(gradient.device.type))
    module[0].weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.device.type))

    module.to(device)
    module(torch.ones(2, 8, device=device)).sum().backward()

    assert seen == [torch.device(device).type] * 2


def test_gradients_move_with_their_parameters(device):
    module = make_module()
    module(torch.ones(2, 8)).sum().backward()
    expected = [p.grad.clone() for p in module.parameters()]

    module.to(device)

    for parameter, gradient in zip(module.parameters(), expected, strict=True):
        assert parameter.grad.device.type == torch.device(device).type
        same(parameter.grad.cpu(), gradient)


def test_a_tensor_of_the_cpu_becomes_one_of_the_device(device):
    tensor = torch.zeros(3, 4)
    data = torch.arange(6.0).to(device)

    tensor.data = data
    tensor.mul_(2)

    assert tensor.device.type == torch.device(device).type
    same(tensor.cpu(), torch.arange(6.0) * 2)
    same(data.cpu(), torch.arange(6.0) * 2)


def test_a_tensor_of_the_device_becomes_one_of_the_cpu(device):
    tensor = torch.zeros(3, 4, device=device)

    tensor.data = torch.arange(6.0)

    assert tensor.device.type == "cpu"
    same(tensor.detach() + 1, torch.arange(6.0) + 1)
    assert tensor.numpy().tolist() == list(range(6))


def test_data_that_is_still_deferred_is_taken_over(device):
    def program():
        tensor = torch.zeros(2)
        data = torch.ones(4, device=device).mul(3)
        tensor.data = data.add(1)
        return tensor + data

    same(hot(program).cpu(), torch.full((4,), 7.0))


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.t_(),
        lambda t: t.transpose_(0, 1),
        lambda t: t.unsqueeze_(0),
        lambda t: t.resize_(4, 5).fill_(2.0),
        lambda t: t.as_strided_((2, 2), (1, 3), 1),
        lambda t: t.set_(torch.arange(5.0).to(t.device)),
    ],
    ids=["t_", "transpose_", "unsqueeze_", "resize_", "as_strided_", "set_"],
)
def test_metadata_changed_in_place_is_the_tensors_own(device, change):
    def program(where):
        tensor = torch.zeros(1)
        tensor.data = torch.arange(12.0).view(3, 4).to(where)
        with torch.no_grad():
            returned = change(tensor)
        assert returned is tensor
        return tensor

    for _ in range(6):
        moved, expected = program(device), program("cpu")

        assert (moved.shape, moved.stride(), moved.storage_offset()) == (
            expected.shape,
            expected.stride(),
            expected.storage_offset(),
        )
        same((moved + 1).cpu(), expected + 1)
        wait_for_compiles()


def test_a_view_of_moved_data_shares_its_memory(device):
    def program(where):
        tensor = torch.zeros(1)
        tensor.data = torch.zeros(3, 4).to(where)
        rows, detached = tensor[1], tensor.detach()
        rows.add_(1)
        detached.mul_(5)
        return tensor.clone(), rows.clone()

    same([t.cpu() for t in hot(lambda: program(device))], list(program("cpu")))


def test_a_moved_module_can_be_copied(device):
    module = make_module().to(device)

    copied = copy.deepcopy(module)
    with torch.no_grad():
        module[0].weight.zero_()

    same(copied.cpu()(torch.ones(2, 8)), make_module()(torch.ones(2, 8)))


def test_conjugated_and_negated_views_can_be_given_as_data(device):
    values = torch.tensor([1 + 2j, 3 - 4j])
    tensor = torch.zeros(2, device=device)

    tensor.data = values.to(device).conj().imag

    same(tensor.clone().cpu(), values.conj().imag.clone())


def test_data_can_be_given_to_a_view_that_has_no_gradient_any_more(device):
    parameter = torch.ones(4, 3, device=device, requires_grad=True)
    rows, _ = parameter.chunk(2)
    part = rows.as_strided([3], [4], 2)
    with torch.no_grad():
        rows.mul_(2)

    part.data = torch.zeros(2, 2, device=device)

    assert part.shape == (2, 2)


def test_data_given_in_inference_mode_leaves_a_tensor_that_can_be_trained(device):
    def program(where):
        weight, data = torch.zeros(6, requires_grad=True), torch.arange(6.0).to(where)
        with torch.inference_mode():
            weight.data = data
        weight.view(2, 3).square().sum().backward()
        return weight.grad

    same(hot(lambda: program(device)).cpu(), program("cpu"))


def test_sparse_data_is_refused_as_on_other_devices(device):
    tensor = torch.zeros(2, 2, device=device)

    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        tensor.data = torch.eye(2).to_sparse()
