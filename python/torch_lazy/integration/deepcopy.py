"""``copy.deepcopy`` of lazy tensors keeps what shares memory together, as on the CPU and CUDA.

``Tensor.__deepcopy__`` counts lazy tensors among those without a storage and clones each by itself:
after it, a view and its base are two tensors. A lazy tensor has a storage, so here the storage is
copied, once however many tensors of the copied object are on it.
"""

from __future__ import annotations

import copy
import copyreg
import functools
from collections.abc import Callable
from typing import Any

import torch

from torch_lazy.integration.storage import has_buffer

_Memo = dict[int, Any]


def _has_lazy_storage(tensor: torch.Tensor) -> bool:
    return (
        tensor.device.type == "lazy"
        and tensor.layout is torch.strided
        and not tensor.is_nested
        and torch._C._has_storage(tensor)
        and has_buffer(tensor.untyped_storage())
    )


def _copy_of_storage(tensor: torch.Tensor, memo: _Memo) -> torch.Tensor:
    storage = tensor._typed_storage()._deepcopy(memo)
    # A quantized tensor is copied for its quantizer.
    copied = tensor.clone() if tensor.is_quantized else tensor.new_empty([])
    if type(copied) is not type(tensor):
        raise RuntimeError(
            f"cannot copy a {type(tensor).__name__}: its new_empty() returned a "
            f"{type(copied).__name__}. Let new_empty() return the subclass, or give the subclass a "
            "__deepcopy__ of its own"
        )
    copied.set_(storage, tensor.storage_offset(), tensor.size(), tensor.stride())
    # The storage of a conjugate or negative view has the values without it.
    if tensor.is_conj():
        copied = copied.conj_physical()
    if tensor.is_neg():
        copied = copied.neg()
    return copied


def _copy_attributes(tensor: torch.Tensor, copied: torch.Tensor, memo: _Memo) -> None:
    if type(tensor) is not torch.Tensor:  # a plain tensor has no slots
        for slot in copyreg._slotnames(type(tensor)):  # type: ignore[attr-defined]
            if hasattr(tensor, slot):
                setattr(copied, slot, copy.deepcopy(getattr(tensor, slot), memo))
    tensor._clear_non_serializable_cached_data()
    copied.__dict__ = copy.deepcopy(tensor.__dict__, memo)


def _deepcopy(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(original)
    def __deepcopy__(self: torch.Tensor, memo: _Memo) -> torch.Tensor:
        # PyTorch's function first where the tensor answers for itself, or refuses.
        if (
            torch.overrides.has_torch_function_unary(self)
            or not self.is_leaf
            or id(self) in memo
            or not _has_lazy_storage(self)
        ):
            return original(self, memo)
        with torch.no_grad():
            copied = _copy_of_storage(self, memo)
            if self.requires_grad:
                copied.requires_grad_()
            if self.grad is not None:
                copied.grad = self.grad.__deepcopy__(memo)
            _copy_attributes(self, copied, memo)
            memo[id(self)] = copied
            return copied

    return __deepcopy__


def install() -> None:
    """Wraps ``torch.Tensor.__deepcopy__``."""
    torch.Tensor.__deepcopy__ = _deepcopy(torch.Tensor.__deepcopy__)
