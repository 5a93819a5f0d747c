"""Runs features, whose names it reads, on the CPU and on device lazy, and says how each went."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import torch

import torch_lazy
from torch_lazy.conformance.isolated import serve

sys.path.insert(0, str(Path(__file__).parent))

from features import all_features

RUNS = 4  # until windows are hot


def plain(value: Any) -> Any:
    """What a feature returned, with tensors on the CPU."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {key: plain(element) for key, element in value.items()}
    return [plain(element) for element in value] if isinstance(value, (list, tuple)) else value


def check_same(actual: Any, expected: Any) -> None:
    """Numbers and tensors within rounding, all else equal."""
    if isinstance(expected, (torch.Tensor, float, complex)):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    elif isinstance(expected, (list, dict)):
        assert len(actual) == len(expected), f"{len(actual)} results, the CPU has {len(expected)}"
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            check_same(actual[key], expected[key])
    else:
        assert actual == expected, f"{actual!r}, the CPU has {expected!r}"


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]


def tried(name: str) -> dict[str, Any]:
    """`works`, `missing` (a package) or `fails`; why; and what ran by a fallback."""
    feature = all_features()[name]
    warnings.simplefilter("ignore")
    try:
        expected = plain(feature.run("cpu"))
    except ModuleNotFoundError as error:
        return {"outcome": "missing", "why": str(error.name)}
    torch_lazy.reset_metrics()
    try:
        for _ in range(RUNS):
            actual = plain(feature.run("lazy"))
            torch_lazy.synchronize()
            torch_lazy.wait_for_compiles()
            check_same(actual, expected)
    except Exception as error:
        return {"outcome": "fails", "why": first_line(error)}
    return {"outcome": "works", "fallbacks": sorted(torch_lazy.metrics()["fallbacks"])}


if __name__ == "__main__":
    serve(tried)
