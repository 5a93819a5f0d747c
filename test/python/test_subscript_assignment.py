"""What a subscript writes: a number fills the part, and a part that was changed in place stays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from behaviour import Operators, same_on

import torch_lazy

INDICES = {
    "a row": 1,
    "the last row": -1,
    "rows": slice(1, None),
    "no rows": slice(2, 2),
    "columns": (slice(None), slice(None, None, 2)),
    "one element": (1, 2),
    "all": slice(None),
    "an ellipsis": ...,
    "an ellipsis and a column": (..., -2),
    "a new axis": (None, 1),
    "nothing": (),
    "a condition": True,
    "a list": [0, 2],
    "a row and a list": (1, [0, 2]),
}
NUMBERS = [7, -2.75, True, 2**62, 1e300, float("nan"), float("inf")]
DTYPES = [
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.complex64,
]


def outcome(write: Callable[[], None]) -> str:
    """What a write raises, or that it raises nothing."""
    try:
        write()
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "written"


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_number_is_written_as_on_the_cpu(device, index, dtype):
    def program(where):
        results = []
        for number in NUMBERS:
            t = torch.arange(12).reshape(3, 4).to(dtype).to(where)
            results += [outcome(lambda t=t, number=number: t.__setitem__(index, number)), t]
            t[index] = 1
        return results

    same_on(device, program)


@pytest.mark.parametrize("index", [3, (0, 4), (0, 0, 0), (slice(None, None, -1),), "x", 2**70])
def test_an_index_is_refused_as_on_the_cpu(device, index):
    def write(where):
        torch.zeros(3, 4, device=where)[index] = 1

    assert outcome(lambda: write(device)) == outcome(lambda: write("cpu"))


def test_memory_that_elements_share_is_refused_as_on_the_cpu(device):
    def write(where):
        torch.zeros(3, 1, device=where).expand(3, 4)[0] = 1

    assert outcome(lambda: write(device)) == outcome(lambda: write("cpu")) != "written"


def test_gradients_go_around_what_was_written(device):
    def program(where):
        x = torch.ones(3, 4).to(where).requires_grad_()
        y = x * 2
        y[:, 1] = 5
        y[0, 0] = 6.0
        y.square().sum().backward()
        return x.grad

    same_on(device, program)


@pytest.mark.parametrize("index", [0, ..., slice(None), (0, 0)], ids=str)
def test_a_leaf_that_requires_a_gradient_is_refused_as_on_the_cpu(device, index):
    def write(where):
        torch.ones(3, 4, device=where, requires_grad=True)[index] = 1

    assert outcome(lambda: write(device)) == outcome(lambda: write("cpu")) != "written"


def test_a_view_made_without_gradients_of_what_needs_them_is_written_as_on_the_cpu(device):
    def program(where):
        x = torch.ones(3, 4).to(where).requires_grad_() * 1
        with torch.no_grad():
            row = x[0]
        return [outcome(lambda: row.__setitem__(0, 5)), row.detach()]

    same_on(device, program)


def test_a_tensor_of_inference_mode_is_written_in_it(device):
    def program(where):
        with torch.inference_mode():
            x = torch.ones(3, 4).to(where)
            x[1, :2] = 5
            x[:, 3] = True
        return x.tolist()

    same_on(device, program)


def test_a_write_counts_as_one_version(device):
    x = torch.zeros(3, 4, device=device)

    x[1, :2] = 3

    assert x._version == 1


@pytest.mark.recording
def test_a_part_is_filled_by_one_operation(device):
    mask = torch.zeros(3, 4, dtype=torch.bool, device=device)

    with Operators() as operators:
        mask[1, :2] = True

    assert operators.names == ["aten.select.int", "aten.slice.Tensor", "aten.fill_.Scalar"]


def test_a_mode_for_functions_sees_the_assignment(device):
    class Functions(torch.overrides.TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_function__(self, function, types, args=(), kwargs=None):
            self.seen.append(function)
            return function(*args, **(kwargs or {}))

    x = torch.zeros(3, device=device)
    with Functions() as functions:
        x[0] = 1

    assert functions.seen == [torch.Tensor.__setitem__]


def test_a_subclass_sees_the_assignment(device):
    seen = []

    class Named(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    x = torch.zeros(3, device=device).as_subclass(Named)
    x[0] = 1

    assert torch.Tensor.__setitem__ in seen


PARTS = {name: INDICES[name] for name in INDICES if "list" not in name and "condition" not in name}


@pytest.mark.parametrize("index", PARTS.values(), ids=PARTS)
def test_a_part_that_was_changed_in_place_is_as_on_the_cpu(device, index):
    def program(where):
        t = torch.arange(12.0).reshape(3, 4).to(where)
        t[index] += 2
        t.t()[index] *= 3
        t[index] -= t[index]
        before = t._version
        t[index] += 1
        return [t, t._version - before]

    same_on(device, program)


def test_a_part_that_was_changed_in_place_is_not_copied_to_itself(device):
    t = torch.zeros(3, 4).to(device)
    torch_lazy.reset_metrics()

    t[1] += 2

    metrics = torch_lazy.metrics()
    assert metrics["recorded"] + metrics["bypassed"] <= 3  # two views and the sum
    assert t.tolist() == [[0] * 4, [2] * 4, [0] * 4]


def test_another_part_of_the_same_tensor_is_copied(device):
    def program(where):
        t = torch.arange(12.0).reshape(3, 4).to(where)
        t[0] = t[1]
        t[2] = t[1].flip(0)
        t[1, :2] = t[1, 2:]
        t[:, 0] = t[0, :3]
        return t

    same_on(device, program)


def test_a_part_that_is_the_same_memory_with_a_gradient_gives_its_gradient(device):
    def program(where):
        t = torch.arange(4.0).to(where)
        part = t.detach().requires_grad_()
        t[:] = part * 1
        t[:] = part
        t.square().sum().backward()
        return [part.grad, t.detach()]

    same_on(device, program)
