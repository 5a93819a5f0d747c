"""``torch.distributed.fsdp.fully_shard`` on device ``lazy``.

FSDP packs and unpacks parameters by operators of its own, registered for a list of devices. On
another device a fallback would run them at the call, as a sync point each. They are composed of
operators that are recorded, so here their composition is registered for this device too: packing
becomes part of the windows around it.
"""

from __future__ import annotations

import torch

# By operator: the function of torch.distributed.fsdp._fully_shard._fsdp_collectives that is
# registered for the CPU and the others.
_COMPOSITIONS = {
    "all_gather_copy_in": "all_gather_copy_in_cuda",
    "split_with_sizes_copy": "split_with_sizes_copy",
    "chunk_cat": "chunk_cat",
}

_library: torch.library.Library | None = None


def _composition(name: str) -> object:
    def call(*args: object, **kwargs: object) -> object:
        # Imported by now: the module defines the operator.
        from torch.distributed.fsdp._fully_shard import _fsdp_collectives

        return getattr(_fsdp_collectives, name)(*args, **kwargs)

    return call


def install() -> None:
    """Registers the compositions; nothing where PyTorch was built without ``distributed``.

    PyTorch permits that before the operators are defined, which is when a script imports FSDP.
    """
    global _library
    if _library is not None or not torch.distributed.is_available():
        return
    _library = torch.library.Library("fsdp", "IMPL", "Lazy")
    for operator, function in _COMPOSITIONS.items():
        _library.impl(operator, _composition(function))
