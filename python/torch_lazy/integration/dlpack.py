"""DLPack: other libraries see memory of the execution device, shared with the lazy tensor.

What a capsule says is for them. ``torch.from_dlpack`` and ``torch.asarray`` make a lazy tensor of
it, as of the tensor itself, because it carries a mark.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.utils.dlpack

_dlpack = torch.Tensor.__dlpack__
_dlpack_device = torch.Tensor.__dlpack_device__
_to_dlpack = torch.utils.dlpack.to_dlpack
_from_dlpack = torch.utils.dlpack.from_dlpack


def _check_exportable(tensor: torch.Tensor) -> None:
    """Raises for what a capsule has no words for, as PyTorch does for tensors of other devices."""
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach() before")
    if tensor.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    if tensor.layout != torch.strided:
        raise BufferError("Can't export tensors with layout other than torch.strided")
    if tensor.is_nested:
        raise BufferError("Can't export nested tensors")
    if tensor.is_quantized:
        raise BufferError("QUInt/QInt types are not supported by dlpack")


def _lazy_dlpack(self: torch.Tensor, **kwargs: Any) -> Any:
    if self.device.type != "lazy":
        return _dlpack(self, **kwargs)
    _check_exportable(self)
    from torch_lazy import _C

    capsule = _dlpack(_C.export_inner(self), **kwargs)
    _C.mark_capsule(capsule)
    return capsule


def _lazy_dlpack_device(self: torch.Tensor) -> Any:
    if self.device.type != "lazy":
        return _dlpack_device(self)
    from torch_lazy import _C

    return _dlpack_device(torch.empty(0, device=f"{_C.execution_device()}:{self.device.index}"))


def _lazy_to_dlpack(tensor: torch.Tensor) -> Any:
    # Unlike the method it does not ask for a gradient.
    return _to_dlpack(tensor) if tensor.device.type != "lazy" else _lazy_dlpack(tensor.detach())


def _lazy_from_dlpack(
    ext_tensor: Any,
    *,
    device: torch.device | str | None = None,
    copy: bool | None = None,
) -> torch.Tensor:
    from torch_lazy import _C

    if _C.is_lazy_capsule(ext_tensor):
        ext_tensor = _C.import_inner(_from_dlpack(ext_tensor))
    from_lazy = isinstance(ext_tensor, torch.Tensor) and ext_tensor.device.type == "lazy"
    to_lazy = from_lazy if device is None else torch.device(device).type == "lazy"
    if not to_lazy:
        return _from_dlpack(ext_tensor, device=device, copy=copy)
    if from_lazy:
        _check_exportable(ext_tensor)
        tensor = ext_tensor.detach()
    elif copy is False:
        from torch_lazy import from_dlpack

        tensor = from_dlpack(ext_tensor)
    else:
        tensor = _from_dlpack(ext_tensor)
    moved = tensor.to(device)
    if copy is False and moved is not tensor:
        raise ValueError(f"cannot move a tensor from {tensor.device} to {device} without a copy")
    return moved.clone() if copy and moved is tensor else moved


def install() -> None:
    """Makes lazy tensors speak DLPack as tensors of the execution device."""
    from torch_lazy import _C

    _C.accept_lazy_capsules(torch._C._VariableFunctions.asarray)
    torch.from_dlpack = torch.utils.dlpack.from_dlpack = _lazy_from_dlpack
    torch.to_dlpack = torch.utils.dlpack.to_dlpack = _lazy_to_dlpack
    torch.Tensor.__dlpack__ = _lazy_dlpack
    torch.Tensor.__dlpack_device__ = _lazy_dlpack_device
