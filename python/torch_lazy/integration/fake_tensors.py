"""Fake tensors of lazy tensors, for ``make_fx``, ``torch.export`` and ``torch.compile``.

PyTorch describes every tensor to its fake twin but those of device type ``lazy``: its own lazy
tensors have no strides and no storage. Ours have both. And it gives fake tensors the index of the
current device on the types that it knows to have several, so that ``"cuda"`` and ``"cuda:0"`` are
one device; ``"lazy"`` is such a type.
"""

from __future__ import annotations

import functools
import types

from torch._subclasses import fake_tensor
from torch._subclasses.meta_utils import MetaConverter

_NO_DEVICE = "a lazy tensor without storage"


def install() -> None:
    """Fake tensors have this device's strides, storages and indices."""
    _describe_lazy_tensors()
    _give_indices()


def _give_indices() -> None:
    """Where another version of PyTorch decides in another way nothing is changed."""
    known = getattr(fake_tensor, "_is_indexed_device_type", None)
    if known is None:
        return

    @functools.wraps(known)
    def is_indexed(device_type: str) -> bool:
        return device_type == "lazy" or known(device_type)

    fake_tensor._is_indexed_device_type = is_indexed


def _describe_lazy_tensors() -> None:
    """Takes the name of the device out of the converter's comparison with it.

    Where another version of PyTorch compares in another way nothing is changed, and converting a
    lazy tensor goes on raising "meta converter nyi".
    """
    convert = MetaConverter.__call__
    if not isinstance(convert, types.FunctionType):
        return
    constants = tuple(_NO_DEVICE if c == "lazy" else c for c in convert.__code__.co_consts)
    convert.__code__ = convert.__code__.replace(co_consts=constants)
