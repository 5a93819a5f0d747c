"""RNN, GRU and LSTM of lazy tensors on CUDA, by cuDNN where eager takes it.

The device that test/fake_cuda makes has no cuDNN: here its operators are made of the CPU's, and say
that they were called. All in child processes."""

from __future__ import annotations

import pytest
from test_cuda_scripts import printed

# As strict as cuDNN: weights lie in one buffer, with gaps, and the gradient uses up what the
# forward pass has kept. Computed in another thread, whose state is not that of a kernel.
_KERNELS = """
import copy, warnings
from concurrent.futures import ThreadPoolExecutor
from torch.nn.utils.rnn import pack_padded_sequence
warnings.simplefilter("error")
warnings.filterwarnings("ignore", "LSTM with projections is not supported with oneDNN")
called = []
elsewhere = ThreadPoolExecutor(1)
NAMES, GATES, GAP = ("rnn_relu", "rnn_tanh", "lstm", "gru"), (1, 1, 4, 3), 3

def places(mode, features, hidden, proj, layers, both):
    ways, rows, found, end = 1 + both, GATES[mode] * hidden, {}, 0
    for part in range(5 if proj else 4):
        for cell in range(layers * ways):
            columns = features if cell < ways else (proj or hidden) * ways
            size = ((rows, columns), (rows, proj or hidden), (rows,), (rows,), (proj, hidden))[part]
            found[cell, part] = slice(end, end + torch.Size(size).numel()), size
            end += torch.Size(size).numel() + GAP
    return [found[place] for place in sorted(found)], end

def weights_in(buffer, *shape):
    return [buffer[part].view(size) for part, size in places(*shape)[0]]

def flatten(weights, stride, features, mode, hidden, proj, layers, batch_first, both):
    called.append("flatten")
    shape = (mode, features, hidden, proj, layers, both)
    buffer = weights[0].new_zeros(places(*shape)[1])
    for weight, place in zip(weights, weights_in(buffer, *shape)):
        weight.set_(place)
    return buffer

def compute(x, states, weights, mode, layers, both, sizes):
    run, states = getattr(torch._VF, NAMES[mode]), states if mode == 2 else states[0]
    packed, first = ([torch.tensor(sizes)], []) if sizes else ([], [False])
    return run(x, *packed, states, weights, True, layers, 0.0, False, both, *first)

def on_cpu(*tensors):
    return [None if t is None else t.cpu().float() for t in tensors]

def rnn(x, weights, stride, buffer, hx, cx, mode, hidden, proj, layers, batch_first, dropout,
        train, both, sizes, state):
    called.append(NAMES[mode])
    assert buffer is not None and state is None and dropout == 0
    assert hx.is_contiguous() and (cx is None) == (mode != 2)
    device_x, h, c, flat = on_cpu(x, hx, cx, buffer)
    given = device_x.transpose(0, 1) if batch_first else device_x
    within = weights_in(flat, mode, x.size(-1), hidden, proj, layers, both)
    made = elsewhere.submit(compute, given, (h, c), within, mode, layers, both, sizes).result()
    output, *last = (t.contiguous().to(x.dtype).to("cuda") for t in made)
    output = output.transpose(0, 1) if batch_first else output
    cell = last[1] if mode == 2 else x.new_empty(0)
    reserve = torch.ones(8 if train else 0, dtype=torch.uint8, device="cuda")
    return output, last[0], cell, reserve, buffer

def gradients(x, h, c, flat, gradients, shape, batch_first, sizes):
    mode, layers, both = shape[0], shape[4], shape[5]
    leaves = [t.requires_grad_() for t in (x, h, c, flat) if t is not None]
    given = x.transpose(0, 1) if batch_first else x
    made = compute(given, (h, c), weights_in(flat, *shape), mode, layers, both, sizes)
    pairs = [(m, g) for m, g in zip(made, gradients) if g is not None]
    return torch.autograd.grad([m for m, _ in pairs], leaves, [g for _, g in pairs])

def backward(x, weights, stride, buffer, hx, cx, output, g, gh, gc, mode, hidden, proj, layers,
             batch_first, dropout, train, both, sizes, state, reserve, mask):
    called.append(NAMES[mode] + " backward")
    if not train:
        raise RuntimeError("cudnn RNN backward can only be called in training mode")
    assert reserve.sum().item() == 8 and dropout == 0
    reserve.zero_()
    first = output.transpose(0, 1) if batch_first else output
    assert first.is_contiguous()
    shape = (mode, x.size(-1), hidden, proj, layers, both)
    x_, h, c, flat, g, gh, gc = on_cpu(x, hx, cx, buffer, g, gh, gc)
    g = g.transpose(0, 1) if batch_first and g is not None else g
    found = elsewhere.submit(gradients, x_, h, c, flat, (g, gh, gc), shape, batch_first, sizes)
    *of_inputs, of_all = (t.to(x.dtype).to("cuda") for t in found.result())
    of_weights = weights_in(of_all, *shape) if mask[3] else []
    return *of_inputs, *([None] if cx is None else []), of_weights

library = torch.library.Library("aten", "IMPL")
library.impl("_cudnn_rnn_flatten_weight", flatten, "CUDA")
library.impl("_cudnn_rnn", rnn, "CUDA")
library.impl("_cudnn_rnn_backward", backward, "CUDA")

def pair(kind, **arguments):
    torch.manual_seed(0)
    module = getattr(nn, kind)(5, 6, **arguments)
    return module, copy.deepcopy(module).to("lazy")

x_on_cpu = torch.linspace(-2, 2, 60).view(4, 3, 5)
LENGTHS = None

def step(module, given=x_on_cpu):
    given = given.to(next(module.parameters()).device).requires_grad_()
    data = given
    if LENGTHS:
        data = pack_padded_sequence(given, LENGTHS, enforce_sorted=False)
    output, states = module(data)
    results = [output.data if LENGTHS else output, *(states if type(states) is tuple else [states])]
    loss = sum((i + 1) * t.sin().sum() for i, t in enumerate(results))
    return [*results, *torch.autograd.grad(loss, [given, *module.parameters()])]

def agree(mine, theirs, **tolerance):
    return all(torch.allclose(a.cpu(), b, **(tolerance or {"atol": 1e-5})) for a, b in
               zip(mine, theirs, strict=True))

def compare(kind, **arguments):
    module, lazy = pair(kind, **arguments)
    hot(lambda: step(lazy))
    called.clear()
    mine = step(lazy)
    assert not called  # at the call
    torch.lazy.synchronize()
    print(called, torch.lazy.metrics()["eager"], agree(mine, step(module)))
"""

