"""Views under autograd are the CPU's: same nodes, same refusals, redone after a write."""

from __future__ import annotations

import pytest
import torch
from behaviour import same_on


def _differentiable_views() -> list[str]:
    """Names of aten's operators that autograd knows as views, from PyTorch's own registrations."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    found = []
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("aten::"):
            continue
        if has_kernel(name, "CompositeImplicitAutograd") or not has_kernel(name, "ADInplaceOrView"):
            continue
        base, _, overload = name[6:].partition(".")
        schema = getattr(getattr(torch.ops.aten, base), overload or "default")._schema
        viewed = schema.arguments[0].alias_info
        if viewed is not None and not viewed.is_write:
            found.append(name)
    return found


def test_every_differentiable_view_has_the_devices_autograd_kernel():
    """A view with PyTorch's kernel is redone by its operator, one with the device's by its
    geometry; the one cannot follow the other (torch::autograd::ViewInfo::chain)."""
    not_differentiable = {"aten::detach", "aten::view.dtype"}
    of_dual_tensors = {"aten::_fw_primal", "aten::_make_dual"}  # views to backward, not to forward
    of_reverse_views = {"aten::slice_inverse"}  # takes a second gradient; it is never written
    not_strided = {
        *("aten::_indices", "aten::_values", "aten::indices", "aten::values"),
        *("aten::ccol_indices", "aten::col_indices", "aten::crow_indices", "aten::row_indices"),
        *("aten::_nested_get_values", "aten::_nested_view_from_buffer"),
        *("aten::_nested_view_from_jagged", "aten::_test_autograd_multiple_dispatch_view"),
    }
    views = (
        set(_differentiable_views())
        - not_differentiable
        - of_dual_tensors
        - not_strided
        - of_reverse_views
    )

    without = [
        name
        for name in sorted(views)
        if not torch._C._dispatch_has_kernel_for_dispatch_key(name, "AutogradLazy")
    ]

    assert len(views) > 20
    assert without == []


def test_a_written_view_has_the_cpus_backward_nodes(device):
    def program(where):
        x = torch.arange(12.0, device=where).view(3, 4).requires_grad_()
        y = x * 2
        view = y.view(2, 6)[0].unsqueeze(0).transpose(0, 1)
        before = type(view.grad_fn).__name__
        view.mul_(3)
        (y.sum() + view.pow(2).sum()).backward()
        return before, type(view.grad_fn).__name__, type(y.grad_fn).__name__, x.grad

    same_on(device, program)


def test_views_that_change_more_than_geometry_are_redone_after_a_write(device):
    def program(where):
        z = torch.complex(torch.arange(4.0), torch.ones(4)).to(where).requires_grad_()
        part = (z * 1)[1:3]
        pairs, imaginary = torch.view_as_real(part), part.imag
        imaginary.mul_(4.0)
        pairs.select(1, 0).add_(1.0)
        conjugate = (z * 2)[::2].conj()
        conjugate.mul_(2)
        (pairs.sum() + part.abs().sum() + conjugate.abs().sum()).backward()
        return type(pairs.grad_fn).__name__, type(conjugate.grad_fn).__name__, z.grad

    same_on(device, program)


def test_a_view_of_a_base_with_an_offset_is_redone_after_a_write(device):
    def program(where):
        z = torch.complex(torch.arange(4.0), torch.ones(4)).to(where)
        w = torch.full((2, 2), 3.0, device=where, requires_grad=True)
        base = z[2:4].detach()
        torch.view_as_real(base).mul_(w)
        base.abs().sum().backward()
        return base, w.grad

    same_on(device, program)


def test_a_view_made_while_views_are_replayed_follows_one_that_was_not(device):
    def program(where):
        x = torch.arange(6.0, device=where).requires_grad_()
        view = (x * 1).view(2, 3)
        with torch.autograd.grad_mode._force_original_view_tracking(True):
            row = view[1]
        row.mul_(2)
        view.sum().backward()
        return type(view.grad_fn).__name__, x.grad

    same_on(device, program)


def test_a_view_made_while_views_are_replayed_leads_back_to_its_base(device):
    def program(where):
        x = torch.arange(6.0, device=where)
        view = x.view(2, 3)
        with torch.autograd.grad_mode._force_original_view_tracking(True):
            row = view[1]
        return row._view_func(x * 2), row._rev_view_func_unsafe(row.detach()).shape

    same_on(device, program)


def test_a_leaf_that_is_a_view_has_the_gradient_of_a_view_that_is_redone(device):
    def program(where):
        rows = torch.arange(8.0, device=where).view(2, 4).requires_grad_()
        with torch.autograd.grad_mode._force_original_view_tracking(True):
            row = rows[1]
        row.sum().backward()
        return rows.grad

    same_on(device, program)


def test_a_jagged_tensor_made_of_a_leaf_that_is_a_view_gives_it_its_gradient(device):
    def program(where):
        rows = torch.arange(20.0, device=where).view(5, 4).requires_grad_()
        offsets = torch.tensor([0, 2, 5], device=where)
        jagged = torch.nested.nested_tensor_from_jagged(rows, offsets)
        (jagged * 2).values().sum().backward()
        return rows.grad

    same_on(device, program)


def test_a_jagged_tensor_made_of_a_view_can_be_written(device):
    def program(where):
        x = torch.arange(20.0, device=where).requires_grad_()
        rows = (x * 1).view(5, 4)[1:]
        offsets = torch.tensor([0, 1, 4], device=where)
        jagged = torch.nested.nested_tensor_from_jagged(rows, offsets)
        jagged.mul_(2)
        (jagged.values().sum() + rows.sum()).backward()
        return rows.detach(), x.grad

    same_on(device, program)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: (x * 1).split(2)[0],
        lambda x: (x * 1).unbind(1)[2],
        lambda x: x.view(-1),
        lambda x: x.detach().view(-1),
        lambda x: torch.no_grad()(x.view)(-1),
    ],
    ids=["split", "unbind", "leaf", "detached", "no_grad"],
)
def test_a_write_to_a_view_is_refused_as_on_the_cpu(device, make):
    def program(where):
        view = make(torch.ones(3, 4, device=where, requires_grad=True))
        try:
            view.mul_(2)
        except RuntimeError as error:
            return str(error)
        return view

    same_on(device, program)


def test_a_view_of_a_dual_tensor_has_its_tangent(device):
    def program(where):
        with torch.autograd.forward_ad.dual_level():
            tangent = torch.arange(6.0, device=where).view(2, 3)
            dual = torch.autograd.forward_ad.make_dual(torch.ones(2, 3, device=where), tangent)
            row = dual.t()[1]
            row.mul_(5)
            unpack = torch.autograd.forward_ad.unpack_dual
            return unpack(dual).tangent.clone(), unpack(row).tangent.clone()

    same_on(device, program)
