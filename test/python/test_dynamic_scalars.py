"""Dynamic scalars: a number that changes between two windows alike in all else becomes an input of
the window, which goes on being hot."""

from __future__ import annotations

import math

import pytest
import torch
from behaviour import run_script, same, synchronize, torch_lazy, wait_for_compiles

pytestmark = pytest.mark.recording


class Counted:
    """What the recorder counted during a `with` block."""

    def __enter__(self) -> Counted:
        synchronize()
        self._before = torch_lazy.metrics()
        return self

    def __exit__(self, *error: object) -> None:
        synchronize()
        after = torch_lazy.metrics()
        self.recorded = after["recorded"] - self._before["recorded"]
        self.deferred = after["deferred"] - self._before["deferred"]
        self.dynamic = after["dynamic_scalars"] - self._before["dynamic_scalars"]
        self.compiles = after["compiles"] - self._before["compiles"]
        self.hot = after["windows"].get("hot", 0) - self._before["windows"].get("hot", 0)


def pass_by_pass(fn, passes):
    """The result and what was counted of `fn(pass)` for each, every compile finished in between."""
    results, counted = [], []
    for number in passes:
        with Counted() as count:
            results.append(fn(number))
        wait_for_compiles()
        counted.append(count)
    return results, counted


def is_hot(counted: Counted) -> bool:
    return counted.recorded > 0 and counted.deferred == counted.recorded


