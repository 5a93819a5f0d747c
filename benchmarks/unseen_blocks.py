"""Pieces of programs, each from one tensor of floats to another: the words that unseen.py's
programs are made of.
"""

from __future__ import annotations

from collections.abc import Callable

from unseen_draft import Draft, Value

UNARY = (
    "{}.tanh()", "{}.sigmoid()", "F.relu({})", "F.gelu({})", "F.silu({})", "{}.abs()",
    "torch.exp(-{}.abs())", "torch.log1p({}.abs())", "{}.sin()", "{}.cos()", "{}.clamp(-1, 1)",
    "F.softplus({})", "torch.sqrt({}.abs() + 0.1)", "{}.abs().add(1).rsqrt()", "{}.erf()", "-{}",
    "{}.square().clamp(max=4)", "F.leaky_relu({}, 0.1)", "F.elu({})", "{} * 0.7", "1 - {}",
    "{}.atan()", "F.hardswish({})", "{}.clamp(-2, 2) ** 3",
)  # fmt: skip
BINARY = (
    "{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "torch.minimum({}, {})",
    "torch.where({0} > {1}, {0}, {1} * 0.5)", "torch.lerp({}, {}, 0.3)",
    "torch.addcmul({0}, {0}, {1}, value=0.1)", "{0} / ({1}.abs() + 1)", "{0} * torch.sigmoid({1})",
)  # fmt: skip


def elementwise(draft: Draft, x: Value) -> Value:
    values = [x] + [draft.tensor(*x.shape) for _ in range(draft.one_of(0, 1, 2))]
    given, used = len(values), set[str]()
    for _ in range(draft.integer(2, 16)):
        if draft.random.random() < 0.55:
            template, operands = draft.one_of(*UNARY), [draft.random.choice(values)]
        else:
            template = draft.one_of(*BINARY)
            operands = [draft.random.choice(values), values[-1]]
        used |= {operand.name for operand in operands}
        values.append(draft.let(template.format(*operands), x.shape))
    # What nothing uses would be computed by eager alone.
    last = values[-1]
    for value in values[given:-1]:
        if value.name not in used:
            last = draft.let(f"{last} + {value}", x.shape)
    return last


def broadcast(draft: Draft, x: Value) -> Value:
    shape = tuple(size if draft.random.random() < 0.5 else 1 for size in x.shape)
    other = draft.tensor(*shape)
    y = draft.let(draft.one_of(*BINARY).format(x, other), x.shape)
    if len(x.shape) > 1 and draft.random.random() < 0.5:
        row = draft.tensor(*x.shape[1:])
        y = draft.let(draft.one_of(*BINARY).format(y, row), x.shape)
    return draft.let(draft.one_of(*UNARY).format(y), x.shape)


def reduction(draft: Draft, x: Value) -> Value:
    dims = [d for d in range(len(x.shape)) if draft.random.random() < 0.6] or [len(x.shape) - 1]
    shape = tuple(1 if d in dims else size for d, size in enumerate(x.shape))
    template = draft.one_of(
        "{0}.sum({1}, keepdim=True)", "{0}.mean({1}, keepdim=True)",
        "{0}.amax({1}, keepdim=True)", "{0}.square().mean({1}, keepdim=True).sqrt()",
        "torch.logsumexp({0}, {1}, keepdim=True)", "{0}.var({1}, correction=0, keepdim=True)",
        "{0}.abs().sum({1}, keepdim=True)", "torch.linalg.vector_norm({0}, 2, {1}, keepdim=True)",
    )  # fmt: skip
    y = draft.let(template.format(x, dims), shape)
    if draft.random.random() < 0.7:
        return draft.let(f"{x} / ({y}.abs() + 1)", x.shape)
    return draft.let(draft.one_of(*UNARY).format(y), shape)


def normalization(draft: Draft, x: Value) -> Value:
    last = x.shape[-1]
    return draft.let(draft.one_of(
        f"F.softmax({x}, {draft.random.randrange(len(x.shape))})",
        f"F.log_softmax({x}, -1)",
        f"F.layer_norm({x}, [{last}], {draft.tensor(last)}, {draft.tensor(last)})",
        f"F.rms_norm({x}, [{last}], {draft.tensor(last)})",
        f"F.normalize({x}, dim={draft.random.randrange(len(x.shape))})",
        f"({x} - {x}.mean()) / ({x}.std(correction=0) + 1e-3)",
    ), x.shape)  # fmt: skip