_MODULES = {
    "LSTM": "lstm",
    "GRU": "gru",
    "RNN": "rnn_tanh",
    "RNN, nonlinearity='relu'": "rnn_relu",
    "LSTM, num_layers=2, bidirectional=True": "lstm",
    "GRU, num_layers=2, batch_first=True": "gru",
    "LSTM, bias=False": "lstm",
    "LSTM, proj_size=4, bidirectional=True": "lstm",
    "LSTM, proj_size=4, bias=False": "lstm",
}


def said(script: str, kernels: str = _KERNELS) -> list[str]:
    return printed(kernels + script)


def call(module: str) -> str:
    """A call with a module that is written as its name and arguments."""
    name, _, arguments = module.partition(", ")
    return f"{name!r}, {arguments}"


@pytest.mark.parametrize("module", _MODULES)
def test_a_module_and_its_gradient_are_two_operators_of_a_window(module):
    name = _MODULES[module]

    assert said(f"compare({call(module)})") == [f"['{name}', '{name} backward'] 0 True"]


@pytest.mark.parametrize("module", ["LSTM, num_layers=2, bidirectional=True", "GRU", "RNN"])
def test_packed_sequences_are_computed_by_the_same_operators(module):
    name = _MODULES[module]

    assert said(f"LENGTHS = [2, 4, 1]; compare({call(module)})") == [
        f"['{name}', '{name} backward'] 0 True"
    ]


