"""Another part of the same tensor at each step: one trace, and what eager gives."""

from __future__ import annotations

import pytest
import torch
from behaviour import synchronize, wait_for_compiles

import torch_lazy

STEPS = 8


def windows_of(step, device, steps=STEPS):
    """Runs step(i) as a window of its own each; returns the results, and the windows by how they
    ran."""
    synchronize()
    torch_lazy.reset_metrics()
    results = []
    for i in range(steps):
        results.append(step(i).cpu())
        wait_for_compiles()
    return results, torch_lazy.metrics()["windows"]


def assert_equal(make_step, device):
    """Each step gives what it gives on the CPU; returns the windows."""
    step = make_step("cpu")
    expected = [step(i).clone() for i in range(STEPS)]
    results, windows = windows_of(make_step(device), device)
    for actual, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(actual, wanted)
    return windows


def assert_hot_and_equal(make_step, device):
    """A step may be cold, its view taken for a constant; warm; and is hot from then on."""
    windows = assert_equal(make_step, device)
    assert windows.get("hot", 0) >= STEPS - 4, windows


def data_on(device, *shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape).to(device)


def test_a_batch_sliced_from_a_tensor_on_the_device_is_one_trace(device):
    def make_step(device):
        data = data_on(device, 40, 3)
        return lambda i: (data[4 * i : 4 * i + 4] * 2).sum(0)

    assert_hot_and_equal(make_step, device)


def test_shifted_parts_of_one_tensor_are_one_trace(device):
    def make_step(device):
        data = data_on(device, 60)
        return lambda i: data[5 * i : 5 * i + 5] * data[5 * i + 1 : 5 * i + 6] + 1

    assert_hot_and_equal(make_step, device)


def test_parts_at_random_places_are_one_trace(device):
    places = torch.randint(0, 50, (STEPS, 4), generator=torch.Generator().manual_seed(0)).tolist()

    def make_step(device):
        data = data_on(device, 60)
        return lambda i: torch.stack([data[p : p + 8] for p in places[i]]).mean(0)

    assert_hot_and_equal(make_step, device)


def test_a_row_and_then_a_part_of_it_is_one_trace(device):
    def make_step(device):
        data = data_on(device, 10, 30)
        return lambda i: data[i, i : i + 7].square() - 1

    assert_hot_and_equal(make_step, device)


def test_every_other_column_from_a_moving_one_on_is_one_trace(device):
    def make_step(device):
        data = data_on(device, 6, 40)
        return lambda i: data[:, i : i + 12 : 3].cumsum(1)

    assert_hot_and_equal(make_step, device)


def test_a_diagonal_that_moves_is_one_trace(device):
    def make_step(device):
        data = data_on(device, 20, 40)
        return lambda i: data.diagonal(i) * 3

    assert_hot_and_equal(make_step, device)


def test_writing_a_row_at_each_step_is_one_trace(device):
    def make_step(device):
        data, log = data_on(device, 10, 4), torch.zeros(10, 4).to(device)

        def step(i):
            log[i] = data[i] * 2
            return data[i] + 1

        return step, log

    step, log = make_step(device)
    _, windows = windows_of(step, device)

    expected_step, expected = make_step("cpu")
    for i in range(STEPS):
        expected_step(i)
    torch.testing.assert_close(log.cpu(), expected)
    assert windows.get("hot", 0) >= STEPS - 4, windows


def test_a_write_is_seen_through_an_overlapping_part(device):
    def make_step(device):
        state = data_on(device, 40)

        def step(i):
            before, after = state[i : i + 6], state[i + 3 : i + 9]
            before.mul_(2).add_(1)
            return after * 1.5

        return step

    assert_hot_and_equal(make_step, device)


def test_parts_that_overlap_otherwise_are_another_trace(device):
    """The guard: the window was compiled for two parts that are apart."""
    places = [(0, 10), (4, 20), (8, 30), (1, 9), (5, 8), (6, 6), (8, 5), (3, 30)]

    def make_step(device):
        state = data_on(device, 40)

        def step(i):
            a, b = state[places[i][0] :][:5], state[places[i][1] :][:5]
            doubled = b * 2
            a.add_(1)
            b.mul_(2)
            return doubled + a + b + state.sum()

        return step

    assert_equal(make_step, device)


