"""What is known of a tensor's elements until they are written: a number that the program has read,
and that indices lie in a range."""

from __future__ import annotations

import pytest
import torch
from behaviour import hot, same, synchronize, torch_lazy, wait_for_compiles

pytestmark = pytest.mark.recording


@pytest.fixture
def x(device):
    return torch.randn(3, 4).to(device)


def test_a_number_that_was_read_is_no_sync_point_again(device, x):
    index = torch.tensor(1).to(device)

    def program():
        y = x * 2
        return y[index] + x[index]

    assert index.item() == 1
    hot(program)
    torch_lazy.reset_metrics()

    result = program()

    assert torch_lazy.metrics()["flushes"] == {}
    same(result.cpu(), x.cpu()[1] * 3)


def test_an_index_that_a_module_moved_is_looked_at_again_once_it_was_written(device, x):
    index = torch.nn.Parameter(torch.tensor([1, 2]), requires_grad=False)
    index.data = index.data.to(device)  # as Module.to() does

    def take():
        return x[index] + 1

    hot(take)
    index.fill_(100)
    synchronize()

    with pytest.raises(IndexError):
        take()


WRITES = {
    "in place": lambda index: index.add_(1),
    "by a view": lambda index: index.view(1).add_(1),
    "past the version": lambda index: index.data.add_(1),
    "by another operator": lambda index: torch.add(index, 1, out=index),
}


@pytest.mark.parametrize("what", [what for what in WRITES if what != "past the version"])
def test_indices_are_looked_at_again_once_they_were_written(device, x, what):
    # Of three rows, the last one of which comes to be behind them.
    index = torch.tensor([0, 1, 2]).to(device)[2]

    def take():
        return x.index_select(0, index.view(1)) + 1

    hot(take)
    WRITES[what](index)
    synchronize()

    with pytest.raises(IndexError):
        take()


def test_indices_within_one_table_are_looked_at_for_a_smaller_one(device, x):
    of_columns, of_rows = (torch.tensor(index).to(device) for index in ([0, 3], [0, 2]))

    def take(dim, index):
        return x.index_select(dim, index) + 1

    hot(take, 1, of_columns)
    hot(take, 0, of_rows)

    with pytest.raises(IndexError):
        take(0, of_columns)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_number_that_was_read_and_written_since_is_what_was_written(device, write):
    def program():
        index = torch.tensor([0, 1, 2]).to(device)[1]
        read = [index.item()]
        for _ in range(2):
            write(index)
            read.append(index.item())
        return read

    for _ in range(5):
        assert program() == [1, 2, 3]
        synchronize()
        wait_for_compiles()
