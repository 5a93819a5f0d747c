"""Errors are the CPU's, message for message, and raised at the call. In a deferred window a failure
on data that is pending itself is raised where the value is needed; it names the line that recorded
it, what later operations would have made is poisoned, and what they would have written is as it
was."""

from __future__ import annotations

import copy
import inspect

import pytest
import torch
from behaviour import RUNS_UNTIL_HOT, hot, synchronize, torch_lazy, wait_for_compiles

from torch_lazy.conformance.program_runner import described

ILLEGAL = {
    "shapes that do not broadcast": lambda d: torch.ones(2, 3, device=d) + torch.ones(4, device=d),
    "mm": lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
    "mm of mixed dtypes": lambda d: (
        torch.ones(2, 2, device=d) @ torch.ones(2, 2, dtype=torch.int64, device=d)
    ),
    "view": lambda d: torch.ones(2, 3, device=d).view(5),
    "view of strided memory": lambda d: torch.ones(2, 3, device=d).t().view(6),
    "dimension": lambda d: torch.ones(2, 3, device=d).sum(4),
    "select": lambda d: torch.ones(2, 3, device=d).select(0, 7),
    "python index": lambda d: torch.ones(2, 3, device=d)[5],
    "too many indices": lambda d: torch.ones(2, device=d)[0, 0],
    "expand": lambda d: torch.ones(2, 3, device=d).expand(4, 3),
    "cat": lambda d: torch.cat([torch.ones(2, 3, device=d), torch.ones(3, device=d)]),
    "stack": lambda d: torch.stack([torch.ones(2, device=d), torch.ones(3, device=d)]),
    "cast of the result": lambda d: torch.ones(2, dtype=torch.int64, device=d).add_(0.5),
    "sigmoid_ of integers": lambda d: torch.ones(2, dtype=torch.int64, device=d).sigmoid_(),
    "mean of integers": lambda d: torch.ones(2, dtype=torch.int64, device=d).mean(),
    "bool minus": lambda d: (
        torch.ones(2, dtype=torch.bool, device=d) - torch.ones(2, dtype=torch.bool, device=d)
    ),
    "negative size": lambda d: torch.zeros(-1, device=d),
    "item of many": lambda d: torch.ones(2, device=d).item(),
    "bool of many": lambda d: bool(torch.ones(2, device=d)),
    "grad of integers": lambda d: torch.ones(2, dtype=torch.int64, device=d).requires_grad_(),
    "backward without grad": lambda d: torch.ones((), device=d).backward(),
    "backward of many": lambda d: torch.ones(2, device=d, requires_grad=True).backward(),
    "in place that broadcasts": lambda d: torch.ones(2, device=d).add_(torch.ones(3, 2, device=d)),
    "as_strided outside": lambda d: torch.ones(2, device=d).as_strided((9,), (1,)),
    "normalized shape": lambda d: torch.layer_norm(torch.ones(2, 3, device=d), (4,)),
    "conv channels": lambda d: torch.conv2d(
        torch.ones(1, 2, 3, 3, device=d), torch.ones(1, 3, 2, 2, device=d)
    ),
    "index out of range": lambda d: torch.ones(3, device=d)[torch.tensor([5], device=d)],
    "index_select out of range": lambda d: torch.ones(3, device=d).index_select(
        0, torch.tensor([5], device=d)
    ),
    "gather out of range": lambda d: torch.ones(3, device=d).gather(0, torch.tensor([5], device=d)),
    "embedding out of range": lambda d: torch.nn.functional.embedding(
        torch.tensor([5], device=d), torch.ones(3, 2, device=d)
    ),
    "no groups": lambda d: torch.group_norm(
        torch.ones(1, 2, 3, 3, device=d).to(memory_format=torch.channels_last), 0
    ),
    "division of integers by zero": lambda d: torch.ones(2, dtype=torch.int64, device=d) // 0,
    "singular matrix": lambda d: torch.linalg.inv(torch.zeros(2, 2, device=d)),
}


@pytest.mark.parametrize("act", ILLEGAL.values(), ids=ILLEGAL)
def test_the_message_is_the_cpus(device, act):
    def error(where):
        try:
            act(where)
            synchronize()
        except Exception as caught:
            return described(caught)
        return "no error"

    expected = error("cpu")

    assert expected != "no error"
    for _ in range(RUNS_UNTIL_HOT):
        assert error(device) == expected
        wait_for_compiles()


