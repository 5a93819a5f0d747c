"""``torch.lazy.amp``: mixed precision, with the habits of ``torch.cuda.amp``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(torch.amp.autocast_mode.autocast):
    """:class:`torch.autocast` of device ``lazy``.

    ``dtype`` is that of the device where lazy tensors live: bfloat16 on the CPU.
    """

    def __init__(
        self,
        enabled: bool = True,
        dtype: torch.dtype | None = None,
        cache_enabled: bool = True,
    ) -> None:
        super().__init__("lazy", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """:class:`torch.amp.GradScaler` of device ``lazy``."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "lazy", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, cast_inputs: torch.dtype | None = None
) -> Callable[..., Any]:
    """:func:`torch.amp.custom_fwd` of device ``lazy``."""
    return torch.amp.custom_fwd(fwd, device_type="lazy", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """:func:`torch.amp.custom_bwd` of device ``lazy``."""
    return torch.amp.custom_bwd(bwd, device_type="lazy")