def movement(draft: Draft, x: Value) -> Value:
    d = draft.random.randrange(len(x.shape))
    size, half = x.shape[d], max(1, x.shape[d] // 2)
    other = len(x.shape) - 1 - d
    swapped = list(x.shape)
    swapped[d], swapped[other] = swapped[other], swapped[d]
    longer = tuple(s + 3 if i == len(x.shape) - 1 else s for i, s in enumerate(x.shape))
    part = tuple(half if i == d else s for i, s in enumerate(x.shape))
    turn = draft.integer(1, max(1, size))
    choices = [
        (f"torch.cat([{x}.narrow({d}, {half}, {size - half}), {x}.narrow({d}, 0, {half})], {d})",
         x.shape),
        (f"torch.roll({x}, {turn}, {d}) - {x}", x.shape),
        (f"{x}.flip({d}) * 0.5 + {x}", x.shape),
        (f"{x}.transpose({d}, {other}).contiguous()", tuple(swapped)),
        (f"F.pad({x}, (1, 2))", longer),
        (f"{x}.narrow({d}, 0, {half}).contiguous()", part),
        (f"torch.stack([{x}, {x} * 2], -1).sum(-1)", x.shape),
        (f"{x}.tril()" if len(x.shape) > 1 else f"{x}.clone()", x.shape),
        (f"torch.repeat_interleave({x}.narrow({d}, 0, {half}), 2, {d})",
         tuple(2 * half if i == d else s for i, s in enumerate(x.shape))),
    ]  # fmt: skip
    expression, shape = draft.random.choice(choices)
    return draft.let(expression, shape)


def indexing(draft: Draft, x: Value) -> Value:
    d = draft.random.randrange(len(x.shape))
    size = x.shape[d]
    rows = draft.integers(size, size)
    like = draft.integers(size, *x.shape)
    shape = list(x.shape)
    return draft.let(draft.one_of(
        f"{x}.index_select({d}, {rows})",
        f"torch.gather({x}, {d}, {like})",
        f"torch.zeros_like({x}).index_add({d}, {rows}, {x})",
        f"torch.zeros_like({x}).scatter_add({d}, {like}, {x})",
        f"torch.where({draft.mask(0.3, *shape)}, {x}, 0)",
        f"{x}.masked_fill({draft.mask(0.2, *shape)}, -1.0)",
        f"{x}.sort({d}).values",
        f"torch.take_along_dim({x}, {like}, {d})",
    ), x.shape)  # fmt: skip


def scan(draft: Draft, x: Value) -> Value:
    d = draft.random.randrange(len(x.shape))
    return draft.let(draft.one_of(
        f"{x}.cumsum({d}) / {x.shape[d]}",
        f"torch.cumprod(1 + {x}.tanh() * 0.01, {d})",
        f"torch.logcumsumexp({x}, {d})" if draft.dtype != "bfloat16" else f"{x}.cumsum({d})",
        f"{x}.cummax({d}).values",
        f"{x}.flip({d}).cumsum({d}).flip({d}) * 0.1",
        f"torch.diff({x}, dim={d}, prepend={x}.narrow({d}, 0, 1))",
    ), x.shape)  # fmt: skip


def product(draft: Draft, x: Value) -> Value:
    inner = x.shape[-1]
    budget = max(1, 60_000_000 // max(1, x.elements))  # multiplications a value may cost
    if inner > 2048:  # a matrix of that side is no layer
        return elementwise(draft, x)
    outer = draft.integer(1, max(1, min(512, budget, 2 * inner)))
    weight = draft.tensor(outer, inner, scale=round(inner**-0.5, 4))
    shape = (*x.shape[:-1], outer)
    if draft.random.random() < 0.5:
        return draft.let(f"F.linear({x}, {weight}, {draft.tensor(outer)})", shape)
    return draft.let(f"{x} @ {weight}.t()", shape)


def in_place(draft: Draft, x: Value) -> Value:
    y = draft.let(f"{x}.clone()", x.shape)
    last, half = len(x.shape) - 1, max(1, x.shape[-1] // 2)
    for _ in range(draft.integer(1, 4)):
        draft.do(draft.one_of(
            f"{y} *= 0.9", f"{y}.add_({x}, alpha=0.1)", f"{y}[..., :{half}] += 1",
            f"{y}[..., ::2] = {x}[..., ::2] * 2", f"{y}.narrow({last}, 0, {half}).mul_(-1)",
            f"{y}.clamp_(-3, 3)", f"{y}[..., 0] = 0",
        ))  # fmt: skip
    return y


Block = Callable[[Draft, Value], Value]
BLOCKS: dict[str, Block] = {
    "elementwise": elementwise, "broadcast": broadcast, "reduction": reduction,
    "normalization": normalization, "movement": movement, "indexing": indexing, "scan": scan,
    "product": product, "in place": in_place,
}  # fmt: skip
