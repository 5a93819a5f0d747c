"""The families of programs that unseen.py draws from. Each writes one program into a draft."""

from __future__ import annotations

from collections.abc import Callable

from unseen_blocks import BLOCKS, elementwise
from unseen_draft import Draft, Value


def blocks(draft: Draft) -> None:
    """One kind of block, or two of them with something between."""
    x = draft.tensor(*draft.shape(draft.integer(1, 4)))
    block = BLOCKS[draft.family]
    y = block(draft, x)
    if draft.random.random() < 0.5:
        y = block(draft, elementwise(draft, y))
    draft.finish(y)


def mixed(draft: Draft) -> None:
    x = draft.tensor(*draft.shape(draft.integer(2, 3)))
    for _ in range(draft.integer(3, 8)):
        x = draft.random.choice(list(BLOCKS.values()))(draft, x)
    draft.finish(x)


def pairs(draft: Draft) -> None:
    """All pairs of rows: distances, kernels, forces of particles, boxes that overlap."""
    n, d = max(2, int(draft.elements**0.5)), draft.integer(1, 4)
    x = draft.tensor(n, d)
    kind = draft.one_of("kernel", "forces", "cdist", "boxes")
    if kind == "kernel":
        draft.let(f"(({x}[:, None] - {x}[None]) ** 2).sum(-1)", (n, n))
        k = draft.let(f"torch.exp(-v{draft.names} * {draft.number(0.1, 1)})", (n, n))
        draft.finish(draft.let(f"{k} @ {draft.tensor(n, 3)}", (n, 3)))
    elif kind == "forces":
        delta = draft.let(f"{x}[:, None] - {x}[None]")
        squared = draft.let(f"{delta}.square().sum(-1) + 0.05")
        draft.finish(draft.let(f"({delta} * ({squared} ** -1.5)[..., None]).sum(1)", (n, d)))
    elif kind == "cdist":
        draft.finish(draft.let(f"torch.cdist({x}.float(), {x}.float() + 1).amin(1)", (n,)))
    else:
        low, size = draft.positive(n, 2), draft.positive(n, 2)
        high = draft.let(f"{low} + {size}")
        top = draft.let(f"torch.minimum({high}[:, None], {high}[None])")
        inter = draft.let(f"(({top}) - torch.maximum({low}[:, None], {low}[None])).clamp(min=0)"
                          ".prod(-1)")  # fmt: skip
        area = draft.let(f"{size}.prod(-1)")
        iou = draft.let(f"{inter} / ({area}[:, None] + {area}[None] - {inter})")
        draft.result(iou, draft.let(f"({iou} > 0.5).sum(1)"))


