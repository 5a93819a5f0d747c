"""The statements of random fusion programs: what the kernel generator fuses. Each function draws
operands and offers a statement or two to the program.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from fusion_builder import SIZES, Builder

Statement = Callable[[Builder], None]
SMOOTH: list[tuple[float, Statement]] = []  # also for programs with a backward
OTHER: list[tuple[float, Statement]] = []


def _smooth(weight: float) -> Callable[[Statement], Statement]:
    return lambda statement: (SMOOTH.append((weight, statement)), statement)[1]


def _other(weight: float) -> Callable[[Statement], Statement]:
    return lambda statement: (OTHER.append((weight, statement)), statement)[1]


_UNARY = [
    "{}.neg()",
    "{}.tanh()",
    "{}.sigmoid()",
    "{}.sin()",
    "{}.cos()",
    "{}.clamp(-3, 3).exp()",
    "{}.square()",
    "({}.square() + 0.5).log()",
    "({}.square() + 0.5).sqrt()",
    "({}.square() + 0.5).rsqrt()",
    "({}.square() + 1).reciprocal()",
    "F.gelu({})",
    "F.gelu({}, approximate='tanh')",
    "F.silu({})",
    "F.softplus({})",
    "F.mish({})",
    "{}.erf()",
    "{}.clamp(-4, 4).sinh()",
    "{}.atan()",
    "torch.log1p({}.square())",
    "{}.clamp(max=2).expm1()",
    "({} * 1.5 + 0.25)",
    "({} - 2)",
    "(1 - {})",
    "({} / 3)",
]


@_smooth(6)
def _unary(b: Builder) -> None:
    if x := b.pick_float():
        b.add(b.rng.choice(_UNARY).format(x))


@_smooth(8)
def _binary(b: Builder) -> None:
    x = b.pick()
    y = b.pick_shaped(b.names[x].shape)
    if y is None:
        return
    form = b.rng.choice(
        [
            "{} + {}",
            "{} - {}",
            "{} * {}",
            "{} / ({}.square() + 1)",
            "torch.add({}, {}, alpha=2)",
            "torch.lerp({}, {}, 0.3)",
            "torch.atan2({}, {}.square() + 1)",
            "torch.hypot({}, {}.cos() + 2)",
            "torch.addcmul({0}, {1}, {0}, value=0.5)",
            "torch.addcdiv({0}, {1}, {0}.square() + 1)",
        ]
    )
    b.add(form.format(x, y))


def _dims(b: Builder, name: str) -> str:
    count = b.names[name].dim()
    if count == 0:
        return "0"
    chosen = sorted(b.rng.sample(range(count), b.rng.randint(1, count)))
    if b.chance(0.3):
        chosen = [d - count for d in chosen]
    return str(chosen[0]) if len(chosen) == 1 else str(tuple(chosen))


@_smooth(5)
def _reduce(b: Builder) -> None:
    x = b.pick()
    keep = b.rng.choice(["", ", keepdim=True", ", keepdim=True"])
    forms = ["{}.sum({}{})", "{}.mean({}{})", "{}.logsumexp({}{})", "{}.var({}, unbiased=False{})"]
    if not b.is_float(x):
        forms = ["{}.sum({}{})", "{}.sum({}, dtype=torch.float32{})"]
    b.add(b.rng.choice(forms).format(x, _dims(b, x), keep))


@_smooth(4)
def _normalize(b: Builder) -> None:
    x = b.pick(lambda n: b.is_float(n) and b.names[n].dim() > 0)
    if x is None:
        return
    t = b.names[x]
    d = b.rng.randrange(-t.dim(), t.dim())
    form = b.rng.choice(
        [
            "F.softmax({x}, {d})",
            "F.log_softmax({x}, {d})",
            "F.layer_norm({x}, {last}, eps=0.1)",
            "{x} * torch.rsqrt({x}.square().mean({d}, keepdim=True) + 0.1)",
            "{x} - {x}.mean({d}, keepdim=True)",
            "{x} / ({x}.abs().sum({d}, keepdim=True) + 1)",
            "F.rms_norm({x}, {last}, eps=0.1)",
            "({x} - {x}.mean({d}, keepdim=True)) "
            "/ ({x}.var({d}, unbiased=False, keepdim=True) + 0.1).sqrt()",
        ]
    )
    last = list(t.shape[-b.rng.randint(1, t.dim()) :])
    b.add(form.format(x=x, d=d, last=last))


@_smooth(6)
def _view(b: Builder) -> None:
    x = b.pick()
    t = b.names[x]
    n = t.dim()
    forms = [f"{x}.unsqueeze({b.rng.randint(-n - 1, n)})", f"{x}.squeeze()", f"{x}.flatten()"]
    if n:
        d = b.rng.randrange(-n, n)
        size = t.shape[d]
        forms += [f"{x}.reshape(-1)", f"{x}.unflatten({d}, (-1, {b.rng.choice([1, 2, 3, 8])}))"]
        forms += [f"{x}.select({d}, {b.rng.randrange(size)})"]
        first = b.rng.randrange(size)
        forms += [f"{x}.narrow({d}, {first}, {b.rng.randint(1, size - first)})"] * 2
        forms += [f"{x}.chunk(2, {d})[{b.rng.randrange(2)}]"] * 2
        forms += [f"{x}[{b.rng.randrange(2)}::{b.rng.choice([2, 3])}]"]
        forms += [f"{x}.flip({d})", f"{x}.contiguous()", f"{x}.unfold({d}, {min(2, size)}, 1)"]
    if n > 1:
        forms += [f"{x}.transpose({b.rng.randrange(n)}, {b.rng.randrange(n)})"] * 3
        forms += [f"{x}.permute({b.rng.sample(range(n), n)})", f"{x}.mT", f"{x}.diagonal()"]
        forms += [f"{x}.reshape({b.rng.choice([-1, t.shape[-1]])}, {t.shape[0]})"]
    forms += [f"{x}.expand({b.rng.choice([1, 2, 3])}, {', '.join(['-1'] * n)})"]
    ones = [d for d in range(n) if t.shape[d] == 1]
    if ones:
        sizes = [str(b.rng.choice([2, 17])) if d in ones else "-1" for d in range(n)]
        forms += [f"{x}.expand({', '.join(sizes)})"] * 3
    b.add(b.rng.choice(forms), exact=True)


@_smooth(2)
def _join(b: Builder) -> None:
    x = b.pick(lambda n: b.names[n].dim() > 0)
    if x is None:
        return
    t = b.names[x]
    d = b.rng.randrange(t.dim())

    def fits(name: str) -> bool:
        o = b.names[name]
        return o.dim() == t.dim() and all(
            o.shape[i] == t.shape[i] for i in range(t.dim()) if i != d
        )

    pieces = [x, *(b.pick(fits) for _ in range(b.rng.randint(1, 2)))]
    if b.chance(0.3):
        pieces = [x, b.pick(lambda n: b.names[n].shape == t.shape)]
        b.add(f"torch.stack(({', '.join(pieces)}), {b.rng.randint(0, t.dim())})", exact=True)
        return
    wrapped = [f"{p} * 2" if b.chance(0.3) else p for p in pieces]
    b.add(f"torch.cat(({', '.join(wrapped)}), {d})", exact=wrapped == pieces)


@_smooth(3)
def _gather(b: Builder) -> None:
    x = b.pick(lambda n: b.names[n].dim() > 0)
    if x is None:
        return
    d = b.rng.randrange(b.names[x].dim())
    size = b.names[x].shape[d]

    def is_index(name: str) -> bool:
        i = b.names[name]
        return i.dtype == torch.int64 and b.is_exact(name) and name != x

    i = b.pick(is_index)
    if i is None:
        return
    index = f"{i}.remainder({size})"
    forms = [f"{x}.index_select({d}, {index}.reshape(-1))"]
    if d == 0 and b.names[x].dim() == 2:
        forms += [f"F.embedding({index}, {x})"] * 2
    if b.names[i].dim() == b.names[x].dim():
        forms += [f"{x}.gather({d}, {index})"] * 2
    # Indexing by a tensor of no dimensions reads the number, and what follows depends on it.
    if d == 0 and b.names[i].dim() and b.chance(0.3):
        forms = [f"{x}[{index}]"]
    b.add(b.rng.choice(forms), exact=True)


@_smooth(2)
def _where(b: Builder) -> None:
    x = b.pick()
    y = b.pick_shaped(b.names[x].shape)
    c = b.pick(lambda n: b.is_exact(n) and not b.names[n].requires_grad)
    if c is None or y is None:
        return
    mask = b.rng.choice(
        ["{} > 0.3", "{} <= -0.2", "{} != 1", "~({} < 0)", "({0} > -1) & ({0} < 1)"]
    )
    form = b.rng.choice(
        ["torch.where({m}, {x}, {y})", "torch.where({m}, {x}, 0)", "{x}.masked_fill({m}, -1)"]
    )
    b.add(form.format(m=mask.format(c), x=x, y=y), exact=True)


@_other(2)
def _compare(b: Builder) -> None:
    x = b.pick(b.is_exact)
    y = b.pick_shaped(b.names[x].shape) if x else None
    if y and b.is_exact(y):
        op = b.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        b.add(f"{x} {op} {b.rng.choice([y, y, '0.5', '1'])}", exact=True)


@_other(2)
def _select(b: Builder) -> None:
    """What picks one of its operands."""
    x = b.pick()
    y = b.pick_shaped(b.names[x].shape)
    forms = [f"{x}.abs()", f"F.relu({x})", f"{x}.clamp(-1, 2)", f"{x}.clamp(min=0.5)"]
    forms += [f"F.leaky_relu({x})", f"F.hardtanh({x})"]
    if y:
        forms += [f"torch.maximum({x}, {y})", f"torch.minimum({x}, {y})"] * 2
    b.add(b.rng.choice(forms), exact=True)


@_other(3)
def _select_along(b: Builder) -> None:
    x = b.pick(lambda n: b.names[n].dim() > 0)
    if x is None:
        return
    keep = b.rng.choice(["", ", keepdim=True"])
    form = b.rng.choice(["{}.amax({}{})", "{}.amin({}{})"])
    b.add(form.format(x, _dims(b, x), keep), exact=True)
    if b.is_exact(x) and b.chance(0.3):
        d = b.rng.randrange(b.names[x].dim())
        b.add(
            b.rng.choice(
                [
                    f"{x}.argmax({d}{keep})",
                    f"({x} > 0).any({d}{keep})",
                    f"({x} > -2).all({d}{keep})",
                    f"{x}.max({d}{keep}).values",
                ]
            ),
            exact=True,
        )


@_other(4)
def _cast(b: Builder) -> None:
    x = b.pick()
    dtype = b.rng.choice(
        ["float32", "float32", "float64", "bfloat16", "float16", "int64", "int32", "bool", "uint8"]
    )
    if dtype == "uint8" and b.is_float(x):
        x += ".abs()"  # what a negative number becomes is not defined
    b.add(f"{x}.to(torch.{dtype})", exact=True)


@_other(3)
def _integers(b: Builder) -> None:
    x = b.pick(lambda n: not b.is_float(n))
    if x is None:
        return
    y = b.pick(lambda n: not b.is_float(n) and b.names[n].shape == b.names[x].shape)
    form = b.rng.choice(
        [
            "{0} * 3",
            "{0} + {1}",
            "{0} * {1}",
            "{0} // 3",
            "{0} % 5",
            "{0} & {1}",
            "{0} ^ {1}",
            "-{0}",
            "~{0}",
            "{0} / 4",
            "{0} << 1",
            "{0} >> 1",
            "{0}.float() * 0.5",
            "{0}.cumsum(0)",
        ]
    )
    b.add(form.format(x, y))


@_other(1)
def _rounded(b: Builder) -> None:
    x = b.pick(lambda n: b.is_exact(n) and b.is_float(n))
    if x:
        forms = ["{}.floor()", "{}.ceil()", "{}.round()", "{}.trunc()", "{}.sign()", "{}.isnan()"]
        b.add(b.rng.choice(forms).format(x), exact=True)


@_other(1)
def _made(b: Builder) -> None:
    x = b.pick()
    n = b.rng.choice(SIZES)
    b.add(
        b.rng.choice(
            [
                f"torch.zeros_like({x})",
                f"torch.full_like({x}, 2)",
                f"{x}.new_ones({n})",
                f"torch.arange({n}, device=i0.device)",
                f"torch.arange({n}, device=i0.device) * 0.5",
                f"torch.full(({n}, 1), 0.5, device=i0.device)",
            ]
        ),
        exact=True,
    )


@_other(5)
def _in_place(b: Builder) -> None:
    x = b.pick(lambda n: n.startswith("i")) if b.chance(0.4) else b.pick()
    y = b.pick_shaped(b.names[x].shape)
    t = b.names[x]
    target = x
    if t.dim() and b.chance(0.5):
        d = b.rng.randrange(t.dim())
        first = b.rng.randrange(t.shape[d])
        target = b.rng.choice(
            [
                f"{x}.narrow({d}, {first}, {b.rng.randint(1, t.shape[d] - first)})",
                f"{x}.select({d}, {first})",
                f"{x}[::2]",
                f"{x}.transpose(0, {d})",
            ]
        )
    forms = [
        (f"{target}.mul_(2)", False),
        (f"{target}.add_(1)", False),
        (f"{target}.zero_()", True),
    ]
    forms += [
        (f"{target}.fill_(3)", True),
        (f"{target}.neg_()", True),
        (f"{target}.tanh_()", False),
    ]
    if y:
        forms += [(f"{target}.copy_({y})", True), (f"{target}.add_({y})", False)] * 2
        forms += [(f"{target}.mul_({y})", False), (f"{target}.sub_({y}, alpha=0.5)", False)]
    c = b.pick(lambda n: b.is_exact(n) and b.names[n].shape == t.shape)
    if c:
        forms += [(f"{x}.masked_fill_({c} > 0.5, 1)", True)]
    b.write(x, *b.rng.choice(forms))