def train(device: str, make_optimizer, steps: int, make_scheduler=None):
    """Parameters after each step, and what was counted in each `optimizer.step()`."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))
    model.to(device)
    optimizer = make_optimizer(model.parameters())
    scheduler = make_scheduler(optimizer) if make_scheduler else None
    x, y = torch.randn(4, 5).to(device), torch.randn(4, 3).to(device)
    history, counted = [], []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        with Counted() as count:
            optimizer.step()
        wait_for_compiles()
        counted.append(count)
        if scheduler:
            scheduler.step()
        history.append([p.detach().cpu().clone() for p in model.parameters()])
    return history, counted


OPTIMIZERS = {
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, foreach=False),
    "adam, foreach": lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1, foreach=False),
    "adamw, foreach": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1, foreach=True),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01, foreach=False),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_with_changing_numbers_get_hot_and_stay_eagers(device, name):
    expected, _ = train("cpu", OPTIMIZERS[name], 12)
    actual, counted = train(device, OPTIMIZERS[name], 12)

    same(actual, expected)
    assert all(is_hot(c) for c in counted[5:]), [(c.recorded, c.deferred) for c in counted]
    assert sum(c.dynamic for c in counted) >= 2
    assert sum(c.compiles for c in counted[5:]) == 0


def test_a_learning_rate_schedule_keeps_sgd_hot(device):
    def sgd(parameters):
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=False)

    def cosine(optimizer):
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)

    expected, _ = train("cpu", sgd, 12, cosine)
    actual, counted = train(device, sgd, 12, cosine)

    same(actual, expected)
    assert all(is_hot(c) for c in counted[5:])


@pytest.mark.parametrize("foreach", [False, True])
def test_a_schedule_of_momentum_keeps_adam_hot(device, foreach):
    def adam(parameters):
        return torch.optim.Adam(parameters, lr=0.01, foreach=foreach)

    def one_cycle(optimizer):  # beta1 changes with the learning rate
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=50)

    expected, _ = train("cpu", adam, 12, one_cycle)
    actual, counted = train(device, adam, 12, one_cycle)

    same(actual, expected)
    assert all(is_hot(c) for c in counted[5:]), [(c.recorded, c.deferred) for c in counted]


def test_a_weight_that_crosses_a_half_interpolates_as_eager_does(device):
    host = torch.randn(3, 59), torch.randn(3, 59)
    a, b = (t.to(device) for t in host)
    weights = [0.1, 0.3, 0.45, 0.5, 0.7, 0.99, -0.6, 1.5]

    results, counted = pass_by_pass(lambda w: torch.lerp(a, b, w).cpu(), weights)

    assert all(is_hot(c) for c in counted[3:])
    for result, weight in zip(results, weights, strict=True):
        same(result, torch.lerp(*host, weight))


def test_numbers_that_always_were_equal_are_one(device):
    x = torch.randn(3, 61).to(device)

    def step(k):
        return ((x * k + x).mul_(k) + 0.5).cpu()

    results, counted = pass_by_pass(step, [0.1, 0.2, 0.3, 0.4])

    assert sum(c.dynamic for c in counted) == 1
    assert is_hot(counted[-1])
    same(results[-1], (x.cpu() * 0.4 + x.cpu()).mul_(0.4) + 0.5)


def test_equal_numbers_that_part_are_told_apart(device):
    x = torch.randn(3, 62).to(device)
    host = x.cpu()

    def step(pair):
        return ((x * pair[0] + x) * pair[1]).cpu()

    pairs = [(0.1, 0.1), (0.2, 0.2), (0.3, 0.3), (0.3, 0.4), (0.3, 0.5), (0.6, 0.7), (0.8, 0.8)]
    results, counted = pass_by_pass(step, pairs)

    same(results, [(host * a + host) * b for a, b in pairs])
    assert [is_hot(c) for c in counted] == [False, False, True, False, True, True, True]


def test_numbers_that_change_one_after_the_other_are_all_promoted(device):
    x = torch.randn(3, 63).to(device)
    host = x.cpu()

    def step(pair):
        return ((x * pair[0]).tanh() * pair[1]).cpu()

    pairs = [(0.1, 0.5), (0.1, 0.5), (0.1, 0.5), (0.2, 0.5), (0.3, 0.5), (0.1, 0.6), (0.1, 0.7)]
    pairs += [(0.1, 0.8), (0.9, 0.9), (0.2, 0.5)]
    results, counted = pass_by_pass(step, pairs)

    same(results, [(host * a).tanh() * b for a, b in pairs])
    assert [is_hot(c) for c in counted] == [False, False, True, False, True, False, *[True] * 4]


def test_a_number_that_changes_once_stays_an_argument(device):
    x = torch.randn(3, 64).to(device)
    host = x.cpu()
    numbers = [0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.5]

    results, counted = pass_by_pass(lambda k: (x * k + 1).cpu(), numbers)

    same(results, [host * k + 1 for k in numbers])
    assert [is_hot(c) for c in counted] == [False, False, True, False, True, True, True]
    assert sum(c.compiles for c in counted[4:]) == 0


FILLS = {
    "fill_": lambda x, k: torch.empty_like(x).copy_(x).fill_(k) + x,
    "full": lambda x, k: torch.full((3, 4), k, device=x.device) + x,
    "full_like": lambda x, k: torch.full_like(x, k) * x,
    "new_full": lambda x, k: x.new_full((3, 4), k) + x,
    "masked_fill": lambda x, k: x.masked_fill(x > 0, k),
    "clamp": lambda x, k: x.clamp(-k, k),
    "clamp_min": lambda x, k: x.clamp_min(k),
    "rsub": lambda x, k: k - x,
    "reciprocal": lambda x, k: k / (x + 5),
    "alpha": lambda x, k: torch.add(x, x, alpha=k),
    "sub": lambda x, k: x.sub(x.tanh(), alpha=k),
    "addcmul": lambda x, k: x.addcmul(x, x, value=k),
    "addcdiv": lambda x, k: x.addcdiv(x, x + 7, value=k),
    "div_": lambda x, k: x.tanh().div_(k),
    "foreach": lambda x, k: torch._foreach_mul([x, x + 1], [k, 2.0])[1],
    "foreach, maximum": lambda x, k: torch._foreach_maximum([x, x + 1], k)[1],
    "foreach, minimum": lambda x, k: torch._foreach_minimum([x, x + 1], [k, 2.0])[0],
    "base of a power": lambda x, k: k**x,
    "eq": lambda x, k: (x == k) | (x * k == k),
    "ne": lambda x, k: torch.where(x != k, x, 1.0),
    "lt": lambda x, k: (x < k).float() * x,
    "le": lambda x, k: x <= k,
    "gt": lambda x, k: (x > k).sum(),
    "ge_": lambda x, k: x.tanh().ge_(k),
}


@pytest.mark.parametrize("name", FILLS)
def test_operations_take_changing_numbers(device, name):
    fn = FILLS[name]
    host = torch.linspace(-2, 2, 12).reshape(3, 4)
    x = host.to(device)
    numbers = [0.1, 0.2, 0.3, 1 / 3, 1e-30, 0.0, -1.5, math.inf]
    not_compiled = torch_lazy.metrics()["fallbacks"].get("window not compiled", 0)

    results, counted = pass_by_pass(lambda k: fn(x, k).cpu(), numbers)

    same(results, [fn(host, k) for k in numbers])
    assert torch_lazy.metrics()["fallbacks"].get("window not compiled", 0) == not_compiled
    assert all(is_hot(c) for c in counted[2:]), [(c.recorded, c.deferred) for c in counted]


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_a_number_decides_as_little_of_the_dtype_as_in_eager(device, shape, dtype):
    host = torch.ones(shape, dtype=dtype)
    x = host.to(device)
    numbers = [0.1, 0.2, 0.3, 0.7]

    results, counted = pass_by_pass(lambda k: (x * k + k).cpu(), numbers)

    same(results, [host * k + k for k in numbers])
    assert is_hot(counted[-1])


@pytest.mark.parametrize("value", [0.1, torch.tensor([0.1, 0.2, 0.3]), torch.tensor(0.1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_number_is_rounded_to_what_it_is_compared_with_as_in_eager(device, value, dtype):
    host = torch.as_tensor(value).to(dtype)
    x = host.to(device)
    numbers = [0.2, 0.3, 0.1, 0.1 + 1e-12, 0.25]

    results, counted = pass_by_pass(lambda k: (x == k).cpu(), numbers)

    same(results, [host == k for k in numbers])
    assert is_hot(counted[-1])


def never_promoted(fn, numbers):
    results, counted = pass_by_pass(fn, numbers)
    assert sum(c.dynamic for c in counted) == 0
    assert not any(c.deferred == c.recorded for c in counted)
    return results


def test_exponents_are_not_promoted(device):
    x = torch.rand(3, 65).to(device)
    numbers = [0.5, 2.0, 3.0, 1.5, -1.0]

    results = never_promoted(lambda k: (x**k).cpu(), numbers)

    same(results, [x.cpu() ** k for k in numbers])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int64])
def test_numbers_that_other_dtypes_are_compared_with_are_not_promoted(device, dtype):
    x = torch.arange(-9, 58).to(dtype).to(device)
    numbers = [0.1, 0.2, 2.3, 4.004]

    results = never_promoted(lambda k: (x > k).cpu(), numbers)

    same(results, [x.cpu() > k for k in numbers])


def test_numbers_in_half_precision_are_not_promoted(device):
    x = torch.rand(3, 66).to(torch.bfloat16).to(device)
    numbers = [0.1, 0.2, 0.3, 0.4]

    results = never_promoted(lambda k: (x * k).mul_(k).cpu(), numbers)

    same(results, [(x.cpu() * k).mul_(k) for k in numbers])


def test_integers_are_not_promoted(device):
    x = torch.rand(3, 67).to(device)

    never_promoted(lambda k: (x * k).cpu(), [3, 4, 5, 6])


def test_nan_is_a_constant_of_its_own(device):
    x = torch.rand(3, 68).to(device)
    numbers = [0.1, 0.2, 0.3, math.nan, math.nan, math.nan, 0.4]

    results, counted = pass_by_pass(lambda k: x.clamp(k, 2.0).cpu(), numbers)

    same(results, [x.cpu().clamp(k, 2.0) for k in numbers])
    assert [is_hot(c) for c in counted] == [False, False, True, False, False, True, True]


def test_a_recording_that_leaves_the_trace_runs_with_its_own_numbers(device):
    x = torch.randn(3, 69).to(device)
    host = x.cpu()

    def step(k, leave=False, on=x):
        y = on * k
        y.add_(1, alpha=k)
        return (y.sigmoid() if leave else y.tanh()).cpu()

    def expected(k, leave=False):
        y = host * k
        y.add_(1, alpha=k)
        return y.sigmoid() if leave else y.tanh()

    _, counted = pass_by_pass(step, [0.1, 0.2, 0.3])
    assert is_hot(counted[-1])

    for k in (0.4, 0.5, 0.6, 0.7):
        same(step(k, True), expected(k, True))
        wait_for_compiles()
    same(step(0.8), expected(0.8))


def test_an_error_in_a_hot_window_keeps_what_was_written_before(device):
    def step(k, index):
        x = torch.ones(4).to(device)
        x.mul_(k)
        picked = torch.ones(3).to(device).index_select(0, index.abs())
        y = (picked * k).sum()
        return x, y

    good = torch.tensor([0, 1]).to(device)
    bad = torch.tensor([0, 9]).to(device)

    def run(k):
        x, y = step(k, good)
        return x.cpu(), y.cpu()

    _, counted = pass_by_pass(run, [0.1, 0.2, 0.3, 0.4])
    assert counted[-1].deferred > 0

    x, y = step(0.5, bad)
    with pytest.raises((IndexError, RuntimeError), match="index"):
        y.cpu()
    same(x.cpu(), torch.ones(4).mul_(0.5))
    same(run(0.6)[0], torch.ones(4).mul_(0.6))


def test_a_long_loop_that_is_cut_at_its_period_gets_hot(device):
    x = torch.zeros(5).to(device)
    host = torch.zeros(5)
    counted_before = torch_lazy.metrics()["deferred"]

    for i in range(3000):
        x.mul_(0.5).add_(1.0 / (i + 1)).tanh_()
        host.mul_(0.5).add_(1.0 / (i + 1)).tanh_()
        if i % 100 == 0:
            wait_for_compiles()

    same(x.cpu(), host)
    assert torch_lazy.metrics()["deferred"] > counted_before


VERIFIED = """
import torch, torch_lazy
torch_lazy.config.verify = True
x = torch.randn(6).to("lazy")
for k in (0.1, 0.2, 0.3, 0.4, 0.5):
    y = (x * k).add_(x, alpha=k)
    torch.testing.assert_close(y.cpu(), (x.cpu() * k).add_(x.cpu(), alpha=k))
    torch_lazy.wait_for_compiles()
