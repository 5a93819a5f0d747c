"""Operations that change a tensor's own shape or memory: t_, set_, resize_, out= that resizes,
assignments to .data."""

from __future__ import annotations

import pytest
import torch
from behaviour import deferred, each_run, hot, same, same_on, wait_for_compiles

MUTATIONS = {
    "t_": lambda t: t.t_(),
    "transpose_": lambda t: t.transpose_(0, 1),
    "unsqueeze_": lambda t: t.unsqueeze_(1),
    "squeeze_": lambda t: t.unsqueeze_(0).squeeze_(),
    "as_strided_": lambda t: t.as_strided_((2, 2), (1, 3), 1),
    "shrink": lambda t: t.resize_(2, 2),
    "grow": lambda t: t.resize_(3, 5).fill_(3),
    "empty": lambda t: t.resize_(0),
    "set_ to nothing": lambda t: t.set_(),
    "swapaxes_": lambda t: t.swapaxes_(-1, 0),
}


@pytest.mark.parametrize("mutate", MUTATIONS.values(), ids=MUTATIONS)
def test_a_mutated_tensor_looks_and_computes_as_on_the_cpu(device, mutate):
    def program(where):
        t = torch.arange(6.0).reshape(2, 3).to(where)
        returned = mutate(t)
        assert returned is t
        return t, t + 1, t.sum()

    same_on(device, program)


@pytest.mark.parametrize("mutate", MUTATIONS.values(), ids=MUTATIONS)
def test_other_tensors_on_the_memory_keep_their_shape(device, mutate):
    def program(where):
        t = torch.arange(6.0).reshape(2, 3).to(where)
        alias, view, data = t.detach(), t[1], t.data
        mutate(t)
        return alias, view, data, view * 2

    same_on(device, program)


def test_memory_grows_that_a_window_is_given_by_two_tensors(device):
    def program(where):
        t = torch.arange(6.0).reshape(2, 3).to(where)
        view = t[1]
        assert view.sum() > 0  # the window ends, and both are inputs of the next one
        t.resize_(30, 50).fill_(3)
        return t, view * 2

    same_on(device, program)


def test_data_is_not_transposed_with_its_tensor(device):
    x = torch.zeros(2, 3, device=device)
    y = x.data

    x.t_()

    assert (x.shape, y.shape) == ((3, 2), (2, 3))
    y[0, 1] = 5
    assert x[1, 0].item() == 5


def test_a_value_recorded_before_a_mutation_keeps_its_shape(device):
    def program(where):
        t = torch.arange(6.0).reshape(2, 3).to(where)
        before = t * 2
        t.t_()
        between = t * 2
        t.resize_(2)
        return before, between, t

    same_on(device, program)


def test_set_makes_two_tensors_share_memory(device):
    def program(where):
        a, b = torch.arange(6.0).to(where), torch.zeros(2, 2, device=where)
        b.set_(a)
        b[0] = 10
        c = torch.empty(0, device=where).set_(a.untyped_storage(), 1, (2, 2), (1, 2))
        c.add_(100)
        return a, b, c

    same_on(device, program)


def test_assigning_data_replaces_memory_but_not_identity(device):
    def program(where):
        p = torch.ones(2, 2, device=where, requires_grad=True)
        alias = p.detach()
        p.data = torch.full((3,), 2.0, device=where)
        (p * p).sum().backward()
        return p, p.grad, alias

    same_on(device, program)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_out_is_resized_to_the_result(device):
    def program(where):
        x = torch.arange(6.0).reshape(2, 3).to(where)
        out, empty, wrong = (
            torch.empty(2, 3, device=where),
            torch.empty(0, device=where),
            torch.empty(7, device=where),
        )
        torch.add(x, x, out=out)
        torch.mul(x, x, out=empty)
        torch.cat([x, x], out=wrong)
        values, indices = (
            torch.empty(0, device=where),
            torch.empty(0, dtype=torch.long, device=where),
        )
        torch.max(x, 1, out=(values, indices))
        return out, empty, wrong, values, indices

    same_on(device, program)


@pytest.mark.recording
def test_out_does_not_part_a_window_where_what_is_read_is_given_twice(device):
    x = torch.arange(9.0).reshape(3, 3).to(device)
    product, result = torch.empty_like(x), torch.empty_like(x)

    def step():
        torch.addmm(x, x, x, out=product)
        return torch.mul(product, product, out=result)

    expected = torch.addmm(x.cpu(), x.cpu(), x.cpu()) ** 2
    for _ in range(4):
        same(step().cpu(), expected)
        wait_for_compiles()
    assert deferred(step) == 2


