"""Calls that record nothing go past PyTorch's autograd kernels: all else is as through them."""

from __future__ import annotations

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from behaviour import Operators, each_run, same_on
from torch import nn
from torch._ops import resolve_key


def error_of(fn) -> str:
    with pytest.raises(RuntimeError) as raised:
        fn()
    return str(raised.value).partition("\n")[0]


def test_writes_count_versions_with_and_without_gradients(device):
    def program(where):
        x, values, flags = torch.ones(4).to(where), torch.ones(2).to(where), torch.ones(4) > 0
        index = torch.tensor([0, 2]).to(where)
        versions = []
        for enabled in (True, False):
            with torch.set_grad_enabled(enabled):
                x.add_(1).mul_(2)
                x[1:].fill_(3)
                x.index_put_((index,), values)
                x.masked_fill_(flags.to(where), 0.5)
                versions.append(x._version)
        with torch.inference_mode():
            x.zero_()
        return [*versions, x._version]

    assert each_run(program, device) == [program("cpu")] * 4


def test_changes_of_metadata_count_versions_as_in_eager(device):
    def program(where):
        versions = []
        for change in ("detach_", "squeeze_", "t_", "unsqueeze_", "resize_"):
            x = torch.ones(2, 2).to(where)
            arguments = {"unsqueeze_": (0,), "resize_": ((4, 4),)}.get(change, ())
            with torch.inference_mode():
                getattr(x, change)(*arguments)
            versions.append(x._version)
        return versions

    assert each_run(program, device) == [program("cpu")] * 4


def test_versions_of_what_an_operator_fills_are_the_cpus(device):
    def program(where):
        x = torch.ones(3).to(where).requires_grad_()
        (gradient,) = torch.autograd.grad(x.trunc().sum(), [x])  # zeros_like
        like = torch.ops.aten.ones_like(x.detach())
        return [gradient._version, like._version, torch.zeros_like(x)._version]

    assert each_run(program, device) == [program("cpu")] * 4


def test_a_write_to_what_backward_needs_is_refused(device):
    def program(where):
        x = torch.ones(3, device=where, requires_grad=True)
        saved = torch.ones(3, device=where)
        y = (x * saved).sum()
        saved.add_(1)
        return error_of(y.backward).replace(where, "device")

    for actual in each_run(program, device):
        assert "modified by an inplace operation" in actual
        assert "is at version 1; expected version 0" in actual


def test_writes_to_leaves_and_to_inference_tensors_are_refused(device):
    def program(where):
        leaf = torch.ones(3, device=where, requires_grad=True)
        with torch.inference_mode():
            made = torch.ones(3, device=where)
        errors = [error_of(lambda: leaf.add_(1)), error_of(lambda: leaf[1:].zero_())]
        with torch.no_grad():
            leaf.mul_(2)
        errors.append(error_of(lambda: made.add_(1)))
        errors.append(error_of(lambda: made.add_(leaf.detach())))
        return [*errors, leaf._version]

    assert each_run(program, device) == [program("cpu")] * 4


def test_one_tensor_of_a_list_or_an_index_is_enough_for_a_gradient(device):
    def program(where):
        plain = torch.arange(3.0).to(where)
        learned = torch.ones(3).to(where).requires_grad_()
        index = torch.tensor([2, 0]).to(where)
        written = torch.zeros(3).to(where)
        written.index_put_((index,), learned[:2])
        joined = torch.cat([plain, learned]) * torch.stack([plain, learned]).flatten()
        chosen = torch.where(plain > 1, plain, learned) + torch.clamp(plain, learned, None)
        sums = torch._foreach_add([plain, learned], 1.0)
        results = [written, joined, chosen, plain[index], *sums]
        sum(r.sum() for r in results if r.requires_grad).backward()
        return [*(r.detach() for r in results), torch.tensor([r.requires_grad for r in results]),
                learned.grad]  # fmt: skip

    same_on(device, program)


def test_operators_over_lists_count_versions_and_carry_gradients(device):
    def program(where):
        plain = [torch.arange(3.0).to(where), torch.ones(2).to(where)]
        learned = [torch.ones(3).to(where), torch.ones(2).to(where).requires_grad_()]
        scales = [torch.full((3,), 2.0).to(where), torch.full((2,), 3.0).to(where)]
        torch._foreach_mul_(plain, scales)
        torch._foreach_add_(plain, 1.0)
        torch._foreach_lerp_(plain, [t.detach() for t in learned], 0.5)
        products = torch._foreach_mul(plain, learned)
        sum(p.sum() for p in products).backward()
        with torch.no_grad():
            torch._foreach_mul_(learned, 2.0)
            torch._foreach_zero_([learned[1].grad])
        versions = [t._version for t in (*plain, *learned, *scales, *products, learned[1].grad)]
        recorded = [p.requires_grad for p in products]
        return [*plain, *(t.detach() for t in (*learned, *products)), learned[1].grad,
                torch.tensor(versions), torch.tensor(recorded)]  # fmt: skip

    same_on(device, program)


