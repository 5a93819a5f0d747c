"""Statements of random programs that make views, write through them and change a tensor's own
metadata."""

from __future__ import annotations

import torch
from program_builder import Builder
from program_catalogue import Made, family, has_dims, room

# ---- views ----


@family(3)
def reshape(b: Builder) -> Made:
    x = b.pick(has_dims)
    if x is None:
        return None
    n = b.at(x).numel()
    first = b.rng.choice([d for d in range(1, n + 1) if n % d == 0])
    sizes = b.rng.choice(
        [f"{first}, {n // first}", f"{first}, -1", "-1", f"1, {n // first}, {first}"]
    )
    return f"{b.new()} = {x}.{b.rng.choice(['view', 'reshape'])}({sizes})"


@family(5)
def rearrange(b: Builder) -> Made:
    x = b.pick(has_dims)
    if x is None:
        return None
    t = b.at(x)
    p, q = b.dim(t), b.dim(t)
    order = b.rng.sample(range(t.dim()), t.dim())
    forms = [
        f"transpose({p}, {q})",
        f"permute({order})",
        f"movedim({p}, {q})",
        f"unsqueeze({p})",
        "squeeze()",
        f"squeeze({p})",
        "flatten()",
    ]
    if t.dim() <= 2:
        forms += ["t()", "t()"]
    if t.dim() >= 2:
        forms += ["mT", f"flatten({b.rng.randrange(t.dim())})"]
    return f"{b.new()} = {x}.{b.rng.choice(forms)}"


@family(6)
def subset(b: Builder) -> Made:
    x = b.pick(has_dims)
    if x is None:
        return None
    t = b.at(x)
    d = b.dim(t)
    n = t.size(d)
    i = b.rng.randrange(n)
    length = b.rng.randint(1, n - i)
    step = b.rng.randint(1, 2)
    forms = [
        f".select({d}, {i})",
        f".narrow({d}, {i}, {length})",
        f"[..., {b.rng.randrange(t.size(-1))}]",
        f".unfold({d}, {length}, {step})",
    ]
    forms += [
        f"[{b.rng.randrange(t.size(0))}]",
        f"[{b.rng.randrange(t.size(0))}::{step}]",
        "[..., :-1]",
        f"[..., ::{step}]",
        "[None]",
    ]
    if t.dim() >= 2:
        forms += [
            ".diagonal()",
            f".diagonal({b.rng.choice([-1, 0, 1])}, 0, 1)",
            "[:, 0]",
            "[:, 1:]",
        ]
    return f"{b.new()} = {x}{b.rng.choice(forms)}"


@family(2)
def expand(b: Builder) -> Made:
    x = b.pick(lambda t: 1 in t.shape or t.dim() < 2)
    if x is None:
        return None
    t = b.at(x)
    sizes = [b.rng.randint(2, 4) if s == 1 else -1 for s in t.shape]
    if b.chance(0.5):
        sizes = [b.rng.randint(1, 3), *sizes]
    return f"{b.new()} = {x}.expand({sizes})" if sizes else None


@family(2)
def as_strided(b: Builder) -> Made:
    x = b.pick(lambda t: t.numel() > 0)
    if x is None:
        return None
    t = b.at(x)
    elements = room(t)
    sizes, strides, last = [], [], 0
    offset = b.rng.randrange(elements)
    for _ in range(b.rng.randint(0, 3)):
        stride = b.rng.choice([0, 1, 1, 2, 3, 4])
        size = b.rng.randint(1, 4)
        if offset + last + stride * (size - 1) >= elements:
            continue
        last += stride * (size - 1)
        sizes.append(size)
        strides.append(stride)
    return f"{b.new()} = {x}.as_strided({sizes}, {strides}, {offset})"


@family(2.5)
def reinterpret(b: Builder) -> Made:
    x = b.pick()
    if x is None:
        return None
    t = b.at(x)
    if t.is_complex():
        forms = [
            f"{x}.real",
            f"{x}.imag",
            f"torch.view_as_real({x})",
            f"{x}.conj()",
            f"{x}.mH" if t.dim() == 2 else f"{x}.conj()",
            f"{x}.conj().imag",
        ]
    else:
        dtypes = {
            4: ["float32", "int32", "bfloat16"],
            8: ["int64", "float64", "float32", "complex64"],
            2: ["bfloat16", "int16"],
            1: ["uint8"],
        }
        forms = [f"{x}.view(torch.{b.rng.choice(dtypes[t.element_size()])})"]
        if t.dtype == torch.float32 and t.dim() and t.size(-1) == 2:
            forms.append(f"torch.view_as_complex({x})")
    return f"{b.new()} = {b.rng.choice(forms)}"


@family(2)
def same_memory(b: Builder) -> Made:
    x = b.pick()
    if x is None:
        return None
    forms = ["detach()", "data", f"view_as({x})", "contiguous()", "to(device)"]
    return f"{b.new()} = {x}.{b.rng.choice(forms)}"


@family(2)
def pieces(b: Builder) -> Made:
    x = b.pick(has_dims)
    if x is None:
        return None
    t = b.at(x)
    d = b.dim(t)
    n = t.size(d)
    if n < 2:
        return None
    p, q = b.new(), b.new()
    cut = b.rng.randrange(1, n)
    forms = [
        f"{p}, {q} = {x}.split([{cut}, {n - cut}], {d})",
        f"{p}, *_, {q} = {x}.unbind({d})",
        f"{p}, *_, {q} = {x}.chunk(2, {d})",
        f"{p}, *_, {q} = {x}.tensor_split(2, {d})",
    ]
    return b.rng.choice(forms)


