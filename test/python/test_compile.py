"""``torch.compile`` with Inductor, its default backend, of what runs on the device."""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch._inductor import compile_fx

import torch_lazy
from torch_lazy.integration import inductor

pytestmark = pytest.mark.recording  # on another device Inductor makes the kernels

COUNTERS = torch._dynamo.utils.counters

WAYS = {
    "default": {},
    "reduce-overhead": {"mode": "reduce-overhead"},
    "max-autotune": {"mode": "max-autotune"},
    "options": {"options": {"max_autotune": True, "triton.cudagraphs": True}},
    "fullgraph": {"fullgraph": True},
    "dynamic": {"dynamic": True},
    "static": {"dynamic": False},
}


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    COUNTERS.clear()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.compile is not needed")
        warnings.filterwarnings("ignore", "flex_attention called without torch.compile")
        yield
    torch._dynamo.reset()


def train(device, compiled=lambda net: net, compiled_step=lambda step: step, sizes=(8,)):
    """The losses of 50 steps on batches of these sizes in turn."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4)).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    net, step = compiled(net), compiled_step(optimizer.step)
    losses = []
    for i in range(50):
        rows = sizes[i % len(sizes)]
        batch, labels = torch.randn(rows, 16).to(device), torch.randint(4, (rows,)).to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(batch), labels)
        loss.backward()
        step()
        losses.append(loss.item())
        if i == 9:
            torch_lazy.wait_for_compiles()
    return torch.tensor(losses)


@pytest.mark.parametrize("way", WAYS)
def test_losses_of_a_compiled_model_are_the_cpus(device, way):
    found = train(device, lambda net: torch.compile(net, **WAYS[way]))

    torch.testing.assert_close(found, train("cpu"))


def test_losses_of_a_compiled_optimizer_step_are_the_cpus(device):
    found = train(device, compiled_step=torch.compile)

    torch.testing.assert_close(found, train("cpu"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("where", ["cpu", "lazy"])
def test_a_step_of_an_optimizer_is_traced_as_where_the_device_is_not_loaded(where):
    net = nn.Linear(3, 4).to(where)
    step = torch.compile(torch.optim.Adam(net.parameters()).step, backend="aot_eager")
    net(torch.ones(2, 3, device=where)).sum().backward()

    step()

    (of_pytorch,) = COUNTERS["graph_break"]  # one that optimizers ask for
    assert "torch._dynamo.graph_break()" in of_pytorch


def test_batches_of_other_sizes_are_compiled_once_more_and_no_more(device):
    found = train(device, torch.compile, sizes=(8, 9, 10, 11, 12))

    assert COUNTERS["stats"]["unique_graphs"] == 2  # of one size, then of any
    torch.testing.assert_close(found, train("cpu", sizes=(8, 9, 10, 11, 12)))


def test_a_module_compiles_itself(device):
    class Doubled(nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    net, batch = Doubled(3, 4).to(device), torch.ones(2, 3, device=device)
    expected = net(batch)

    net.compile(fullgraph=True)

    torch.testing.assert_close(net(batch), expected)
    assert COUNTERS["stats"]["unique_graphs"] == 1


def test_a_compiled_function_returns_aliases_of_what_it_wrote(device):
    @torch.compile
    def double(x):
        x.mul_(2)
        return x.t(), x

    for _ in range(3):
        tensor = torch.arange(6.0).reshape(2, 3).to(device)
        transposed, returned = double(tensor)
        transposed.add_(1)

        assert returned is tensor
        assert transposed._base is tensor
        assert tensor.tolist() == [[1, 3, 5], [7, 9, 11]]


def test_a_compiled_function_draws_the_numbers_of_the_function(device):
    def noise(x):
        return x + torch.randn(3, device=device), nn.functional.dropout(x, 0.5)

    def draws(function):
        torch.manual_seed(0)
        return [t.tolist() for _ in range(3) for t in function(torch.ones(3, device=device))]

    assert draws(torch.compile(noise)) == draws(noise)


def test_a_graph_without_inputs_on_the_device_runs_there(device):
    @torch.compile
    def ramp(count):
        return torch.arange(count, device=device) * 2

    assert [ramp(count).tolist() for count in (1, 2, 3)] == [[0], [0, 2], [0, 2, 4]]


def test_flex_attention_compiles(device):
    from torch.nn.attention.flex_attention import flex_attention

    def attend(function):
        torch.manual_seed(0)
        query, key, value = (torch.randn(1, 2, 64, 16).to(device) for _ in range(3))
        query.requires_grad_()
        out = function(query, key, value, score_mod=lambda score, b, h, i, j: score + (i - j))
        out.sum().backward()
        return out.detach(), query.grad

    torch.testing.assert_close(attend(torch.compile(flex_attention)), attend(flex_attention))


def test_optimizers_with_counters_on_the_device_compile(device):
    def trained(where, compiled):
        parameter = nn.Parameter(torch.ones(3, device=where))
        optimizer = torch.optim.NAdam([parameter])
        step = compiled(optimizer.step)
        for _ in range(4):
            parameter.grad = torch.full((3,), 2.0, device=where)
            step()
        return parameter.detach().cpu()

    torch.testing.assert_close(trained(device, torch.compile), trained("cpu", lambda step: step))


@pytest.mark.parametrize(("where", "graphs"), [("cpu", 1), ("lazy", 0)])
def test_inductor_is_given_the_graphs_of_other_devices_only(where, graphs):
    given = []

    def compile_inner(graph, inputs, **options):
        given.append(graph)
        return graph.forward

    graph = torch.fx.symbolic_trace(nn.ReLU())
    compile_fx.compile_fx(graph, [torch.ones(3, device=where)], inner_compile=compile_inner)

    assert len(given) == graphs


def test_a_warning_says_once_that_compiling_is_not_needed(device):
    inductor._warn_once.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for function in (torch.sin, torch.cos):
            torch.compile(lambda x, function=function: function(x))(torch.ones(3, device=device))

    assert [str(w.message) for w in caught if "torch.compile is not needed" in str(w.message)] == [
        "torch.compile is not needed on device lazy, which records and fuses operations by itself: "
        "graphs with lazy tensors run as Dynamo captured them, without Inductor"
    ]


def test_a_library_of_a_graph_on_the_device_is_refused(device):
    program = torch.export.export(nn.Linear(3, 3).to(device), (torch.ones(2, 3, device=device),))

    with pytest.raises(NotImplementedError, match=r"AOTInductor .* move the module to the cpu"):
        torch._inductor.aoti_compile_and_package(program)


def test_a_compiled_function_copies_deeply(device, recwarn):
    def copied(x):
        return copy.deepcopy(x) + 1

    compiled = torch.compile(copied, backend="aot_eager")

    assert torch.equal(compiled(torch.ones(3).to(device)).cpu(), torch.full((3,), 2.0))
    assert not [w for w in recwarn if "Dynamo" in str(w.message)]