def test_a_list_with_a_leaf_that_is_learned_is_not_written(device):
    def program(where):
        leaf = torch.ones(3).to(where).requires_grad_()
        return [
            error_of(lambda: torch._foreach_add_([torch.ones(2).to(where), leaf], 1.0)),
            leaf._version,
        ]

    assert each_run(program, device) == [program("cpu")] * 4


def test_tangents_are_carried(device):
    def program(where):
        plain = torch.arange(3.0).to(where)
        with torch.no_grad(), forward_ad.dual_level():
            dual = forward_ad.make_dual(plain + 1, torch.full((3,), 2.0).to(where))
            written = plain.clone()
            written.mul_(dual)
            results = [plain * dual, dual.relu(), torch.cat([plain, dual]), written]
            pairs = [forward_ad.unpack_dual(r) for r in results]
            return [t.clone() for pair in pairs for t in (pair.primal, pair.tangent)]

    same_on(device, program)


def test_functional_transforms_differentiate_and_batch(device):
    def program(where):
        x = torch.arange(6.0).view(2, 3).to(where)

        def loss(row):
            return ((row * 2 + row.sin()).relu() @ row).sum()

        batched = torch.func.vmap(torch.func.grad(loss))(x)
        value, tangent = torch.func.jvp(loss, (x[1],), (x[0],))
        return batched, value, tangent, torch.func.hessian(loss)(x[1])

    same_on(device, program)


def test_modes_and_subclasses_see_the_operators(device):
    def program(where):
        x = torch.ones(2, 2).to(where)
        with Operators() as operators:
            y = (x + 1).relu().mul_(2)
            torch.cat([y, y @ x])
        return operators.names

    assert each_run(program, device) == [program("cpu")] * 4


def test_behind_each_kernel_is_the_one_that_autograd_has_for_the_cpu():
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    passed_by = [
        name
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::")
        and has_kernel(name, "AutogradLazy")
        and has_kernel(name, "Autograd")
    ]

    def kernel_for(table: str, key: str) -> str:
        return table.partition(f"\n{key}: ")[2].partition("\n")[0]

    different = []
    for name in passed_by:
        table = torch._C._dispatch_dump_table(name)
        packet, _, overload = name.removeprefix("aten::").partition(".")
        operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
        keys = ("AutogradOther", "AutogradCPU")
        kernels = [kernel_for(table, key) for key in keys]
        if operator.py_kernels:  # those that Python's dispatcher looks at first
            kernels = [resolve_key(operator, getattr(torch._C.DispatchKey, key)) for key in keys]
        if kernels[0] != kernels[1]:
            different.append(name)

    assert len(passed_by) > 100
    assert different == []


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_compiled_batch_norm_writes_its_statistics(device, mode):
    def program(where):
        norm = getattr(nn.BatchNorm1d(3), mode)().to(where)
        x = torch.arange(12.0).view(4, 3).to(where)
        y = torch.compile(norm, backend="aot_eager")(x)
        return y.detach(), norm.running_mean, norm.running_var

    same_on(device, program)


def test_an_argument_that_is_no_tensor_is_refused(device):
    def program(where):
        x = torch.ones(2, 2).to(where)
        return [
            error_of(lambda: torch.ops.aten.add.Tensor(x, None)),
            error_of(lambda: torch.ops.aten.gather.default(x, 1, None)),
            error_of(lambda: torch.ops.aten._log_softmax_backward_data(x, None, 1, x.dtype)),
        ]

    assert each_run(program, device) == [program("cpu")] * 4


@pytest.mark.parametrize("key", ["Lazy", "ADInplaceOrView"])
def test_what_a_program_registers_for_an_operator_is_called(device, key):
    calls = []
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("expm1", lambda x: calls.append(x.requires_grad) or x.clone(), key)
        for grad in (False, True):
            torch.ones(2).to(device).requires_grad_(grad).expm1()

    assert calls == [False, True]


def test_a_view_written_without_gradients_belongs_to_its_base(device):
    def program(where):
        base = torch.zeros(4).to(where)
        with torch.no_grad():
            view = base[1:3]
            view.add_(1)
        weight = torch.ones(2).to(where).requires_grad_()
        other = base[:2]
        other.mul_(0).add_(weight)
        (base * 3).sum().backward()
        return base.detach(), view.detach(), weight.grad, torch.tensor(base.requires_grad)

    same_on(device, program)


def test_hooks_and_checkpoints_of_a_trained_network_run(device):
    def program(where):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2)).to(where)
        frozen = nn.Linear(2, 2).to(where).requires_grad_(False)
        x = torch.ones(5, 3).to(where)
        y = torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False)
        seen = []
        y.register_hook(lambda g: seen.append(g.clone()))
        torch.softmax(frozen(y), -1)[:, 0].sum().backward()
        return [*seen, *(p.grad for p in net.parameters())]

    same_on(device, program)