assert torch_lazy.metrics()["windows"]["hot"] >= 2, torch_lazy.metrics()
assert torch_lazy.metrics()["dynamic_scalars"] == 1
"""


def test_windows_with_promoted_numbers_are_verified():
    result = run_script(VERIFIED)

    assert result.returncode == 0, result.stderr


def test_a_tensor_that_is_filled_with_a_changing_number_is_compiled():
    """As a schedule sets a rate that is in a tensor."""
    rate = torch.tensor(1.0, device="lazy")

    def step(number):
        rate.fill_(number)
        return rate + 1

    before = torch_lazy.metrics()["fallbacks"].get("window not compiled", 0)
    results, counted = pass_by_pass(step, [0.5, 1.5, 2.5, 3.5, 4.5])

    assert torch_lazy.metrics()["fallbacks"].get("window not compiled", 0) == before
    assert is_hot(counted[-1])
    assert results[-1].item() == 5.5


NO_FLOAT = {
    "clamp": lambda x, number: x.clamp(min=number),
    "addcmul": lambda x, number: torch.addcmul(x, x, x, value=number),
    "lerp": lambda x, number: torch.lerp(x, x + 1, number),
    "masked_fill": lambda x, number: x.masked_fill(x > 1, number),
    "fill_": lambda x, number: (x + 1).fill_(number),
    "_foreach_maximum": lambda x, number: torch._foreach_maximum([x], number)[0],
}


@pytest.mark.parametrize("act", NO_FLOAT.values(), ids=NO_FLOAT)
def test_a_number_that_no_float_holds_is_refused_at_the_call(device, act):
    x = torch.arange(4.0).to(device)
    pass_by_pass(lambda number: act(x, number).tolist(), [1.0, 2.0, 3.0, math.inf])

    with pytest.raises(RuntimeError, match="without overflow"):
        act(x, 1e39)
