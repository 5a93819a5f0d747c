"""Statements of random programs about what surrounds values: autograd, lifetimes, syncs, copies,
errors."""

from __future__ import annotations

import torch
from program_builder import Builder
from program_catalogue import Made, family, floating

# ---- autograd ----


@family(2)
def leaf(b: Builder) -> Made:
    x = b.pick(floating)
    return f"{b.new()} = {x}.detach().clone().requires_grad_()" if x else None


@family(6)
def backward(b: Builder) -> Made:
    x = b.pick(
        lambda t: (
            t.requires_grad and t.grad_fn is not None and (t.is_floating_point() or t.is_complex())
        )
    )
    if x is None:
        return None
    loss = f"{x}.abs().sum()" if b.at(x).is_complex() else f"{x}.sum()"
    source = b.pick(lambda t: t.requires_grad and t.is_leaf) or x
    forms = [
        f"{loss}.backward()",
        f"({loss} * 0.5).backward(retain_graph=True)",
        f"{x}.backward(torch.ones_like({x}))",
        f"({x} * {x}).sum().abs().backward()",
    ]
    forms += [f"{b.new()}, = torch.autograd.grad({loss}, [{source}], retain_graph=True)"]
    return b.rng.choice(forms)


@family(6)
def use_grad(b: Builder) -> Made:
    x = b.pick(lambda t: t.is_leaf and t.grad is not None)
    if x is None:
        return None
    forms = [
        f"with torch.no_grad(): {x}.sub_({x}.grad, alpha=0.1)",
        f"{x}.grad = None",
        f"{x}.grad.zero_()",
        f"{b.new()} = {x}.grad",
        f"{b.new()} = {x}.grad * 2",
        f"{x}.grad.mul_(0.5)",
    ]
    return b.rng.choice(forms)


@family(1)
def autograd_state(b: Builder) -> Made:
    x = b.pick(lambda t: t.requires_grad)
    if x is None:
        return None
    forms = [
        f"{x}.detach_()",
        f"with torch.no_grad(): {b.new()} = {x} * 2",
        f"{x}.requires_grad_(False)",
    ]
    if not b.at(
        x
    )._is_view():  # on views that became invalid, stock PyTorch's hooks crash the process
        forms.append(f"{x}.register_hook(lambda g: g * 2)")
        if b.at(x).grad_fn is not None:
            forms.append(f"{x}.retain_grad()")
    return b.rng.choice(forms)


# ---- lifetimes, syncs, copies ----


@family(2.5)
def drop(b: Builder) -> Made:
    names = b.live() + b.live(prefix="c")
    return f"del {b.rng.choice(names)}" if len(names) > 4 else None


@family(4)
def sync(b: Builder) -> Made:
    x = b.pick()
    if x is None:
        return None
    y = b.pick() or x
    p = b.new()
    forms = [
        f"observe({x}.sum().item())",
        f"observe({x}.tolist())",
        f"observe(bool(({x} != 0).any()))",
        f"observe(str({x}))",
        f"observe({x}.cpu())",
        f"observe(torch.equal({x}, {y}))",
        "check()",
    ]
    forms += [
        f"{p} = {x} + 1 if ({x} != 0).any() else {x} * 2",
        f"observe(len({x}.nonzero()))",
        f"observe(int(({x} != 0).sum()))",
        f"{p} = {x} * ({x} != 0).sum().item()",
        f"observe({x}.unique())" if not b.at(x).is_complex() else "check()",
    ]
    return b.rng.choice(forms)


@family(3)
def copies(b: Builder) -> Made:
    x = b.pick()
    c = b.pick(prefix="c")
    if x is None:
        return None
    if c is None or b.chance(0.4):
        return f"{b.new('c')} = {x}{'.detach()' if b.chance(0.5) else ''}.to('cpu', copy=True)"
    shape = b.at(c).shape
    same = b.pick(lambda t: t.shape == shape) or x
    forms = [
        f"{b.new()} = {c}.to(device, copy=True)",
        f"{same}.copy_({c}, non_blocking=True)",
        f"{c}.copy_({same})",
        f"{c}.add_(1)",
        f"{c}.zero_()",
        f"{b.new()} = {c}.to(device, torch.float64, copy=True)",
    ]
    return b.rng.choice(forms)


# ---- errors ----


@family(1.2, keep_errors=True)
def illegal(b: Builder) -> Made:
    x = b.pick()
    if x is None or b.errors_left == 0:
        return None
    t = b.at(x)
    forms = [
        f"{x}.view(7, 11, 13)",
        f"{x} + torch.zeros(7, 11, device=device)",
        f"{x}.transpose(0, 9)",
        f"{x}.select(5, 0)",
        f"{x}.expand(2, 3, 7, 9, 11)",
        f"torch.mm({x}, torch.zeros(97, 2, device=device))",
        f"torch.cat([{x}, torch.zeros(1, 1, 1, 1, 1, device=device)])",
    ]
    forms += [
        f"{x}.add_(torch.zeros(9, 9, 9, device=device))",
        f"{x}.as_strided((100000,), (1,))",
        f"{x}.narrow(0, 50, 3)",
        f"{x}.squeeze(11)",
        f"{x}[torch.zeros(9, 9, 9, dtype=torch.bool, device=device)]",
        f"torch.layer_norm({x}, (99,))",
    ]
    if t.dtype == torch.bool:
        forms += [f"{x} - {x}", f"-{x}"]
    if not t.is_floating_point() and not t.is_complex():
        forms += [
            f"{x}.sigmoid_()",
            f"{x}.requires_grad_()",
            f"{x}.mean()",
            f"{x}.add_(0.5)",
            f"torch.mm({x}, torch.zeros(3, 3, device=device))",
        ]
    if t.is_leaf and t.requires_grad:
        forms += [f"{x}.add_(1)", f"{x}[...] = 2", f"{x}.resize_(0)"]
    if not t.requires_grad:
        forms += [f"{x}.sum().backward()"]
    return b.rng.choice(forms)
