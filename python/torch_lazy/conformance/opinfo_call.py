"""One call of an operator with an OpInfo sample, on a device or in double, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

from torch_lazy.conformance.program import synchronize
from torch_lazy.conformance.program_runner import described


def transfer(t: torch.Tensor, device: str) -> torch.Tensor:
    """A fresh leaf on the device with equal values, sizes, strides and offset, memory gaps and
    overlaps included."""
    if (
        t.layout == torch.strided
        and not t.is_conj()
        and not t.is_neg()
        and not t.is_quantized
        and not t.is_nested
    ):
        whole = t.detach().new_empty(0).set_(t.detach().untyped_storage())
        copy = (
            whole.to(device, copy=True)
            .as_strided(t.size(), t.stride(), t.storage_offset())
            .detach()
        )
    else:
        copy = t.detach().to(device, copy=True)
    return copy.requires_grad_(t.requires_grad)


def on_device(value: Any, device: str) -> Any:
    """The value with tensors moved, and with the CPU as a `device` argument replaced."""

    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return transfer(leaf, device)
        if isinstance(leaf, torch.device) or (isinstance(leaf, str) and leaf == "cpu"):
            return torch.device(device)
        return leaf

    return tree_map(move, value)


@dataclass
class Run:
    """The results of one call: flat outputs, inputs as it left them, their gradients."""

    outputs: list[Any]
    inputs: list[torch.Tensor]
    gradients: list[torch.Tensor | None] | None
    error: str | None = None
    gradient_error: str | None = None


def _backward(outputs: list[Any], inputs: list[torch.Tensor]) -> list[torch.Tensor | None]:
    """Gradients of the weighted sum of all outputs: the weights differ, so that no element's error
    cancels another's."""
    total = None
    for out in outputs:
        if not isinstance(out, torch.Tensor) or not out.requires_grad or out.numel() == 0:
            continue
        out = out.to_dense() if out.layout != torch.strided else out
        out = torch.view_as_real(out) if out.is_complex() else out
        weights = (
            torch.cos(torch.arange(out.numel(), dtype=torch.float64))
            .to(out.dtype)
            .reshape(out.shape)
            .to(out.device)
        )
        part = (out * weights).sum()
        total = part if total is None else total + part
    if total is None:
        return []
    total.backward()
    return [t.grad for t in inputs]


def in_double(value: Any) -> Any:
    """The value with tensors and dtypes of float32 replaced by float64."""

    def widen(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32:
            return leaf.detach().double().requires_grad_(leaf.requires_grad)
        return torch.float64 if leaf == torch.float32 else leaf

    return tree_map(widen, value)


def call(op: Any, sample: Any, device: str, gradients: bool, double: bool = False) -> Run:
    """Runs one sample on fresh copies of its inputs, under a fixed seed."""
    given = (sample.input, sample.args, sample.kwargs)
    value, args, kwargs = on_device(in_double(given) if double else given, device)
    inputs = [t for t in tree_flatten((value, args, kwargs))[0] if isinstance(t, torch.Tensor)]
    torch.manual_seed(1)
    try:
        result = op.op(value, *args, **kwargs)
        if sample.output_process_fn_grad is not None and gradients:
            differentiable = sample.output_process_fn_grad(result)
        else:
            differentiable = result
        synchronize(device)
    except Exception as error:
        return Run([], [], None, described(error))
    run = Run(tree_flatten(result)[0], inputs, None)
    if gradients:
        try:
            run.gradients = _backward(tree_flatten(differentiable)[0], inputs)
            synchronize(device)
        except Exception as error:
            run.gradient_error = described(error)
    return run
