"""Statements of random programs that compute new values: arithmetic, casts, reductions, products,
indexing."""

from __future__ import annotations

import torch
from program_builder import Builder
from program_catalogue import Made, family, floating, has_dims

# ---- values ----


@family(6)
def unary(b: Builder) -> Made:
    x = b.pick()
    if x is None:
        return None
    t = b.at(x)
    names = [
        "neg()",
        "clone()",
        "square()",
        "sign()",
        "abs()",
        "isnan()",
        "logical_not()",
        "contiguous()",
        "flip(0)" if t.dim() else "clone()",
        "zero_like",
    ]
    if t.is_floating_point() or t.is_complex():
        names += ["tanh()", "sin()", "exp()", "sigmoid()", "cos()"]
    if t.is_floating_point():
        names += [
            "relu()",
            "floor()",
            "clamp(-1, 1)",
            "softmax(-1)",
            "nan_to_num()",
            "gelu",
            "pow(2)",
            "rsqrt()",
        ]
    name = b.rng.choice(names)
    special = {"zero_like": f"torch.zeros_like({x})", "gelu": f"F.gelu({x})"}
    return f"{b.new()} = {special.get(name, f'{x}.{name}')}"


@family(8)
def binary(b: Builder) -> Made:
    x = b.pick()
    if x is None:
        return None
    y = b.partner(x)
    s = b.scalar(b.at(x))
    forms = [
        f"{x} + {y}",
        f"{x} - {y}",
        f"{x} * {y}",
        f"{s} - {x}",
        f"{x} / 2",
        f"{x} == {y}",
        f"{x} < {y}",
        f"torch.maximum({x}, {x})",
        f"torch.add({x}, {y}, alpha=2)",
    ]
    forms += [
        f"torch.where({x} > {s}, {x}, {y})",
        f"torch.where({x} > 0, {s}, {x})",
        f"{x}.masked_fill({x} < 0, {s})",
        f"torch.lerp({x}, {x}, 0.3)",
        f"torch.logical_and({x}, {x})",
    ]
    return f"{b.new()} = {b.rng.choice(forms)}"


@family(1.5, may_fail=True)
def integer_division(b: Builder) -> Made:
    x = b.pick(lambda t: not (floating(t) or t.is_complex() or t.dtype == torch.bool))
    if x is None:
        return None
    divisor = b.rng.choice(["2", "3", f"({x}.abs() + 1)"])
    return f"{b.new()} = {x} {b.rng.choice(['//', '%'])} {divisor}"


@family(4)
def cast(b: Builder) -> Made:
    x = b.pick()
    if x is None:
        return None
    dtypes = ["float32"] * 3 + ["float64", "bfloat16", "complex64", "int64", "int32", "bool"]
    if b.at(x).is_complex():
        dtypes = ["complex64", "complex128", "bool"]
    # Values outside an integer's range have no defined result, so they are clamped before.
    inner = x if b.at(x).is_complex() else f"{x}.nan_to_num(0).clamp(-100, 100)"
    dtype = b.rng.choice(dtypes)
    source = inner if dtype.startswith("int") else x
    return f"{b.new()} = {source}.to(torch.{dtype}{b.rng.choice(['', ', copy=True'])})"


@family(5)
def reduction(b: Builder) -> Made:
    x = b.pick(has_dims)
    if x is None:
        return None
    t = b.at(x)
    d, keep = b.dim(t), b.rng.choice(["", ", keepdim=True"])
    forms = [
        f"{x}.sum()",
        f"{x}.sum({d}{keep})",
        f"{x}.any({d})",
        f"{x}.all()",
        f"{x}.cumsum({d})",
        f"torch.count_nonzero({x})",
    ]
    if not t.is_complex():
        forms += [
            f"{x}.amax({d}{keep})",
            f"{x}.argmax({d})",
            f"{x}.max({d}).values",
            f"{x}.sort({d}).values",
            f"{x}.min()",
            f"{x}.topk(1, {d}).indices",
        ]
    if t.is_floating_point():
        forms += [
            f"{x}.mean()",
            f"{x}.mean({d}{keep})",
            f"{x}.norm()",
            f"{x}.log_softmax({d})",
            f"{x}.var({d}, correction=0)",
            f"{x}.logsumexp({d})",
            f"F.layer_norm({x}, ({t.size(-1)},))",
        ]
    return f"{b.new()} = {b.rng.choice(forms)}"