# ---- in place ----


def assigned(b: Builder, x: str, y: str) -> str:
    """`y` written over all of `x` by index.

    PyTorch assigns a 0-dim tensor by fill_ if it is on the CPU, by copy_ on every other device
    (copy_to in ATen/TensorIndexing.h), and fill_ alone makes integers require a gradient. There is
    no eager behaviour for a device to agree with, so programs copy there.
    """
    gradient = y[0] == "v" and b.at(y).dim() == 0 and b.at(y).requires_grad
    if gradient and not b.at(x).is_floating_point():
        return f"{x}.copy_({y})"
    return f"{x}[...] = {y}"


def no_grad(b: Builder, code: str) -> str:
    return f"with torch.no_grad(): {code}" if b.chance(0.35) else code


@family(9)
def in_place(b: Builder) -> Made:
    x = b.pick(lambda t: not (t.is_leaf and t.requires_grad)) if b.chance(0.8) else b.pick()
    if x is None:
        return None
    t = b.at(x)
    y = b.partner(x, into=True)
    s = b.scalar(t)
    forms = [
        f"{x}.add_({y})",
        f"{x}.mul_({s})",
        f"{x}.sub_({y})",
        f"{x}.copy_({y})" if y[0] == "v" else f"{x}.fill_({s})",
        f"{x}.fill_({s})",
        f"{x}.zero_()",
        f"{x} += {y}",
        assigned(b, x, y),
    ]
    forms += [
        f"{x}.masked_fill_({x} > {s}, {s})",
        f"{x}.clamp_(-4, 4)",
        f"{x}.neg_()",
        f"{x}.mul_({y})",
    ]
    if t.is_floating_point():
        forms += [f"{x}.{name}_()" for name in ("tanh", "sin", "relu", "sigmoid")]
        forms += [
            f"{x}.add_({y}, alpha=0.5)",
            f"{x}.div_(3)",
            f"{x}.addcmul_({x}, {x}, value=0.1)",
            f"{x}.lerp_({x}, 0.5)",
            f"{x}.uniform_()",
            f"{x}.normal_(0, 2)",
        ]
    if t.dim():
        i = b.rng.randrange(max(1, t.size(0)))
        forms += [
            f"{x}[{i}] = {s}",
            f"{x}[..., -1] *= {s}",
            f"{x}[{i}:].add_({s})",
            f"{x}[{x} > 0] = {s}",
        ]
    return no_grad(b, b.rng.choice(forms))


@family(3)
def metadata(b: Builder) -> Made:
    """What changes a tensor's own sizes, strides or storage."""
    x = b.pick(lambda t: not t.requires_grad) if b.chance(0.7) else b.pick()
    if x is None:
        return None
    t = b.at(x)
    p, q = b.dim(t), b.dim(t)
    y = b.pick(lambda o: o.dtype == t.dtype and not o.requires_grad) or x
    forms = [
        f"{x}.unsqueeze_({p})",
        "squeeze",
        f"{x}.set_({y})",
        f"{x}.set_({y}.untyped_storage(), 0, ({min(b.at(y).numel(), room(b.at(y)))},))",
        f"{x}.data = {y}",
    ]
    if t.dim():
        forms += [f"{x}.transpose_({p}, {q})", f"{x}.swapaxes_({p}, {q})"]
    if t.dim() <= 2:
        forms += [f"{x}.t_()"] * 2
    if t.numel():
        forms += [f"{x}.as_strided_(({t.numel()},), (0,))"]
    grown = [b.rng.randint(1, 5) for _ in range(b.rng.randint(1, 3))]
    # Filled at once: memory that a resize adds is not initialised.
    forms += [
        f"{x}.resize_({grown}).fill_(2)",
        f"{x}.resize_(({b.rng.randint(0, max(1, t.numel()))},))"
        if t.is_contiguous() and t.numel()
        else f"{x}.resize_(0)",
    ]
    code = b.rng.choice(forms)
    return f"{x}.squeeze_()" if code == "squeeze" else code


@family(3)
def into_out(b: Builder) -> Made:
    x = b.pick(lambda t: not t.requires_grad)
    if x is None:
        return None
    t = b.at(x)
    y = b.partner(x)
    inputs = {b.at(name).untyped_storage()._cdata for name in (x, y) if name[0] in "vc"}
    # A resized `out` that is an input too has no defined result.
    out = b.pick(lambda o: not o.requires_grad and o.untyped_storage()._cdata not in inputs)
    if out is None:
        return None
    forms = [
        f"torch.add({x}, {y}, out={out})",
        f"torch.mul({x}, {y}, out={out})",
        f"torch.neg({x}, out={out})",
        f"torch.sum({x}, {tuple(range(t.dim()))[:1]}, out={out})",
    ]
    forms += [
        f"torch.cat([{x}, {x}], out={out})",
        f"torch.where({x} > 0, {x}, {x}, out={out})",
        f"torch.cumsum({x}, -1, out={out})",
    ]
    if t.dim() == 2:
        forms += [f"torch.mm({x}, {x}.t(), out={out})", f"torch.amax({x}, 1, out={out})"]
    new = f"{b.new()} = " if b.chance(0.3) else ""
    return new + b.rng.choice(forms)
