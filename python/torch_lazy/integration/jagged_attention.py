"""``scaled_dot_product_attention`` of jagged nested tensors on device ``lazy``.

PyTorch chooses between CUDA's kernels and a path through strided nested tensors, whose operators
run at the call. Here sequences are padded and what is beyond their ends is masked, so that
attention is the device's own. As CUDA's kernels, and other than the CPU's path, it knows
``is_causal``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch.nn import functional

from torch_lazy.integration.at_import import when_imported


def _padded(nested: Any) -> torch.Tensor:
    """Sequences as rows, ``(batch, heads, length, width)``, zero beyond their ends."""
    return torch.nested.to_padded_tensor(nested.transpose(1, 2), 0.0).transpose(1, 2)


def _mask(key: Any, shape: tuple[int, int], is_causal: bool) -> torch.Tensor:
    """Where a query looks at a key, ``(batch, 1, *shape)``.

    A sequence without keys counts as one zero: attention to it is zero, as it should be, and not
    what a softmax over nothing is.
    """
    columns = torch.arange(shape[1], device=key.device)
    mask = columns < key.offsets().diff().clamp(min=1)[:, None, None, None]
    if is_causal:
        mask = mask & (columns <= torch.arange(shape[0], device=key.device)[:, None])
    return mask.expand(-1, -1, *shape)


def _attention(
    query: Any, key: Any, value: Any, dropout_p: float, is_causal: bool, **rest: Any
) -> torch.Tensor:
    from torch.nested._internal.nested_tensor import nested_from_padded

    rows = [_padded(nested) for nested in (query, key, value)]
    attended = functional.scaled_dot_product_attention(
        *rows,
        attn_mask=_mask(key, (rows[0].size(2), rows[1].size(2)), is_causal),
        dropout_p=dropout_p,
        **rest,
    )
    packed = nested_from_padded(
        attended.transpose(1, 2), query.offsets(), sum_S=query.values().size(1)
    )
    return packed.transpose(1, 2)


def _is_attention_of_sequences(*tensors: Any) -> bool:
    """Of lazy tensors ``(batch, heads, length, width)`` without gaps between sequences."""
    return all(
        tensor.device.type == "lazy"
        and tensor.dim() == 4
        and getattr(tensor, "_ragged_idx", None) == 2
        and tensor.lengths() is None
        for tensor in tensors
    )


def _with_lazy(original: Callable[..., torch.Tensor], sdpa: ModuleType) -> Callable[..., Any]:
    @functools.wraps(original)
    def attention(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        **rest: Any,
    ) -> torch.Tensor:
        if not _is_attention_of_sequences(query, key, value):
            return original(query, key, value, attn_mask, dropout_p, is_causal, **rest)
        query, key, value, attn_mask = sdpa._autocast(query, key, value, attn_mask)
        sdpa._validate_sdpa_input(query, key, value, attn_mask, dropout_p, is_causal)
        return _attention(query, key, value, dropout_p, is_causal, **rest)

    return attention


def _replace(operators: ModuleType) -> None:
    from torch.nested._internal import sdpa

    name = "jagged_scaled_dot_product_attention"
    if hasattr(operators, name):
        setattr(operators, name, _with_lazy(getattr(operators, name), sdpa))


def install() -> None:
    """Replaces what jagged tensors call for attention, once PyTorch has imported it."""
    when_imported("torch.nested._internal.ops", _replace)
