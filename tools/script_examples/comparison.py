"""What three runs of one script tell: on the CPU, on the CPU a rounding apart, on a device."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import torch

# What differs between any two runs.
_PASSING = re.compile(
    r"\d+:\d+:\d+|\[\d{3,}\]|'MASTER_PORT': '\d+'|ms/batch +[\d.]+|time: +[\d.]+s|"
    r"Time +[\d.]+ \( *[\d.]+\)|, device='[^']*'|"
    r"Data +[\d.]+ \( *[\d.]+\)|\([\d.]+s\)|\d{4}-\d\d-\d\d_\S+|^\d+\t",
    re.MULTILINE,
)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\bnan\b|\binf\b")


@dataclass(frozen=True)
class Comparison:
    """Of a run with one on the CPU; relative differences, the largest and of the whole."""

    same_words: bool
    numbers: float  # printed ones
    weights: float | None  # nothing where the script moved no model


def compare(found: dict[str, Any], expected: dict[str, Any], device: str) -> Comparison:
    texts = [_PASSING.sub("", run["printed"]).replace(device, "cpu") for run in (found, expected)]
    words = [_NUMBER.sub("#", text).split() for text in texts]
    numbers = [[float(number) for number in _NUMBER.findall(text)] for text in texts]
    return Comparison(
        words[0] == words[1],
        max((_apart(a, b) for a, b in zip(*numbers, strict=False)), default=0.0),
        _weights_apart(found["weights"], expected["weights"]),
    )


def _apart(found: float, expected: float) -> float:
    if found == expected or (found != found and expected != expected):
        return 0.0
    apart = abs(found - expected) / max(abs(found), abs(expected))
    return apart if math.isfinite(apart) else math.inf  # one of them is no number, or infinite


def _weights_apart(found: list[torch.Tensor], expected: list[torch.Tensor]) -> float | None:
    if not expected:
        return None
    of_found, of_expected = (torch.cat([w.flatten() for w in run]) for run in (found, expected))
    if of_found.shape != of_expected.shape:
        return math.inf
    return ((of_found - of_expected).norm() / of_expected.norm()).item()