def test_a_module_that_is_not_trained_keeps_nothing_for_gradients():
    script = """
module, lazy = (m.eval() for m in pair("LSTM", num_layers=2, dropout=0.5))
with torch.no_grad():
    hot(lambda: lazy(x))
    called.clear()
    output, (h, c) = lazy(x)
    torch.lazy.synchronize()
    print(called, torch.lazy.metrics()["eager"], agree([output, h, c], flat(module(x_on_cpu))))
"""

    assert said("x = x_on_cpu.to('lazy'); flat = lambda r: [r[0], *r[1]]" + script) == [
        "['lstm'] 0 True"
    ]


def test_weights_that_an_optimizer_changes_are_read_anew():
    script = """
def train(module):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    def update():
        optimizer.zero_grad()
        module(x_on_cpu.to(next(module.parameters()).device))[0].square().sum().backward()
        optimizer.step()
    return update
module, lazy = pair("GRU", num_layers=2)
on_cpu_, on_lazy = train(module), train(lazy)
for _ in range(8):
    on_cpu_(), on_lazy(), settle()
print(called.count("flatten"), agree(lazy.parameters(), list(module.parameters())))
"""

    assert said(script) == ["1 True"]


def test_a_graph_that_is_kept_gives_its_gradients_twice():
    script = """
module, lazy = pair("LSTM")
def twice(module):
    parameters = list(module.parameters())
    loss = module(x_on_cpu.to(parameters[0].device))[0].square().sum()
    first = torch.autograd.grad(loss, parameters, retain_graph=True)
    return [*first, *torch.autograd.grad(loss, parameters)]
hot(lambda: twice(lazy))
print(agree(twice(lazy), twice(module)))
"""

    assert said(script) == ["True"]


def test_layers_between_which_a_module_drops_out_are_computed_one_by_one():
    assert said("compare('LSTM', num_layers=2, bidirectional=True, dropout=1.0)") == [
        "['lstm', 'lstm', 'lstm backward', 'lstm backward'] 0 True"
    ]


def test_each_step_drops_out_other_elements_in_a_window():
    script = """
module, lazy = pair("GRU", num_layers=2, dropout=0.5)
kept = [step(lazy)[0].cpu() for _ in range(2)]
hot(lambda: step(lazy))
for _ in range(2):
    kept.append(step(lazy)[0].cpu())
print(len({tuple(output.flatten().tolist()) for output in kept}), torch.lazy.metrics()["eager"])
"""

    assert printed(_KERNELS + script, TORCH_LAZY_RNG="philox") == ["4 0"]


def test_without_cudnn_a_module_is_computed_step_by_step():
    script = """
module, lazy = pair("LSTM")
with torch.backends.cudnn.flags(enabled=False):
    print(agree(step(lazy), step(module)), called)
"""

    assert said(script) == ["True []"]


def test_the_gradient_of_a_module_that_is_not_trained_is_refused_as_on_cuda():
    script = """
_, lazy = pair("RNN")
try:
    step(lazy.eval())
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""

    assert said(script) == ["cudnn RNN backward can only be called in training mode"]


def test_autocast_has_cudnn_compute_in_half_whatever_its_dtype():
    script = """
module, lazy = pair("LSTM")
for dtype in (torch.float16, torch.bfloat16):
    with torch.autocast("lazy", dtype=dtype):
        made = step(lazy)
    print([t.dtype for t in (made[0], made[3], made[4])])
    print(agree([t.float() for t in made], step(module), atol=0.02))
"""

    assert said(script) == ["[torch.float16, torch.float32, torch.float32]", "True"] * 2