def test_a_part_that_the_window_has_written_before_is_read_as_written(device):
    def make_step(device):
        state = data_on(device, 40)

        def step(i):
            state.mul_(1.5)
            return state[i : i + 4] + state[i + 2 : i + 6]

        return step

    assert_equal(make_step, device)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_a_part_of_memory_that_the_window_has_grown_before_is_found(device):
    def make_step(device):
        def step(i):
            data = data_on(device, 4)
            last = data.as_strided((1,), (1,), 3)
            synchronize()
            torch.mul(torch.ones(4, device=device), 2, out=last)
            return data.as_strided((3,), (2,), 2)

        return step

    assert_equal(make_step, device)


@pytest.mark.parametrize("moved", [0, 1, 3])
def test_as_strided_counts_from_the_start_of_the_storage(device, moved):
    def make_step(device):
        data = data_on(device, 40)

        def step(i):
            part = data[moved * i : moved * i + 6]
            return part * 2 + data[3:9].as_strided((6,), (1,), 5) + part.as_strided((6,), (2,))

        return step

    assert_equal(make_step, device)


@pytest.mark.parametrize(
    "operator",
    [
        lambda x: x.view(torch.float64),
        lambda x: torch.ops.aten.view_copy.dtype(x, torch.float64),
        lambda x: torch.view_as_complex(x.view(2, 2)),
        lambda x: torch.view_as_complex_copy(x.view(2, 2)),
    ],
    ids=["view", "view_copy", "view_as_complex", "view_as_complex_copy"],
)
def test_a_part_at_an_odd_element_is_refused_at_the_call_by_a_wider_dtype(operator, device):
    data = data_on(device, 40)
    windows_of(lambda i: operator(data[2 * i : 2 * i + 4]) * 1, device, 6)

    with pytest.raises(RuntimeError, match="storage_offset"):
        operator(data[3:7])


def test_the_inverse_of_a_slice_lies_where_its_source_does(device):
    places = [(0, 6), (2, 7), (3, 9), (4, 2), (8, 1), (5, 20), (1, 11), (3, 3)]

    def make_step(device):
        data = data_on(device, 40)

        def step(i):
            part, source = (data[place : place + 6] for place in places[i])
            return torch.ops.aten.slice_inverse(part, source[:4], 0, 0, 4, 1) * 1

        return step

    step = make_step(device)
    windows_of(step, device)
    assert_equal(make_step, device)
    assert_equal(lambda d: make_step(d) if d == "cpu" else step, device)


def test_views_of_a_moving_part_have_its_offset(device):
    data = data_on(device, 20, 6)
    offsets = []

    def step(i):
        part = data[i : i + 3]
        made = part * 2
        columns = part.t()[1:3]
        offsets.append((part.storage_offset(), columns.storage_offset(), columns[1].stride()))
        return columns * 1 + made.sum()

    windows_of(step, device)

    assert offsets == [(6 * i, 6 * i + 1, (6,)) for i in range(STEPS)]


def test_a_recurrence_over_the_same_rows_is_still_one_window_with_one_input(device):
    """Parts that do not move are views within the window."""
    rows = data_on(device, 50, 4)

    def step(_):
        state = torch.zeros(4).to(device)
        for t in range(50):
            state = state * 0.5 + rows[t]
        return state

    results, windows = windows_of(step, device)

    assert windows.get("hot", 0) >= STEPS - 3
    torch.testing.assert_close(results[-1], results[0])


def test_a_batch_and_a_recurrence_over_its_rows(device):
    def make_step(device):
        data = data_on(device, 40, 6, 4) / 960

        def step(i):
            batch = data[3 * i : 3 * i + 3]
            state = torch.zeros(3, 4).to(device)
            for t in range(6):
                state = (state + batch[:, t]).tanh()
            return state

        return step

    assert_hot_and_equal(make_step, device)


def test_gradients_reach_the_part_that_was_taken(device):
    def make_step(device):
        weight = data_on(device, 30, 4).requires_grad_()

        def step(i):
            weight.grad = None
            (weight[2 * i : 2 * i + 3] ** 2).sum().backward()
            return weight.grad

        return step

    assert_equal(make_step, device)


def test_tensors_of_different_sizes_share_the_trace_of_their_parts(device):
    train, validation = data_on(device, 100, 3), data_on(device, 40, 3)

    def make_step(data):
        return lambda i: (data[2 * i : 2 * i + 2] + 1).prod(1)

    windows_of(make_step(train), device)
    make_step(validation)(0).cpu()
    make_step(validation)(1).cpu()
    _, windows = windows_of(make_step(validation), device)

    assert set(windows) == {"hot"}
