"""Every test starts with a device that is idle and has no fault to come."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch_accelerator


@pytest.fixture(autouse=True)
def _fresh_device() -> Iterator[None]:
    torch.manual_seed(0)
    yield
    torch_accelerator.inject()
    torch_accelerator.synchronize()