def recurrence(draft: Draft) -> None:
    """A Python loop over time: filters, cells, averages."""
    steps = draft.integer(3, 40)
    batch, width = draft.shape(2, max(1, draft.elements // steps))
    width = min(width, 192)
    x = draft.tensor(steps, batch, width)
    kind = draft.one_of("filter", "cell", "gated", "in place", "average")
    h = draft.let(f"torch.zeros_like({x}[0])", (batch, width))
    weight = draft.tensor(width, width, scale=round(0.5 * width**-0.5, 4))
    body = {
        "filter": f"    {h} = 0.9 * {h} + 0.1 * {x}[t]\n    outs.append({h})",
        "cell": f"    {h} = torch.tanh({x}[t] + {h} @ {weight})\n    outs.append({h})",
        "gated": f"    z = torch.sigmoid({x}[t] + {h} @ {weight})\n"
                 f"    {h} = z * {h} + (1 - z) * {x}[t].tanh()\n    outs.append({h})",
        "in place": "    y[t] += 0.5 * y[t - 1]\n    y[t].clamp_(-2, 2)\n    outs.append(y[t])",
        "average": f"    {h} = torch.lerp({h}, {x}[t], 1 / (t + 1))\n"
                   f"    outs.append(({x}[t] - {h}).square().mean())",
    }[kind]  # fmt: skip
    if kind == "in place":
        draft.do(f"y = {x}.detach().clone()")
        draft.train = False
    draft.do(f"outs = []\nfor t in range(1, {steps}):\n{body}")
    draft.finish(draft.let("torch.stack(outs)"))


def stencil(draft: Draft) -> None:
    """Grids that are stepped in time, by slices, rolls or convolutions."""
    rows, columns = draft.shape(2)
    rows, columns = max(4, rows), max(4, columns)
    u = draft.tensor(rows, columns, leaf=False)
    kind = draft.one_of("slices", "roll", "conv", "in place", "life")
    repeats = draft.integer(1, 6)
    if kind == "life":
        cells = draft.make(f"(torch.rand({rows}, {columns}) < 0.3).int()")
        near = " + ".join(f"torch.roll(c, ({i}, {j}), (0, 1))"
                          for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)  # fmt: skip
        draft.do(f"c = {cells}", f"for _ in range({repeats}):\n    n = {near}\n"
                 "    c = ((n == 3) | ((n == 2) & (c == 1))).int()")  # fmt: skip
        draft.result("c")
        return
    draft.do(f"u = {u}.clone()")
    draft.do(f"for _ in range({repeats}):\n    " + {
        "slices": "u = F.pad(u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] "
                  "+ u[1:-1, :-2] - 4 * u[1:-1, 1:-1]), (1, 1, 1, 1))",
        "roll": "u = u + 0.1 * (torch.roll(u, 1, 0) + torch.roll(u, -1, 0) "
                "+ torch.roll(u, 1, 1) + torch.roll(u, -1, 1) - 4 * u)",
        "conv": "u = u + 0.1 * F.conv2d(u[None, None].float(), torch.ones(1, 1, 3, 3, "
                "device=u.device), padding=1)[0, 0].to(u.dtype).tanh()",
        "in place": "u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] - 2 * u[1:-1, 1:-1])",
    }[kind])  # fmt: skip
    draft.result("u", draft.let("u.float().square().mean()"))


def particles(draft: Draft) -> None:
    """State that a step moves in place: positions, velocities, walls."""
    n = max(1, draft.elements // 3)
    x, v = draft.tensor(n, 3, leaf=False), draft.tensor(n, 3, leaf=False)
    dt = draft.number(0.001, 0.1)
    # Without friction, which would end in numbers too small to be normal.
    draft.do(f"force = -{x} * {draft.number(0.1, 2)}")
    if draft.random.random() < 0.5:
        draft.do(f"r = {x}.norm(dim=1, keepdim=True) + 0.1", f"force = force - {x} / r ** 3")
    draft.do(f"{v}.add_(force, alpha={dt})", f"{x}.add_({v}, alpha={dt})")
    if draft.random.random() < 0.6:
        draft.do(f"hit = {x}.abs() > 3", f"{v}.copy_(torch.where(hit, -{v}, {v}))",
                 f"{x}.clamp_(-3, 3)")  # fmt: skip
    draft.result(x, v, draft.let(f"({v}.float() ** 2).sum()"))


def integers(draft: Draft) -> None:
    """Hashes, bit tricks, histograms, masks."""
    kind = draft.one_of("hash", "bits", "histogram", "masks", "arithmetic")
    dtype = draft.one_of("int32", "int64", "int64", "uint8")
    shape = draft.shape(draft.integer(1, 3))
    x = f"{draft.integers(200, *shape)}"
    x = draft.make(f"{x}.to(torch.{dtype})")
    y = draft.make(f"torch.randint(1, 100, {list(shape)}).to(torch.{dtype})")
    if kind == "hash":
        draft.do(f"h = {x} * 31 + {y}")
        for shift in (3, 5, 7)[: draft.integer(1, 3)]:
            draft.do(f"h = (h ^ (h >> {shift})) * {draft.integer(3, 101)}")
        draft.result("h", draft.let("h % 64"))
    elif kind == "bits":
        draft.do("c = " + " + ".join(f"(({x} >> {b}) & 1)" for b in range(draft.integer(2, 8))))
        draft.result("c", draft.let(f"(({x} & {y}) == 0).sum()"))
    elif kind == "histogram":
        draft.result(draft.let(f"torch.bincount({x}.flatten().long(), minlength=256)"))
        draft.result(draft.let(f"torch.zeros(256, device={x}.device).index_add(0, "
                               f"{x}.flatten().long(), {y}.flatten().float())"))  # fmt: skip
    elif kind == "masks":
        mask = draft.let(f"({x} > 100) & ({y} < 50) | ({x} == {y})")
        draft.result(draft.let(f"{mask}.sum()"), draft.let(f"torch.where({mask}, {x}, {y})"))
        if draft.random.random() < 0.5:
            draft.result(draft.let(f"{x}[{mask}].sum()"))
    else:
        draft.result(draft.let(f"({x} // {y}) + {x} % {y}"))
        draft.result(draft.let(f"torch.gcd({x}.long(), {y}.long())"))


def sampling(draft: Draft) -> None:
    """Choices among many: top k, top p, inverse of a distribution, Gumbel."""
    batch, words = draft.shape(2)
    words = max(8, words)
    logits = draft.tensor(batch, words, leaf=False)
    kind = draft.one_of("top k", "top p", "inverse", "gumbel", "beam")
    k = min(words, draft.integer(1, 50))
    p = draft.let(f"F.softmax({logits}.float() / {draft.number(0.5, 1.5)}, -1)")
    if kind == "top k":
        values = draft.let(f"torch.topk({logits}, {k}, -1).values[..., -1:]")
        cut = draft.let(f"{logits}.masked_fill({logits} < {values}, -float('inf'))")
        draft.result(draft.let(f"F.softmax({cut}, -1)"))
    elif kind == "top p":
        draft.do(f"s, i = {p}.sort(-1, descending=True)", "keep = s.cumsum(-1) - s < 0.9")
        draft.result(draft.let("torch.zeros_like(s).scatter(-1, i, s * keep)"))
    elif kind == "inverse":
        u = draft.let(f"torch.rand({batch}, 1, device=device)")
        draft.result(draft.let(f"({p}.cumsum(-1) < {u}).sum(-1).clamp(max={words - 1})"))
    elif kind == "gumbel":
        u = draft.let(f"torch.rand({batch}, {words}, device=device).clamp(1e-9, 1 - 1e-7)")
        draft.result(draft.let(f"({p}.log() - (-{u}.log()).log()).softmax(-1)"))
    else:
        score = draft.tensor(batch, 1, leaf=False)
        total = draft.let(f"({score} + {p}.clamp(min=1e-9).log()).flatten()")
        top = draft.let(f"torch.topk({total}, {min(k, batch * words)})")
        draft.result(draft.let(f"{top}.values"), draft.let(f"{top}.indices // {words}"))


def algebra(draft: Draft) -> None:
    """Small systems and products, many at once or iterated."""
    n = draft.integer(2, 48)
    batch = max(1, min(draft.elements, 200_000) // (n * n))
    if draft.dtype == "bfloat16":
        draft.dtype = "float32"
    a = draft.tensor(batch, n, n, scale=round(n**-0.5, 4))
    kind = draft.one_of("solve", "cholesky", "power", "newton", "einsum", "covariance")
    if kind == "solve":
        rhs = draft.tensor(batch, n, 2)
        draft.finish(draft.let(f"torch.linalg.solve({a} + 4 * torch.eye({n}, device=device, "
                               f"dtype={a}.dtype), {rhs})"))  # fmt: skip
    elif kind == "cholesky":
        spd = draft.let(f"{a} @ {a}.mT + torch.eye({n}, device=device, dtype={a}.dtype)")
        root = draft.let(f"torch.linalg.cholesky({spd})")
        draft.finish(draft.let(f"{root}.diagonal(dim1=-2, dim2=-1).log().sum(-1)"))
    elif kind == "power":
        v = draft.let(f"torch.ones({batch}, {n}, 1, device=device, dtype={a}.dtype)")
        draft.do(f"for _ in range({draft.integer(2, 12)}):\n    {v} = {a} @ {v}\n"
                 f"    {v} = {v} / ({v}.norm(dim=1, keepdim=True) + 1e-3)")  # fmt: skip
        draft.finish(v)
    elif kind == "newton":
        x = draft.let(f"{a} / ({a}.square().sum((-2, -1), keepdim=True).sqrt() + 1e-3)")
        draft.do(f"for _ in range({draft.integer(1, 5)}):\n"
                 f"    {x} = 1.5 * {x} - 0.5 * {x} @ ({x}.mT @ {x})")  # fmt: skip
        draft.finish(x)
    elif kind == "einsum":
        b = draft.tensor(batch, n, scale=0.5)
        draft.finish(draft.let(f"torch.einsum('bij,bj,bi->b', {a}, {b}, {b}).tanh()"))
    else:
        c = draft.let(f"{a} - {a}.mean(1, keepdim=True)")
        draft.finish(draft.let(f"torch.bmm({c}.mT, {c}) / {n}"))


Family = Callable[[Draft], None]
FAMILIES: dict[str, Family] = {
    **dict.fromkeys(BLOCKS, blocks),
    "mixed": mixed, "pairs": pairs, "recurrence": recurrence, "stencil": stencil,
    "particles": particles, "integers": integers, "sampling": sampling, "algebra": algebra,
}  # fmt: skip

__all__ = ["FAMILIES", "Family", "Value"]
