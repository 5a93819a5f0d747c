"""Helpers of the tests that save and load: files in memory, and what shares a storage."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch

FORMATS = {"zip": True, "legacy": False}
each_format = pytest.mark.parametrize("file_format", FORMATS)


def saved(thing: Any, file_format: str = "zip", **kwargs: Any) -> io.BytesIO:
    """The file, at its beginning."""
    buffer = io.BytesIO()
    torch.save(thing, buffer, _use_new_zipfile_serialization=FORMATS[file_format], **kwargs)
    buffer.seek(0)
    return buffer


def reloaded(thing: Any, file_format: str = "zip", **kwargs: Any) -> Any:
    return torch.load(saved(thing, file_format), **kwargs)


def base_type(device: str) -> str:
    return device.partition(":")[0]


def share_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata
