"""What users' scripts do, as small programs that take a device and return what is to be compared.

A feature is a function, whose documentation is its name on the page. It gets the name of a device
and may return tensors, numbers, strings, and lists, tuples and dicts of them. A feature that needs
a package which is not installed raises `ModuleNotFoundError` and is left out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

AREAS = (
    "state",
    "modules",
    "autograd",
    "precision",
    "loops",
    "tracing",
    "kinds",
    "distributed",
    "packages",
)


@dataclass(frozen=True)
class Feature:
    area: str
    name: str
    run: Callable[[str], Any]

    @property
    def title(self) -> str:
        return (self.run.__doc__ or self.name).strip()


def features_of(area: str) -> list[Feature]:
    """The public functions of the area's module, in the order in which they stand there."""
    module = importlib.import_module(area)
    return [
        Feature(area, name, value)
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", "") == area and name[0] != "_"
    ]


def all_features() -> dict[str, Feature]:
    return {f"{area}.{f.name}": f for area in AREAS for f in features_of(area)}


def cell(text: str) -> str:
    """In a table of Markdown."""
    return " ".join(text.split()).replace("|", "\\|")


def verdict(result: Mapping[str, Any]) -> str:
    """What the page says of what the worker found."""
    if result["outcome"] == "fails":
        return f"does not: {cell(result['why'])}"
    if result["fallbacks"]:
        return "works, by fallback: " + ", ".join(f"`{name}`" for name in result["fallbacks"])
    return "works"
