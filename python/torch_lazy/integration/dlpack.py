"""DLPack export: consumers see CPU memory, shared with the lazy tensor."""

from __future__ import annotations

from typing import Any

import torch

_dlpack = torch.Tensor.__dlpack__
_dlpack_device = torch.Tensor.__dlpack_device__


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
    return _dlpack_device(torch.empty(0))


def install() -> None:
    """Makes lazy tensors speak DLPack as CPU memory."""
    torch.Tensor.__dlpack__ = _lazy_dlpack
    torch.Tensor.__dlpack_device__ = _lazy_dlpack_device
