"""``transformers.TrainingArguments(bf16=True)`` where accelerate's variable names the device.

Whether the device computes in bfloat16 is asked of the devices in a list of the library's, and
``lazy`` is none of them. Checked with transformers 5.24.
"""

from __future__ import annotations

import functools
import os
from types import ModuleType

from torch_lazy.integration.at_import import when_imported


def install() -> None:
    """Changes the module of the arguments, now or when it is imported."""
    when_imported("transformers.training_args", _let_it_compute_in_bfloat16)


def _let_it_compute_in_bfloat16(module: ModuleType) -> None:
    of_other_devices = getattr(module, "is_torch_bf16_gpu_available", None)
    if of_other_devices is None:
        return

    @functools.wraps(of_other_devices)
    def is_torch_bf16_gpu_available() -> bool:
        device = os.environ.get("ACCELERATE_TORCH_DEVICE", "")
        return device.partition(":")[0] == "lazy" or of_other_devices()

    module.is_torch_bf16_gpu_available = is_torch_bf16_gpu_available  # type: ignore[attr-defined]
