"""Types of tensors by dtype, as ``torch.cuda.FloatTensor``, which older scripts are written with.

A tensor of the device is an instance of the type of its dtype; to call the type makes a tensor, of
a size, a sequence or another tensor, as PyTorch's do.
"""

from __future__ import annotations

from typing import Any

import torch


class TensorType(type):
    """The type of these types."""

    dtype: torch.dtype
    layout = torch.strided
    is_cuda = False
    is_sparse = False

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.Tensor:
        """A tensor of this type."""
        return torch.empty(0, dtype=cls.dtype, device="lazy").new(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        """Whether it is a tensor of this type."""
        return (
            isinstance(instance, torch.Tensor)
            and instance.device.type == "lazy"
            and instance.layout == cls.layout
            and instance.dtype == cls.dtype
        )


def _type_of(name: str, dtype: torch.dtype) -> TensorType:
    doc = f"Tensors of {dtype} on device ``lazy``."
    return TensorType(name, (), {"dtype": dtype, "__module__": "torch.lazy", "__doc__": doc})


BFloat16Tensor = _type_of("BFloat16Tensor", torch.bfloat16)
BoolTensor = _type_of("BoolTensor", torch.bool)
ByteTensor = _type_of("ByteTensor", torch.uint8)
CharTensor = _type_of("CharTensor", torch.int8)
DoubleTensor = _type_of("DoubleTensor", torch.float64)
FloatTensor = _type_of("FloatTensor", torch.float32)
HalfTensor = _type_of("HalfTensor", torch.float16)
IntTensor = _type_of("IntTensor", torch.int32)
LongTensor = _type_of("LongTensor", torch.int64)
ShortTensor = _type_of("ShortTensor", torch.int16)