def test_an_error_at_the_call_leaves_earlier_results_intact(device):
    x = torch.ones(3, device=device)
    y = x * 2
    with pytest.raises(RuntimeError):
        y.add_(torch.ones(4, device=device))
    z = y + 1

    assert y.tolist() == [2] * 3
    assert z.tolist() == [3] * 3


def test_an_illegal_call_inside_a_hot_loop_raises_at_once(device):
    def step(size):
        x = torch.ones(3, device=device)
        y = x * 2
        return y + torch.ones(size, device=device)

    hot(step, 3)

    with pytest.raises(RuntimeError, match="must match the size"):
        step(4)
    assert hot(step, 3).tolist() == [3] * 3


@pytest.mark.on_cpu("oneDNN's layout is the CPU's")
@pytest.mark.recording
def test_an_operator_that_makes_a_tensor_the_device_has_not_raises_at_the_call(device):
    x = torch.ones(3, device=device)

    with pytest.raises(NotImplementedError, match=r"returned a Mkldnn tensor.*on the cpu"):
        x.to_mkldnn()


LOOK_UP = {
    "index": lambda x, i: x[i],
    "index of a later dimension": lambda x, i: x[:, i],
    "index_put_": lambda x, i: x.clone().index_put_((i,), torch.ones(3, device=x.device)),
    "index_select": lambda x, i: x.index_select(1, i),
    "gather": lambda x, i: x.gather(-1, i.expand(3, 2)),
    "scatter": lambda x, i: x.scatter(0, i.expand(3, 2).t(), x),
    "index_add_": lambda x, i: x.clone().index_add_(0, i, x[:2]),
    "index_fill": lambda x, i: x.index_fill(1, i, 0),
    "take": lambda x, i: x[0].take(i),
    "index on the CPU": lambda x, i: x[i.cpu()],
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x),
    "embedding_bag": lambda x, i: torch.nn.functional.embedding_bag(i[None], x),
    "labels": lambda x, i: torch.nn.functional.cross_entropy(x[:2], i),
    "labels of an image": lambda x, i: torch.nn.functional.nll_loss(x[None, :, :2], i[None]),
    "int32": lambda x, i: x.index_select(0, i.int().cpu().to(x.device)),
    "not contiguous": lambda x, i: x.index_select(
        0, i.repeat_interleave(2).cpu().to(x.device)[::2]
    ),
}


@pytest.mark.on_cpu("indices are looked at in the host's memory only")
@pytest.mark.parametrize("act", LOOK_UP.values(), ids=LOOK_UP)
def test_an_index_out_of_range_raises_at_the_call_in_a_hot_window(device, act):
    x, good = torch.arange(9.0).view(3, 3).to(device), torch.tensor([0, 2]).to(device)
    hot(lambda: act(x * 2, good) + 1)
    bad = torch.tensor([0, 3])

    with pytest.raises((IndexError, RuntimeError)) as on_the_cpu:
        act(x.cpu() * 2, bad)
    before = x * 2
    with pytest.raises(on_the_cpu.type) as caught:
        act(before, bad.to(device))

    assert described(caught.value) == described(on_the_cpu.value)
    assert before.tolist() == (x.cpu() * 2).tolist()


def test_an_index_counted_from_the_end_stays_deferred(device):
    x, index = torch.arange(3.0).to(device), torch.tensor([-1, -3]).to(device)

    assert hot(lambda: (x * 2)[index] + 1).tolist() == [5, 1]


def test_labels_that_are_passed_over_stay_deferred(device):
    scores = torch.randn(4, 3).to(device)
    for labels, ignored in (
        (torch.tensor([0, -100, 2, -100]), -100),
        (torch.tensor([7, 0, 1, 2]), 7),
    ):
        labels = labels.to(device)

        def loss(labels=labels, ignored=ignored):
            return torch.nn.functional.cross_entropy(scores * 2, labels, ignore_index=ignored) + 1

        expected = torch.nn.functional.cross_entropy(
            scores.cpu() * 2, labels.cpu(), ignore_index=ignored
        )
        torch.testing.assert_close(hot(loss).cpu(), expected + 1)


