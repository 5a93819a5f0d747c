"""Fake tensors of lazy tensors, for ``make_fx``, ``torch.export`` and ``torch.compile``.

PyTorch describes every tensor to its fake twin but those of device type ``lazy``: its own lazy
tensors have no strides and no storage. Ours have both.
"""

from __future__ import annotations

import types

from torch._subclasses.meta_utils import MetaConverter

_NO_DEVICE = "a lazy tensor without storage"


def install() -> None:
    """Takes the name of the device out of the converter's comparison with it.

    Where another version of PyTorch compares in another way nothing is changed, and converting a
    lazy tensor goes on raising "meta converter nyi".
    """
    convert = MetaConverter.__call__
    if not isinstance(convert, types.FunctionType):
        return
    constants = tuple(_NO_DEVICE if c == "lazy" else c for c in convert.__code__.co_consts)
    convert.__code__ = convert.__code__.replace(co_consts=constants)
