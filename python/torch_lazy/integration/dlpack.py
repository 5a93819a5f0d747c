"""DLPack export: consumers see memory of the execution device, shared with the lazy tensor."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils.dlpack

_dlpack = torch.Tensor.__dlpack__
_dlpack_device = torch.Tensor.__dlpack_device__
_to_dlpack = torch.utils.dlpack.to_dlpack


def _lazy_dlpack(self: torch.Tensor, **kwargs: Any) -> Any:
    if self.device.type != "lazy":
        return _dlpack(self, **kwargs)
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach() before")
    from torch_lazy import _C

    return _dlpack(_C.export_inner(self), **kwargs)


def _lazy_dlpack_device(self: torch.Tensor) -> Any:
    if self.device.type != "lazy":
        return _dlpack_device(self)
    from torch_lazy import _C

    return _dlpack_device(torch.empty(0, device=f"{_C.execution_device()}:{self.device.index}"))


def _lazy_to_dlpack(tensor: torch.Tensor) -> Any:
    return _to_dlpack(tensor) if tensor.device.type != "lazy" else _lazy_dlpack(tensor)


def install() -> None:
    """Makes lazy tensors speak DLPack as tensors of the execution device."""
    torch.to_dlpack = torch.utils.dlpack.to_dlpack = _lazy_to_dlpack
    torch.Tensor.__dlpack__ = _lazy_dlpack
    torch.Tensor.__dlpack_device__ = _lazy_dlpack_device
