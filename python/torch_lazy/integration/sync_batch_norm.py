"""``torch.nn.SyncBatchNorm`` on device ``lazy``.

Its forward pass lists the types of devices that it works on. What it computes has kernels for this
device (``csrc/device/sync_batch_norm.cpp``), so here the same is done past the list.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
import torch.distributed
from torch.nn.modules import batchnorm


def _is_shared(module: torch.nn.SyncBatchNorm) -> bool:
    """Whether the statistics are those of several processes."""
    if not (module.training and torch.distributed.is_initialized()):
        return False
    return torch.distributed.get_world_size(module.process_group) > 1


def _update_factor(module: torch.nn.SyncBatchNorm) -> float:
    """Counts a batch and returns the share that it has in the running statistics."""
    if module.track_running_stats:
        module.num_batches_tracked.add_(1)
        if module.momentum is None:  # the mean of all batches so far
            return 1.0 / module.num_batches_tracked.item()
    return module.momentum or 0.0


def _with_lazy(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(original)
    def forward(self: torch.nn.SyncBatchNorm, input: torch.Tensor) -> torch.Tensor:
        if input.device.type != "lazy":
            return original(self, input)
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        if not _is_shared(self):
            return batchnorm._BatchNorm.forward(self, input)
        group = self.process_group or torch.distributed.group.WORLD
        return batchnorm.sync_batch_norm.apply(
            input,
            self.weight,
            self.bias,
            self.running_mean if self.track_running_stats else None,
            self.running_var if self.track_running_stats else None,
            self.eps,
            _update_factor(self),
            group,
            torch.distributed.get_world_size(group),
        )

    return forward


def install() -> None:
    """Wraps the module's forward pass; nothing where PyTorch was built without ``distributed``."""
    if torch.distributed.is_available():
        module = torch.nn.SyncBatchNorm
        module.forward = _with_lazy(module.forward)  # type: ignore[method-assign]
