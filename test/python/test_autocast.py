"""``torch.autocast("lazy")`` casts what it casts on the device where lazy tensors live."""

from __future__ import annotations

import functools
import threading

import pytest
import torch
import torch.nn.functional as F
from behaviour import EXECUTION_DEVICE, each_run, same
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.checkpoint import checkpoint

x = torch.linspace(-2, 2, 24).reshape(4, 6)
weight = torch.linspace(-1, 1, 30).reshape(5, 6)
image = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)

OPERATORS = {
    "linear": lambda x, w, i: F.linear(x, w),
    "mm": lambda x, w, i: x @ w.t(),
    "conv2d": lambda x, w, i: F.conv2d(i, i[:, :, :3, :3]),
    "attention": lambda x, w, i: F.scaled_dot_product_attention(i, i, i),
    "mse_loss": lambda x, w, i: F.mse_loss(x.bfloat16(), w[:4].bfloat16()),
    "prod": lambda x, w, i: x.bfloat16().prod(1),
    "cat of two dtypes": lambda x, w, i: torch.cat([x.bfloat16(), w]),
    "stack of one dtype": lambda x, w, i: torch.stack([x.bfloat16(), x.bfloat16()]),
    "softmax": lambda x, w, i: F.linear(x, w).softmax(-1),
    "layer_norm": lambda x, w, i: F.layer_norm(F.linear(x, w), (5,)),
    "a composite below autograd": lambda x, w, i: torch.linalg.pinv(x),
    "three factors": lambda x, w, i: F.bilinear(x, x[:, :5], torch.ones(2, 6, 5).to(x.device)),
    "float64 stays": lambda x, w, i: x.double() @ w.double().t(),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_casts_as_on_the_execution_device(device, name):
    def run(where):
        arguments = [t.to(where) for t in (x, weight, image)]
        with torch.autocast(where, dtype=torch.bfloat16):
            return OPERATORS[name](*arguments)

    expected = run(EXECUTION_DEVICE).cpu()
    for result in each_run(run, device):
        same(result.cpu(), expected)


def test_training_steps_equal_the_execution_devices(device):
    def train(where):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3))
        net, inputs = net.to(where), x.to(where)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        losses = []
        for _ in range(6):
            with torch.autocast(where, dtype=torch.bfloat16):
                loss = F.cross_entropy(net(inputs), torch.tensor([0, 1, 2, 1], device=where))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        assert loss.dtype == torch.float32
        return losses

    assert train(device) == pytest.approx(train(EXECUTION_DEVICE), rel=2e-3)


def test_a_parameter_that_is_used_twice_is_cast_once(device):
    def gradient(where):
        w = weight.clone().to(where).requires_grad_()
        with torch.autocast(where, dtype=torch.bfloat16):
            first, second = F.linear(x.to(where), w), F.linear(3 * x.to(where), w)
        (first + second).sum().backward()
        return w.grad

    same(gradient(device).cpu(), gradient(EXECUTION_DEVICE).cpu())


def test_a_changed_parameter_is_cast_anew_in_the_next_region(device):
    w = weight.clone().to(device).requires_grad_()
    with torch.autocast(device, dtype=torch.bfloat16):
        F.linear(x.to(device), w)
    with torch.no_grad():
        w.zero_()

    with torch.autocast(device, dtype=torch.bfloat16):
        assert not F.linear(x.to(device), w).any()


def test_the_dtype_is_the_execution_devices_unless_said_otherwise_in_every_thread(device):
    found = []

    def look():
        with torch.autocast(device):
            found.append(F.linear(x.to(device), weight.to(device)).dtype)

    look()
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()

    assert found == [torch.get_autocast_dtype(EXECUTION_DEVICE)] * 2


def test_outside_of_a_region_nothing_is_cast(device):
    with torch.autocast(device):
        assert torch.is_autocast_enabled(device)
        with torch.autocast(device, enabled=False):
            assert F.linear(x.to(device), weight.to(device)).dtype == torch.float32
    assert not torch.is_autocast_enabled(device)
    assert F.linear(x.to(device), weight.to(device)).dtype == torch.float32


def test_a_recomputed_block_casts_again(device):
    def run(where):
        w = weight.clone().to(where).requires_grad_()
        with torch.autocast(where, dtype=torch.bfloat16):
            y = checkpoint(lambda t: F.gelu(F.linear(t, w)), x.to(where), use_reentrant=False)
        y.float().sum().backward()
        return w.grad

    same(run(device).cpu(), run(EXECUTION_DEVICE).cpu())


def reports_autocast(x: torch.Tensor) -> torch.Tensor:
    if torch.is_autocast_enabled():
        return x + 1
    return x


@pytest.mark.parametrize(
    "compiled",
    [torch.jit.script, functools.partial(torch.compile, backend="eager", fullgraph=True)],
    ids=["torch.jit.script", "torch.compile"],
)
def test_compilers_know_a_question_about_autocast(device, compiled):
    function = compiled(reports_autocast)

    for where in ("cpu", device):
        same(function(x.to(where)).cpu(), x)


def fake(tensor: torch.Tensor) -> torch.Tensor:
    return FakeTensorMode().from_tensor(tensor)


@pytest.mark.parametrize("kind", [lambda t: TwoTensor(t, t), fake], ids=["subclass", "fake tensor"])
def test_kinds_of_tensors_made_in_python_are_cast(device, kind):
    left = kind(x.to(device))

    with torch.autocast(device, dtype=torch.bfloat16):
        assert (left @ left.t()).dtype == torch.bfloat16
    assert (left @ left.t()).dtype == torch.float32


def test_a_region_is_cast_in_what_aot_autograd_traces(device):
    def region(x):
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            return F.linear(x, x)

    compiled = torch.compile(region, backend="aot_eager")

    for result in each_run(lambda: compiled(x.to(device))):
        same(result.cpu(), region(x))


def test_tensors_of_the_cpu_are_not_cast_in_a_region_of_the_device(device):
    product = x @ x.t()

    with torch.autocast(device, dtype=torch.bfloat16):
        same(x @ x.t(), product)
        probability = F.binary_cross_entropy(x.sigmoid(), torch.ones_like(x))
    assert probability.dtype == torch.float32


@pytest.mark.parametrize("where", ["cpu", "device"])
def test_a_higher_order_operator_runs_in_a_region(device, where):
    left = x.to(device if where == "device" else where)

    with torch.autocast(device, dtype=torch.bfloat16):
        result = torch.cond(torch.tensor(True), lambda t: t @ t.t(), lambda t: t @ t.t(), (left,))

    assert result.dtype == (torch.bfloat16 if where == "device" else torch.float32)


def test_a_cast_made_without_gradients_does_not_cut_off_later_ones(device):
    w = weight.clone().to(device).requires_grad_()

    with torch.autocast(device, dtype=torch.bfloat16):
        with torch.no_grad():
            F.linear(x.to(device), w)
        F.linear(x.to(device), w).float().sum().backward()

    assert w.grad is not None


def test_a_layer_of_an_encoder_casts_its_parts_in_inference(device):
    def run(where):
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval().to(where)
        with torch.no_grad(), torch.autocast(where, dtype=torch.bfloat16):
            return layer(torch.linspace(-1, 1, 160).view(2, 5, 16).to(where))

    for result in each_run(lambda: run(device)):
        torch.testing.assert_close(result.cpu(), run(EXECUTION_DEVICE).cpu(), atol=0.02, rtol=0.02)
