"""One call of an operator with an OpInfo sample, on a device or in double, and what came of it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

from torch_lazy.conformance.program import synchronize
from torch_lazy.conformance.program_runner import described


@dataclass(frozen=True)
class Mode:
    """How samples are made and run."""

    dtype: torch.dtype = torch.float32
    order: int = 1  # the highest derivatives that are tried; 0: none, 2: gradients of gradients
    autocast: torch.dtype | None = None

    def differentiates(self, op: Any) -> bool:
        has = op.supports_gradgrad if self.order > 1 else op.supports_autograd and self.order > 0
        return has and self.dtype in op.supported_backward_dtypes("cpu")

    def casting(self, device: str) -> contextlib.AbstractContextManager[Any]:
        if self.autocast is None:
            return contextlib.nullcontext()
        return torch.autocast(torch.device(device).type, self.autocast)


FLOAT32 = Mode()


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
    gradients: list[torch.Tensor | None] | None  # with those of second order, first ones before
    error: str | None = None
    gradient_error: str | None = None


def _weighted_sum(tensors: list[Any]) -> torch.Tensor | None:
    """Of all elements: the weights differ, so that no element's error cancels another's."""
    total = None
    for out in tensors:
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
    return total


def _gradients(
    outputs: list[Any], inputs: list[torch.Tensor], order: int
) -> list[torch.Tensor | None]:
    """Gradients of the weighted sum of all outputs, then those of such a sum of them."""
    total = _weighted_sum(outputs)
    if total is None:
        return []
    first: list[torch.Tensor | None] = []
    if order > 1:
        leaves = [t for t in inputs if t.requires_grad]
        first = list(torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True))
        total = _weighted_sum(first)
    if total is not None:
        total.backward()
    return [*(g if g is None else g.detach() for g in first), *(t.grad for t in inputs)]


_WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


def in_double(value: Any) -> Any:
    """The value with tensors and dtypes of single and half precision replaced by double."""

    def widen(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.dtype in _WIDER:
            return leaf.detach().to(_WIDER[leaf.dtype]).requires_grad_(leaf.requires_grad)
        return _WIDER.get(leaf, leaf) if isinstance(leaf, torch.dtype) else leaf

    return tree_map(widen, value)


def call(
    op: Any, sample: Any, device: str, gradients: bool, mode: Mode = FLOAT32, double: bool = False
) -> Run:
    """Runs one sample on fresh copies of its inputs, under a fixed seed."""
    given = (sample.input, sample.args, sample.kwargs)
    value, args, kwargs = on_device(in_double(given) if double else given, device)
    inputs = [t for t in tree_flatten((value, args, kwargs))[0] if isinstance(t, torch.Tensor)]
    torch.manual_seed(1)
    try:
        with mode.casting(device):
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
            run.gradients = _gradients(tree_flatten(differentiable)[0], inputs, mode.order)
            synchronize(device)
        except Exception as error:
            run.gradient_error = described(error)
    return run