@family(4)
def matrix(b: Builder) -> Made:
    x = b.pick(lambda t: t.dim() == 2 and t.dtype != torch.bool)
    if x is None:
        return None
    t = b.at(x)
    y = b.pick(lambda o: o.dim() == 2 and o.dtype == t.dtype and o.size(0) == t.size(1))
    right = y or f"{x}.t()"
    forms = [
        f"torch.mm({x}, {right})",
        f"{x} @ {right}",
        f"F.linear({x}, {x})",
        f"torch.addmm({x} @ {right}, {x}, {right}, beta=0.5)",
        f"torch.bmm({x}[None], {right}[None])",
        f"torch.einsum('ij,kj->ki', {x}, {x})",
        f"{x} @ {x}[0]" if t.size(0) else f"{x} @ {right}",
    ]
    return f"{b.new()} = {b.rng.choice(forms)}"


@family(4)
def build(b: Builder) -> Made:
    x = b.pick(has_dims)
    if x is None:
        return None
    t = b.at(x)
    y = b.pick(lambda o: o.shape == t.shape) or x
    d = b.dim(t)
    forms = [
        f"torch.cat([{x}, {y}], {d})",
        f"torch.stack([{x}, {y}], {d})",
        f"{x}.roll(1, {d})",
        f"{x}.repeat({[1] * (t.dim() - 1) + [2]})",
        f"F.pad({x}, (1, 0))",
        f"torch.full(({t.size(0)},), 3, device=device)",
    ]
    forms += [
        f"{x}.new_zeros(2, 3)",
        f"torch.arange({t.size(-1)}, device=device)",
        f"torch.ones_like({x})",
        f"{x}.new_tensor([1, 2])",
        f"torch.rand_like({x}.float())",
        f"F.dropout({x}.float(), 0.5)",
        f"torch.zeros(3, {t.size(-1)}, device=device)",
    ]
    if t.dim() == 2:
        forms += [f"{x}.tril()", f"{x}.triu(1)"]
    return f"{b.new()} = {b.rng.choice(forms)}"


@family(2)
def several(b: Builder) -> Made:
    x = b.pick(lambda t: t.is_floating_point() and not t.requires_grad)
    y = b.pick(lambda t: t.is_floating_point() and not t.requires_grad)
    if x is None or y is None:
        return None
    p, q = b.new(), b.new()
    return b.rng.choice(
        [
            f"torch._foreach_add_([{x}, {y}], 0.5)",
            f"{p}, {q} = torch._foreach_mul([{x}, {y}], 2.0)",
            f"torch._foreach_mul_([{x}, {y}], [2.0, 0.5])",
        ]
    )


# ---- indices ----


@family(5, may_fail=True)
def indexing(b: Builder) -> Made:
    x = b.pick(has_dims)
    if x is None:
        return None
    t = b.at(x)
    n = t.size(0)
    out = b.new()
    s = b.scalar(t)
    i = b.index(n)
    forms = [
        f"{out} = {x}[{i}]",
        f"{out} = {x}.index_select(0, {i})",
        f"{out} = {x}[{x} > 0]",
        f"{out} = {x}.nonzero()",
        f"{out} = torch.take({x}, {b.index(t.numel())})",
        f"{out} = torch.masked_select({x}, {x} == {x})",
    ]
    if not (t.is_leaf and t.requires_grad):
        forms += [
            f"{x}[{i}] = {s}",
            f"{x}.index_fill_(0, {i}, {s})",
            f"{x}.index_add_(0, torch.tensor([0], device=device), {x}[:1].clone())",
        ]
        forms += [
            f"{x}.index_put_(({i},), {x}.new_ones(()), accumulate=True)",
            f"{x}.masked_scatter_({x} > 0, {x}.clone())",
        ]
    last = t.size(-1)
    if t.dim() == 2:
        rows = (
            f"({x}.argmax(1, keepdim=True))"
            if not t.is_complex() and t.dtype != torch.bool
            else f"torch.zeros({n}, 1, dtype=torch.int64, device=device)"
        )
        forms += [
            f"{out} = {x}.gather(1, {rows})",
            f"{out} = {x}.new_zeros({n}, {last}).scatter_(1, {rows}, {x})",
            f"{out} = {x}.scatter_add(1, {rows}, {x})",
            f"{out} = F.embedding({b.index(n)}, {x})",
        ]
    return b.rng.choice(forms)


@family(0.5, may_fail=True, fails_late=True)
def late_failure(b: Builder) -> Made:
    """An index that is fine until the last repetition, when a deferring device has the operator
    pending."""
    if b.fatal_left == 0:
        return None
    x = b.pick(has_dims)
    if x is None:
        return None
    b.fatal_left -= 1
    n, i, out = b.at(x).size(0), b.new(), b.new()
    forms = [
        f"{out} = {x}[{i}]",
        f"{out} = {x}.index_select(0, {i})",
        f"{out} = torch.take({x}, {i})" if b.at(x).dim() == 1 else f"{out} = {x}[{i}]",
    ]
    if b.at(x).dim() == 1:
        forms.append(f"{out} = {x}.gather(0, {i})")
    return [f"{i} = torch.tensor([0, {n} if run == 3 else 0]).to(device)", b.rng.choice(forms)]