@pytest.mark.recording
def test_out_does_not_part_a_window_where_it_is_read_too(device):
    x = torch.arange(4.0).to(device)

    def step():
        greatest = x * 2
        torch.maximum(greatest, x + 3, out=greatest)
        return greatest + 1

    expected = torch.maximum(x.cpu() * 2, x.cpu() + 3) + 1
    for _ in range(4):
        same(step().cpu(), expected)
        wait_for_compiles()
    assert deferred(step) == 4


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.filterwarnings("ignore:backend 'cpu' does not compile a window")
def test_out_that_is_read_too_and_is_resized_is_as_on_the_cpu(device):
    """A composite of pointwise operators, of which the last resizes it."""

    def program(where):
        exponent = torch.tensor([2.0, 3.0]).to(where) * 1
        first = exponent[:1]
        torch.ldexp(torch.ones(3, 1, device=where), exponent, out=exponent)
        return exponent, first + 0, exponent + 1

    same_on(device, program)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_out_that_is_read_too_is_as_on_the_cpu(device):
    def program(where):
        x = torch.arange(4.0).reshape(2, 2).to(where)
        torch.mm(x, x.clone(), out=x[:])
        torch.add(x, 1, out=x)
        torch.cumsum(x, 0, out=x)
        sums = x.clone()
        torch.sum(sums, 0, out=sums)
        values = torch.empty(2, device=where)
        try:
            torch.max(x, 1, out=(values, values))
        except RuntimeError as error:
            return x, sums, str(error)
        return x, sums, values

    same_on(device, program)


def test_out_of_a_wrong_size_warns_as_on_the_cpu(device):
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.add(torch.ones(3, device=device), 1, out=torch.empty(2, device=device))


def test_storage_offset_and_strides_after_each_pass(device):
    def program(where):
        t = torch.arange(24.0).reshape(2, 3, 4).to(where)
        t.transpose_(0, 2).unsqueeze_(0)
        v = t[0, 1:, 2]
        return [
            t.stride(),
            t.shape,
            v.storage_offset(),
            v.stride(),
            t.is_contiguous(),
            v.is_contiguous(),
        ]

    assert each_run(program, device) == [program("cpu")] * 4


def test_memory_formats_are_kept(device):
    def program(where):
        x = (
            torch.arange(48.0)
            .reshape(2, 3, 2, 4)
            .to(where)
            .contiguous(memory_format=torch.channels_last)
        )
        y = torch.relu(x) + 1
        assert y.is_contiguous(memory_format=torch.channels_last)
        return x, y, torch.empty_like(x).copy_(y), y.contiguous()

    same_on(device, program)


def test_resize_keeps_the_elements_that_fit(device):
    t = torch.arange(6.0).to(device)

    t.resize_(2, 2)

    same(t.cpu(), torch.tensor([[0.0, 1.0], [2.0, 3.0]]))


def test_resizing_a_tensor_that_requires_grad_is_refused(device):
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        torch.ones(3, device=device, requires_grad=True).resize_(2)


def test_out_behind_a_list_of_very_many_is_resized_in_a_hot_window(device):
    """More than 16 bits count."""
    tensors = torch.arange(65_540.0, device=device).view(-1, 1).unbind()

    def step():
        out = torch.empty(0, device=device)
        torch.cat(tensors, out=out)
        return out.shape, out[-1].item()

    assert hot(step) == ((65_540,), 65_539)


@pytest.mark.parametrize("sizes", [(-1,), (1 << 40, 1 << 40)])
@pytest.mark.parametrize(
    "change",
    [
        lambda t, sizes: t.resize_(*sizes),
        lambda t, sizes: t.detach().resize_(*sizes),
        lambda t, sizes: t.as_strided_(sizes, [1] * len(sizes)),
        lambda t, sizes: torch.zeros(sizes, out=t),
    ],
    ids=["resize_", "detach", "as_strided_", "out="],
)
def test_sizes_that_no_tensor_can_have_are_an_error(device, change, sizes):
    errors = []
    for where in ("cpu", device):
        with pytest.raises(RuntimeError) as raised:
            change(torch.ones(3, 4, device=where) * 2, sizes)
        errors.append(str(raised.value).splitlines()[0])

    assert errors[0] == errors[1]
    same_on(device, lambda where: torch.ones(3, device=where) + 1)
