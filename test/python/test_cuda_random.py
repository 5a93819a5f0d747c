"""Bernoulli draws and dropout where lazy tensors live on CUDA: drawn by key, in windows and at the
call, on the device that test/fake_cuda makes."""

from __future__ import annotations

from functools import partial

from test_fake_cuda import run_on_device

_HOT = """
import torch.nn.functional as F
import torch_lazy

def hot(run, times=6):
    for _ in range(times):
        result = run()
        torch.lazy.synchronize()
        torch_lazy._C.wait_for_compiles(60.0)
    return result

"""

# The other tests ask for eager's numbers.
run_by_key = partial(run_on_device, TORCH_LAZY_RNG="philox")


def test_a_seed_draws_the_same_at_the_call_and_in_a_window():
    script = """
x = torch.randn(37, 53, device="lazy")
def draw():
    torch.manual_seed(7)
    return F.dropout(x + 1, 0.25) * 2
at_the_call = draw().cpu()
in_a_window = hot(draw).cpu()
print(torch.equal(at_the_call, in_a_window), 0.2 < (at_the_call == 0).float().mean() < 0.3)
"""

    assert run_by_key(_HOT + script) == ["True tensor(True)"]


def test_dropout_does_not_end_a_window():
    script = """
net = torch.nn.Sequential(
    torch.nn.Linear(8, 16), torch.nn.Dropout(0.1), torch.nn.ReLU(), torch.nn.Dropout(0.2)
).to("lazy")
x = torch.randn(4, 8, device="lazy")
def step():
    net.zero_grad()
    net(x).square().mean().backward()
hot(step)
before = torch.lazy.metrics()["windows_run"]
step()
torch.lazy.synchronize()
print(torch.lazy.metrics()["windows_run"] - before)
"""

    assert run_by_key(_HOT + script) == ["1"]


def test_the_device_begins_with_a_window_that_drops_out_before_it_is_recorded():
    script = """
weight = torch.eye(8, device="lazy")
x = torch.randn(4, 8, device="lazy")
def step():
    y = F.dropout(x, 0.5)
    for _ in range(12):
        y = torch.softmax(y @ weight, -1)
    return y.sum().item()
hot(step, times=8)
print(torch.lazy.metrics()["early_runs"].get("finished", 0) > 2)
"""

    assert run_by_key(_HOT + script) == ["True"]


def test_streams_are_the_cpu_s_in_every_dtype_and_order_of_memory():
    script = """
key = torch.tensor(-123456789012345678)
draw = torch.ops.torch_lazy.philox_bernoulli_
dtypes = (torch.bool, torch.uint8, torch.int16, torch.int64, torch.half, torch.bfloat16,
          torch.float, torch.double)
for dtype in dtypes:
    expected = draw(torch.empty(1037, dtype=dtype), key, 0.3)
    drawn = draw(torch.empty(1037, dtype=dtype, device="cuda"), key, 0.3)
    assert torch.equal(drawn.cpu(), expected)
strided = draw(torch.empty(20, 31, device="cuda").t(), key, 0.5)
assert torch.equal(strided.cpu(), draw(torch.empty(31, 20), key, 0.5))
positions = torch.randint(1 << 40, (5, 7))
uniform = torch.ops.torch_lazy.philox_uniform
print(torch.equal(uniform(positions.cuda(), key).cpu(), uniform(positions, key)))
"""

    assert run_by_key(_HOT + "torch.ones(1, device='lazy').cpu()\n" + script) == ["True"]


def test_the_backward_of_a_recomputed_layer_drops_what_its_forward_dropped():
    script = """
from torch.utils.checkpoint import checkpoint
def step():
    x = torch.ones(64, device="lazy", requires_grad=True)
    y = checkpoint(lambda t: F.dropout(t, 0.5), x, use_reentrant=False)
    y.sum().backward()
    return y.detach().cpu(), x.grad.cpu()
hot(lambda: step()[0])
y, gradient = step()
print(torch.equal(y, gradient))
"""

    assert run_by_key(_HOT + script) == ["True"]


def test_eager_s_numbers_are_drawn_where_they_are_asked_for():
    script = """
torch.lazy.config.rng = "eager"
def draw(device):
    torch.manual_seed(3)
    return torch.empty(99, device=device).bernoulli_(0.4).cpu()
print(torch.equal(draw("lazy"), draw("cuda")))
"""

    assert run_by_key(_HOT + script) == ["True"]


def test_the_cpu_draws_where_the_kernels_do_not_compile():
    script = """
import warnings
key = torch.tensor(5)
torch.ones(1, device="lazy").cpu()
fake_cuda.replace_in_programs("lazy_draw_4", "not a name")
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    drawn = [torch.ops.torch_lazy.philox_bernoulli_(torch.empty(9, device="cuda"), key, 0.5).cpu()
             for _ in range(2)]
expected = torch.ops.torch_lazy.philox_bernoulli_(torch.empty(9), key, 0.5)
print(all(torch.equal(d, expected) for d in drawn), torch.lazy.metrics()["fallbacks"])
print(sum("the CPU draws" in str(s.message) for s in said))
"""

    lines = run_by_key(_HOT + script, TORCH_LAZY_CACHE_BYTES="0")

    assert lines == ["True {'random kernels': 2}", "1"]
