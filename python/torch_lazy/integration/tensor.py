"""``Tensor.is_lazy``, ``Tensor.lazy()``, ``Module.lazy()``, ``Tensor.data_ptr()`` and its like."""

from __future__ import annotations

import sys
from types import MethodType
from typing import Any

import torch

from torch_lazy.integration.storage import has_buffer


def _is_lazy(self: torch.Tensor) -> Any:
    """Whether the tensor is on device ``lazy``, unless a script gave it another meaning."""
    return vars(self).get("is_lazy", self.device.type == "lazy")


def _set_is_lazy(self: torch.Tensor, value: Any) -> None:
    vars(self)["is_lazy"] = value


def _destination(device: torch.device | int | str | None) -> str:
    from torch_lazy.device import device_index

    return "lazy" if device is None else f"lazy:{device_index(device)}"


def _tensor_lazy(
    self: torch.Tensor,
    device: torch.device | int | str | None = None,
    non_blocking: bool = False,
    memory_format: torch.memory_format = torch.preserve_format,
) -> torch.Tensor:
    """The tensor on device ``lazy``, as ``cuda()`` is for CUDA."""
    return self.to(_destination(device), non_blocking=non_blocking, memory_format=memory_format)


def _module_lazy(
    self: torch.nn.Module, device: torch.device | int | str | None = None
) -> torch.nn.Module:
    """Moves parameters and buffers to device ``lazy``."""
    return self.to(_destination(device))


# They ask whether a name is free.
_REGISTER = {
    function.__code__
    for function in (
        torch.nn.Module.add_module,
        torch.nn.Module.register_buffer,
        torch.nn.Module.register_parameter,
    )
}


class _ModuleLazy:
    """The method :func:`_module_lazy`, unless the module has a member of that name.

    Members are found last, after what a class has, and scripts that know nothing of the device have
    modules named so.
    """

    def __get__(self, module: torch.nn.Module | None, owner: type | None = None) -> Any:
        if module is None:
            return _module_lazy
        for held in ("_parameters", "_buffers", "_modules"):
            members = module.__dict__.get(held)
            if members and "lazy" in members:
                return members["lazy"]
        if sys._getframe(1).f_code in _REGISTER:
            raise AttributeError("lazy")
        return MethodType(_module_lazy, module)


_data_ptr = torch.Tensor.data_ptr


# They ask where a tensor lies to tell tensors apart, as when a model is saved, and forget it.
_ASK_FOR_IDENTITY = frozenset({"accelerate", "peft", "safetensors", "torch", "transformers"})


def is_wrapper(tensor: torch.Tensor) -> bool:
    """Whether the tensor only wraps others, as a DTensor does: on no device has it an address."""
    return torch._C._has_storage(tensor) and not has_buffer(tensor.untyped_storage())


def _lazy_data_ptr(self: torch.Tensor) -> int:
    """Address of the first element; on device ``lazy`` pending work runs first.

    Who has the address may use the memory at any time, so operations on it run at the call from
    then on, unless a library asked that is known to look at nothing but the number. Of a device
    without kernels of PyTorch's it is but a number: the newest bytes may be the host's.
    """
    if self.device.type != "lazy" or is_wrapper(self):
        return _data_ptr(self)
    from torch_lazy import _C

    caller = sys._getframe(1).f_globals.get("__name__", "")
    if caller.partition(".")[0] in _ASK_FOR_IDENTITY or _C.is_offloaded():
        if self.numel() == 0:
            return 0
        buffer = _C.storage_buffer(self.untyped_storage())
        return buffer.data_ptr() + self.storage_offset() * self.element_size()
    return _data_ptr(_C.export_inner(self.detach()))


def install() -> None:
    """Gives ``torch.Tensor`` and ``torch.nn.Module`` the names above.

    What PyTorch does for the CPU's tensors in one step, it does for these, too (``csrc/python``): a
    number that a subscript writes fills the part, and ``tolist()`` reads where the elements lie.
    What was changed in place, a subscript does not copy to itself.
    """
    from torch_lazy import _C

    _C.assign_in_place()
    _C.make_lists_in_place(torch.Tensor.tolist)
    torch.Tensor.is_lazy = property(_is_lazy, _set_is_lazy)
    torch.Tensor.lazy = _tensor_lazy
    torch.nn.Module.lazy = _ModuleLazy()
    torch.Tensor.data_ptr = _lazy_data_ptr
    # Who reads only cannot tell: what is written later would go to other memory all the same.
    torch.Tensor.const_data_ptr = _lazy_data_ptr
