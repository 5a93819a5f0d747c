"""Writes through any view are seen by all who share the memory, in the first, eager pass and in
deferred ones."""

from __future__ import annotations

import pytest
import torch
from behaviour import (
    RUNS_UNTIL_HOT,
    each_run,
    hot,
    same,
    same_on,
    synchronize,
    wait_for_compiles,
)


def numbers(device: str, *shape: int) -> torch.Tensor:
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape).to(device)


VIEWS = {
    "view": lambda t: t.view(4, 3),
    "transpose": lambda t: t.t(),
    "select": lambda t: t[1],
    "slice": lambda t: t[:, 1:4:2],
    "narrow": lambda t: t.narrow(0, 1, 2),
    "diagonal": lambda t: t.diagonal(),
    "unfold": lambda t: t.unfold(1, 2, 2),
    "as_strided": lambda t: t.as_strided((2, 2), (5, 1), 1),
    "view of a view": lambda t: t.t()[1:].view(-1, 1, 3).select(1, 0),
    "squeeze": lambda t: t.unsqueeze(0).squeeze(),
    "detach": lambda t: t.detach(),
    "data": lambda t: t.data,
    "view as int": lambda t: t.view(torch.int32),
    "chunk": lambda t: t.chunk(2, 1)[1],
    "unbind": lambda t: t.unbind(1)[2],
    "split": lambda t: t.split([1, 2])[1],
    "expand then select": lambda t: t[:1].expand(1, 4)[0],
    "movedim": lambda t: t.view(3, 2, 2).movedim(0, -1),
}


@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)
def test_a_write_through_a_view_reaches_the_base(device, make):
    def program(where):
        base = numbers(where, 3, 4)
        view = make(base)
        view.add_(100)
        return base, view

    same_on(device, program)


@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)
def test_a_write_to_the_base_reaches_a_view(device, make):
    def program(where):
        base = numbers(where, 3, 4)
        view = make(base)
        base.mul_(2).add_(1)
        return base, view, view + 1

    same_on(device, program)


def test_a_view_made_in_an_earlier_window_sees_later_writes(device):
    base = numbers(device, 3, 4)
    view = base.t()[1]
    assert view.tolist() == [1, 5, 9]

    hot(lambda: base.add_(1), runs=4)

    assert view.tolist() == [5, 9, 13]


def test_writes_of_a_hot_loop_reach_a_view_that_the_loop_never_touches(device):
    base = torch.zeros(4, 4, device=device)
    row, column = base[1], base[:, 2]

    def step():
        row.add_(1)
        column.mul_(2)
        base.t().sub_(0.5)

    hot(step, runs=6)

    expected = torch.zeros(4, 4)
    for _ in range(6):
        expected[1].add_(1)
        expected[:, 2].mul_(2)
        expected.t().sub_(0.5)
    same(base, expected.to(base.device))
    same(base.cpu(), expected)


def test_memory_is_written_that_a_window_is_first_given_by_an_empty_view(device):
    row = numbers(device, 4)
    empty = row[4:]

    def step():
        result = empty * 2
        row.as_strided((2, 4), (0, 1))[1:].add_(1)
        return result

    hot(step, runs=4)

    same(row.cpu(), numbers("cpu", 4) + 4)


def test_overlapping_views_write_in_order(device):
    def program(where):
        base = numbers(where, 8)
        left, right = base[:5], base[3:]
        left.fill_(-1)
        right.mul_(2)
        left.add_(right.clone())
        return base, left, right

    same_on(device, program)


def test_a_write_that_overlaps_its_own_operand_is_refused(device):
    base = numbers(device, 8)

    with pytest.raises(
        RuntimeError, match="some elements of the input tensor and the written-to tensor"
    ):
        base[:5].add_(base[3:])


def test_complex_parts_are_views(device):
    def program(where):
        z = torch.complex(torch.arange(4.0), torch.ones(4)).to(where)
        z.real.mul_(3)
        z.imag.add_(z.real)
        pairs = torch.view_as_real(z)
        pairs[..., 0].neg_()
        return z, pairs, z.conj(), z.conj().imag, torch.view_as_complex(pairs)

    same_on(device, program)


