"""Autograd records and accumulates as on the CPU: same gradients, objects, strides, threads."""

from __future__ import annotations

import copy
import threading

import pytest
import torch
from behaviour import Operators, each_run, hot, same, same_on
from torch import nn


def test_gradients_of_a_small_network(device):
    def program(where):
        torch.manual_seed(3)
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 3)).to(where)
        x = torch.randn(5, 4).to(where)
        loss = nn.functional.cross_entropy(net(x), torch.tensor([0, 1, 2, 1, 0]).to(where))
        loss.backward()
        return [loss.detach(), *(p.grad for p in net.parameters())]

    same_on(device, program)


def test_a_stolen_gradient_is_the_tensor_that_backward_made(device):
    """A gradient without another holder becomes .grad itself; a held one is copied."""

    def program(where):
        x = torch.ones(3, device=where, requires_grad=True)
        held = torch.ones(3, device=where)
        x.backward(held)
        y = torch.ones(2, 3, device=where, requires_grad=True)
        seen = []
        y.register_hook(lambda g: seen.append(g.untyped_storage()._cdata))
        (y * 2).sum().backward()
        return x.grad is held, y.grad.untyped_storage()._cdata == seen[0]

    assert each_run(program, device) == [program("cpu")] * 4


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "expanded"])
def test_gradients_have_the_cpus_strides(device, layout):
    def program(where):
        w = torch.ones(3, 4).to(where)
        w = (w.t().contiguous().t() if layout == "transposed" else w).requires_grad_()
        if layout == "expanded":
            w.sum().backward()
        else:
            (torch.ones(4, 3, device=where).t() * w).sum().backward()
        return w.grad

    same_on(device, program)


def test_gradients_accumulate_in_place(device):
    def program(where):
        x = torch.ones(3, device=where, requires_grad=True)
        (x * 2).sum().backward()
        first, identity = x.grad, id(x.grad)
        version = first._version
        (x * 3).sum().backward()
        return [id(x.grad) == identity, first._version - version, first.tolist()]

    assert each_run(program, device) == [program("cpu")] * 4


def test_a_training_step_calls_the_cpus_operators_in_the_cpus_order(device):
    """Autograd decides by use counts whether to steal, copy or add gradients in place."""

    def operators(where):
        torch.manual_seed(3)
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 3)).to(where)
        # Said, because its default is another on each kind of device.
        optimizer = torch.optim.Adam(net.parameters(), foreach=False)
        x = torch.randn(5, 4).to(where)
        with Operators() as seen:
            for _ in range(2):
                net(x).square().mean().backward()
            optimizer.step()
        return seen.names

    assert each_run(operators, device) == [operators("cpu")] * 4


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_gradients_accumulate_into_a_new_tensor_under_create_graph(device):
    def program(where):
        x = torch.ones(3, device=where, requires_grad=True)
        (x**2).sum().backward(create_graph=True)
        first = x.grad
        (x**2).sum().backward(create_graph=True)
        return [x.grad is first, x.grad.requires_grad, x.grad.tolist()]

    assert each_run(program, device) == [program("cpu")] * 4


def test_double_backward(device):
    def program(where):
        x = torch.tensor([1.0, 2.0, 3.0]).to(where).requires_grad_()
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        g.sum().backward()
        return g.detach(), x.grad

    same_on(device, program)


def test_a_retained_graph_runs_again_and_a_freed_one_refuses(device):
    x = torch.ones(3, device=device, requires_grad=True)
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    loss.backward()

    assert x.grad.tolist() == [4] * 3
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_hooks_see_and_change_gradients(device):
    def program(where):
        x = torch.ones(3, device=where, requires_grad=True)
        y = x * 2
        y.retain_grad()
        x.register_hook(lambda g: g + 1)
        y.register_hook(lambda g: g * 10)
        order = []
        x.register_post_accumulate_grad_hook(lambda p: order.append(p.grad.sum().item()))
        y.sum().backward()
        return x.grad, y.grad, order

    same_on(device, program)


