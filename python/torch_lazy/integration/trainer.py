"""``transformers.TrainingArguments(bf16=True)`` where accelerate's variable names the device.

Whether the device computes in bfloat16 is asked of the devices in a list of the library's, and
``lazy`` is none of them. Checked with transformers 5.24.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

from torch_lazy.integration.at_import import when_imported_wrap


def install() -> None:
    """Changes the module of the arguments, now or when it is imported."""
    when_imported_wrap(
        "transformers.training_args", "is_torch_bf16_gpu_available", _or_it_is_the_device
    )


def _or_it_is_the_device(of_other_devices: Callable[[], bool]) -> Callable[[], bool]:
    @functools.wraps(of_other_devices)
    def is_available() -> bool:
        device = os.environ.get("ACCELERATE_TORCH_DEVICE", "")
        return device.partition(":")[0] == "lazy" or of_other_devices()

    return is_available