def test_expanded_memory_is_read_but_not_written(device):
    wide = torch.ones(3, 1).to(device).expand(3, 4)

    assert (wide + 1).tolist() == [[2.0] * 4] * 3
    with pytest.raises(RuntimeError, match="single memory location"):
        wide.add_(1)


def test_indexed_assignment(device):
    def program(where):
        t = numbers(where, 3, 4)
        t[1] = 7
        t[:, 0] += 1
        t[t > 8] = -1
        t[torch.tensor([0, 2], device=where), 1] = torch.tensor([50.0, 60.0], device=where)
        t[..., ::2] *= 2
        return t

    same_on(device, program)


def test_out_variants_write_into_the_given_memory(device):
    def program(where):
        x, out = numbers(where, 2, 3), torch.zeros(4, 3, device=where)
        rows = out[1:3]
        returned = torch.add(x, 1, out=rows)
        assert returned is rows
        torch.mm(x, x.t(), out=out[:2, :2].contiguous())
        torch.sum(x, 0, out=out[3])
        return out, rows

    same_on(device, program)


def test_versions_count_writes_for_all_views(device):
    def program(where):
        base = numbers(where, 4)
        view, other = base[1:], base.detach()
        view.add_(1)
        base.zero_()
        return [base._version, view._version, other._version, base.data._version]

    assert each_run(program, device) == [program("cpu")] * 4


def test_views_share_their_bases_storage(device):
    base = numbers(device, 3, 4)

    for make in VIEWS.values():
        assert make(base).untyped_storage()._cdata == base.untyped_storage()._cdata


def test_a_view_keeps_the_memory_after_its_base_is_gone(device):
    def program(where):
        base = numbers(where, 3, 4)
        view = base[1:].t()
        base.add_(1)
        del base
        view.mul_(2)
        return view

    same_on(device, program)


def test_a_temporary_of_a_deferred_window_is_copied_not_aliased(device):
    def program(where):
        x = numbers(where, 3)
        kept = x.clone()
        x.add_(1)
        also = x + 0
        x.zero_()
        return x, kept, also

    same_on(device, program)


@pytest.mark.parametrize("offset", [0, 2])
@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.select(0, 3).neg_(),
        lambda t: t[1::2].add_(1),
        lambda t: (t[:5].neg_(), t[2:6].mul_(3)),
        lambda t: t[1:].copy_(t[:-1].clone()),
    ],
    ids=["element", "strided", "overlapping", "shifted"],
)
def test_a_part_of_an_argument_with_an_offset_is_written(device, offset, write):
    for _ in range(RUNS_UNTIL_HOT + 1):
        expected = torch.rand(12)
        written = expected.to(device)
        part, same_part = expected[offset:], written[offset:]
        synchronize()

        write(part)
        write(same_part)

        synchronize()
        same(written, expected)
        wait_for_compiles()


SCATTERS = {
    "slice_scatter": lambda t: torch.slice_scatter(t, torch.zeros_like(t[:2]), 0, 1, 3),
    "select_scatter": lambda t: torch.select_scatter(t, torch.zeros_like(t[0]), 0, 1),
    "as_strided_scatter": lambda t: torch.as_strided_scatter(
        t, torch.zeros_like(t[:2]), (2,), (1,), 6
    ),
    "as_strided_copy": lambda t: torch.as_strided_copy(t, (3,), (1,), 1),
}


@pytest.mark.parametrize("scatter", SCATTERS.values(), ids=SCATTERS)
@pytest.mark.parametrize("first", [0, 4])
def test_what_is_made_of_a_part_of_memory_has_the_parts_elements(device, scatter, first):
    def program(where):
        part = (numbers(where, 40) * 2)[first : first + 9]
        made = scatter(part)
        return made.cpu(), (made[1:] * 3).cpu()  # a later window is given it

    for _ in range(RUNS_UNTIL_HOT):
        found = program(device)
        wait_for_compiles()

    torch.testing.assert_close(found, program("cpu"), rtol=0, atol=0)