@pytest.mark.recording
def test_an_index_that_the_window_writes_is_not_looked_at(device):
    def step(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        index.mul_(0)  # pending: the memory still has what was there
        return (x * 2)[index]

    x = torch.arange(3.0).to(device)
    hot(step, x, torch.tensor([0, 2]).to(device))
    synchronize()
    before = torch_lazy.metrics()["deferred"]

    assert step(x, torch.tensor([0, 7]).to(device)).tolist() == [0, 0]
    assert torch_lazy.metrics()["deferred"] == before + 3


def gather_line() -> int:
    """The line of `lookup` that fails."""
    source, first = inspect.getsourcelines(lookup)
    return first + next(i for i, line in enumerate(source) if "index_select" in line)


def lookup(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    scaled = table * 2
    rows = scaled.index_select(0, index.abs())  # indices that are pending: not looked at yet
    return rows + 1


def make_hot(device: str) -> torch.Tensor:
    """Makes `lookup` hot with good indices and returns its table."""
    table = torch.arange(3.0).to(device)
    good = torch.tensor([0, 2]).to(device)
    assert hot(lookup, table, good).tolist() == [1, 5]
    return table


@pytest.mark.recording
def test_a_deferred_failure_is_raised_at_the_sync_and_names_its_line(device):
    table, bad = make_hot(device), torch.tensor([0, 7]).to(device)
    synchronize()
    before = torch_lazy.metrics()["deferred"]

    result = lookup(table, bad)  # deferred: no error yet
    assert torch_lazy.metrics()["deferred"] > before

    with pytest.raises((IndexError, RuntimeError)) as caught:
        result.tolist()
    assert "index out of range in self" in str(caught.value)
    assert f"test_errors.py:{gather_line()}" in str(caught.value)


@pytest.mark.recording
def test_a_deferred_failure_names_its_line_in_code_that_is_gone(device):
    table, bad = make_hot(device), torch.tensor([0, 7]).to(device)
    synchronize()
    program = "scaled = table * 2\nrows = scaled.index_select(0, bad.abs())\nresult = rows + 1\n"
    names = {"table": table, "bad": bad}

    exec(compile(program, "<gone>", "exec"), names)

    with pytest.raises((IndexError, RuntimeError), match="recorded at <gone>:2"):
        names["result"].tolist()


@pytest.mark.recording
def test_synchronize_raises_a_deferred_failure(device):
    table, bad = make_hot(device), torch.tensor([0, 7]).to(device)
    synchronize()

    result = lookup(table, bad)

    with pytest.raises((IndexError, RuntimeError), match="index out of range in self"):
        torch_lazy.synchronize()
    del result
    torch_lazy.synchronize()  # raised once


@pytest.mark.recording
def test_an_index_out_of_range_raises_though_nobody_reads_the_rows(device):
    def program(table, index):
        table.index_select(0, index.abs())
        return table + 1

    table = torch.arange(3.0).to(device)
    hot(program, table, torch.tensor([0, 2]).to(device))
    bad = torch.tensor([0, 7]).to(device)
    program(table, bad)

    with pytest.raises((IndexError, RuntimeError), match="index out of range in self"):
        torch_lazy.synchronize()


@pytest.mark.recording
@pytest.mark.on_cpu("a kernel on CUDA goes on past a bad index, and the host is told once")
def test_what_a_failed_window_would_have_made_is_poisoned_and_what_it_writes_is_as_in_eager(device):
    def step(table, index, total):
        total.add_(1)
        rows = table.index_select(0, index.abs())
        total.add_(rows.sum())
        return rows

    table, total = torch.arange(3.0).to(device), torch.zeros((), device=device)
    good, bad = torch.tensor([0, 2]).to(device), torch.tensor([0, 7]).to(device)
    hot(step, table, good, total)
    before = total.item()

    rows = step(table, bad, total)

    with pytest.raises((IndexError, RuntimeError), match="out of range"):
        synchronize()
    with pytest.raises((IndexError, RuntimeError), match="out of range"):
        rows.tolist()
    assert total.item() == before + 1
    assert table.tolist() == [0, 1, 2]


@pytest.mark.recording
@pytest.mark.on_cpu("a kernel on CUDA goes on past a bad index, and the host is told once")
def test_what_the_failing_operation_itself_writes_is_poisoned(device):
    def step(total, index):
        total.index_add_(0, index.abs(), torch.ones(2, device=total.device))

    total = torch.zeros(3).to(device)
    hot(step, total, torch.tensor([0, 2]).to(device))
    synchronize()

    step(total, torch.tensor([0, 7]).to(device))

    with pytest.raises((IndexError, RuntimeError), match="out of range"):
        synchronize()
    with pytest.raises((IndexError, RuntimeError), match="out of range"):
        total.tolist()


FACTORS = [
    torch.linalg.eigh,
    torch.linalg.eig,
    torch.linalg.svd,
    torch.linalg.svdvals,
    torch.linalg.pinv,
    torch.linalg.cholesky,
]
if hasattr(torch.ops.aten, "cholesky"):  # not from 2.14 on
    FACTORS.append(torch.cholesky)


@pytest.mark.recording
@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
@pytest.mark.parametrize("factor", FACTORS, ids=lambda factor: factor.__name__)
def test_a_matrix_that_has_no_factors_is_told_at_the_call(device, factor):
    """Programs catch it, and take another way."""
    hot(lambda x: factor(x * 1), torch.eye(4).to(device))
    bad = torch.full((4, 4), float("nan"))
    on_device = bad.to(device)

    try:
        factor(bad * 1)
    except RuntimeError as error:
        expected = error
    with pytest.raises(type(expected)):
        factor(on_device * 1)


@pytest.mark.recording
@pytest.mark.on_cpu("a kernel on CUDA goes on past a bad index, and the host is told once")
def test_a_model_learns_on_after_a_batch_that_failed(device):
    """As in eager, where the optimizer's step behind it never began."""

    def train(device, model, optimizer, batches):
        for batch in batches:
            try:
                optimizer.zero_grad()
                loss = model(batch.to(device).abs()).square().mean()
                loss.backward()
                optimizer.step()
                synchronize()
            except (IndexError, RuntimeError):
                pass

    torch.manual_seed(0)
    eager = torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.Linear(4, 2))
    model = copy.deepcopy(eager).to(device)
    batches = [torch.tensor([0, 4])] * 6 + [torch.tensor([0, 5])] + [torch.tensor([1, 4])] * 2

    train("cpu", eager, torch.optim.SGD(eager.parameters(), 0.1, momentum=0.9), batches)
    train(device, model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), batches)

    for parameter, expected in zip(model.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(parameter.cpu(), expected)


@pytest.mark.recording
def test_work_goes_on_after_a_deferred_failure(device):
    table, bad = make_hot(device), torch.tensor([0, 7]).to(device)
    synchronize()
    lost = lookup(table, bad)
    with pytest.raises((IndexError, RuntimeError)):
        lost.tolist()

    good = torch.tensor([1, 1]).to(device)

    assert lookup(table, good).tolist() == [3, 3]
    assert hot(lookup, table, good).tolist() == [3, 3]


@pytest.mark.recording
def test_overwriting_a_poisoned_tensor_heals_it(device):
    table, bad = make_hot(device), torch.tensor([0, 7]).to(device)
    synchronize()
    lost = lookup(table, bad)
    with pytest.raises((IndexError, RuntimeError)):
        lost.tolist()

    lost.copy_(torch.tensor([4.0, 5.0]))

    assert lost.tolist() == [4, 5]


@pytest.mark.recording
def test_overwriting_a_poisoned_tensor_with_its_own_elements_raises(device):
    def step(table, index):
        rows = table.index_select(0, index.abs())
        return rows, rows[0]

    table = torch.arange(3.0).to(device)
    hot(step, table, torch.tensor([0, 2]).to(device))
    lost, first = step(table, torch.tensor([0, 7]).to(device))
    with pytest.raises((IndexError, RuntimeError)):
        synchronize()

    for _ in range(2):  # it stays poisoned
        with pytest.raises((IndexError, RuntimeError), match="out of range"):
            lost.fill_(first)
    with pytest.raises((IndexError, RuntimeError), match="out of range"):
        lost.tolist()


FILLS = [
    (torch.int8, torch.int64, 300),
    (torch.float16, torch.int64, 70_000),
    (torch.float32, torch.float64, 1e39),
    (torch.int64, torch.float32, 1e30),
]


@pytest.mark.parametrize(("dtype", "of_value", "value"), FILLS, ids=str)
def test_a_masked_fill_refuses_a_value_that_overflows_in_a_hot_window(
    device, dtype, of_value, value
):
    x = torch.arange(4).to(device, dtype)

    def act(value):
        return x.masked_fill(x > 1, value.to(device)).tolist()

    assert hot(lambda: act(torch.tensor(5, dtype=of_value))) == [0, 1, 5, 5]

    with pytest.raises(RuntimeError, match="without overflow"):
        act(torch.tensor(value, dtype=of_value))


def test_numbers_in_a_tensor_that_is_not_contiguous_are_refused_in_a_hot_window(device):
    x = torch.ones(3).to(device)
    numbers = torch.tensor([1.0, 9.0, 2.0, 9.0])

    def act(packed):
        return torch._foreach_addcmul([x * 2, x * 3], [x, x], [x, x], packed)

    hot(lambda: act(numbers[::2].contiguous()))

    with pytest.raises(RuntimeError, match="Expected scalars to be contiguous"):
        act(numbers[::2])
    assert act(numbers[:2])[1].tolist() == [12, 12, 12]