def test_backward_runs_on_the_callers_thread(device):
    threads = []
    x = torch.ones(3, device=device, requires_grad=True)
    x.register_hook(lambda g: threads.append(threading.get_ident()))

    hot(lambda: (x * 2).sum().backward())

    assert set(threads) == {threading.get_ident()}


def test_writes_through_views_are_differentiated(device):
    def program(where):
        x = torch.arange(4.0).to(where).requires_grad_()
        y = x.clone()
        y[1:3].mul_(x[:2])
        y.view(2, 2).t()[0].add_(x[0])
        y[0] = 5
        (y * y).sum().backward()
        return y.detach(), x.grad

    same_on(device, program)


def test_a_write_to_a_saved_value_is_detected(device):
    def messages(where):
        found = []
        x = torch.ones(3, device=where, requires_grad=True)
        y = x.exp()
        y.add_(1)
        try:
            y.sum().backward()
        except RuntimeError as error:
            found.append(str(error).replace("LazyFloatType", "torch.FloatTensor"))
        return found

    (expected,) = messages("cpu")
    assert "modified by an inplace operation" in expected
    assert each_run(messages, device) == [[expected]] * 4


def test_leaves_refuse_writes(device):
    x = torch.ones(3, device=device, requires_grad=True)

    with pytest.raises(
        RuntimeError,
        match="a leaf Variable that requires grad is being used in an in-place operation",
    ):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0].zero_()
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2] * 3


def test_no_grad_detach_and_inference_mode(device):
    x = torch.ones(3, device=device, requires_grad=True)

    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        assert (x * 2).is_inference()
    assert not x.detach().requires_grad
    assert (x.detach() * 2 + x).requires_grad


def test_copies_in_inference_mode_are_of_it(device):
    x = torch.ones(3)
    with torch.inference_mode():
        there = x.to(device)
        assert there.is_inference()
        assert there.to("cpu").is_inference()
        assert there.to("cpu", torch.float64).is_inference()


def test_a_module_is_moved_and_called_in_inference_mode(device):
    module, x = torch.nn.Linear(3, 4), torch.ones(7, 3)

    with torch.inference_mode():
        expected = module(x)
        found = copy.deepcopy(module).to(device)(x.to(device))

    torch.testing.assert_close(found.cpu(), expected)


def test_views_in_inference_mode(device):
    with torch.inference_mode():
        x = torch.ones(2, 3).to(device)
        x.t()[1].add_(1)
    assert x.tolist() == [[1, 2, 1], [1, 2, 1]]


def test_a_custom_function(device):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    def program(where):
        x = torch.tensor([1.0, 2.0]).to(where).requires_grad_()
        Cube.apply(x * 2).sum().backward()
        return x.grad

    same_on(device, program)


def test_gradients_replaced_by_none_are_made_anew(device):
    def program(where):
        x = torch.ones(3, device=where, requires_grad=True)
        results = []
        for i in range(3):
            (x * i).sum().backward()
            results.append(x.grad)
            x.grad = None
        return results

    same_on(device, program)


def test_a_hot_training_loop_gives_the_cpus_parameters(device):
    def train(where):
        torch.manual_seed(5)
        w = torch.randn(4, 2).to(where).requires_grad_()
        x = torch.randn(6, 4).to(where)
        for _ in range(12):
            ((x @ w) ** 2).mean().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad = None
            hot(lambda: None, runs=1)
        return w.detach()

    same(train(device).cpu(), train("cpu"))


def test_reentrant_backward(device):
    class Reenter(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x.detach().clone().requires_grad_()
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                (ctx.x * 2 * grad).sum().backward()
            return ctx.x.grad

    def program(where):
        x = torch.ones(3, device=where, requires_grad=True)
        Reenter.apply(x).sum().backward()
        return x.grad

    same_on(device, program)
