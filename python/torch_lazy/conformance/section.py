"""What a section of the kit is: named items, each a question about the backend that a process of
its own answers."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Options:
    """What every item is told."""

    backend: str
    seed: int = 0
    quick: bool = False
    # Every operation runs at the call: what differs even so is not the backend's doing.
    without_backend: bool = False


@dataclass
class Result:
    """What came of one item, as it goes from its process to the page."""

    failure: str | None = None
    script: str | None = None  # shows the failure by itself
    does_not_apply: str | None = None  # the reason
    facts: dict[str, Any] = field(default_factory=dict)  # for the page


@dataclass(frozen=True)
class Section:
    """`items` are made where the command runs, which never uses the device; `check` answers for one
    of them in a worker."""

    name: str
    summary: str
    items: Callable[[Options], list[str]]
    check: Callable[[str, Options], Result]
    seconds: float = 60.0  # for one item
    needs: tuple[str, ...] = ()  # modules besides torch
    # A difference that is there without the backend too is listed and is no failure.
    only_of_backend: bool = False
    # Whether an item can be asked for; none: if it is one of the full run.
    accepts: Callable[[str], bool] | None = None

    def has(self, item: str) -> bool:
        return self.accepts(item) if self.accepts else item in self.items(Options(""))

    @property
    def missing(self) -> list[str]:
        return [module for module in self.needs if importlib.util.find_spec(module) is None]


class DoesNotApply(Exception):
    """Raised by a check of what this device does not have."""


def needs_operators_that_raise_for_indices() -> None:
    """Raises DoesNotApply on CUDA, whose own operators run wherever kernels do not: at an index out
    of range the process can use the device no more, as in eager."""
    import torch_lazy  # by processes that run checks alone

    if torch_lazy.execution_device().type == "cuda":
        raise DoesNotApply("an index out of range ends the use of a CUDA device, as in eager")


def require(condition: bool, sentence: str) -> None:
    """Fails the check with the sentence, which says what was found and what was expected."""
    if not condition:
        raise AssertionError(sentence)


def _place(error: BaseException) -> str:
    """The line of a check in which the error was raised."""
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if FOLDER in Path(f.filename).parents
    ]
    own = [f for f in frames if Path(f.filename).parent.name == "sections"] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "unknown line"


def answer(check: Callable[[], Result]) -> Result:
    """What a check returns; whatever it raises is its failure."""
    try:
        return check()
    except DoesNotApply as reason:
        return Result(does_not_apply=str(reason))
    except AssertionError as error:
        return Result(failure=f"{error} ({_place(error)})")
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return Result(failure=f"raised {type(error).__name__}: {lines[0]} ({_place(error)})")


def section_of_checks(
    name: str,
    summary: str,
    checks: Mapping[str, Callable[[Options], dict[str, Any] | None]],
    seconds: float = 60.0,
) -> Section:
    """A section that always has the same items; what their checks return are facts for the page."""
    return Section(
        name,
        summary,
        items=lambda options: list(checks),
        check=lambda item, options: Result(facts=checks[item](options) or {}),
        seconds=seconds,
    )


def by_name(*checks: Callable[[Options], Any]) -> dict[str, Callable[[Options], Any]]:
    """Checks under the names of their functions."""
    return {check.__name__.replace("_", "-"): check for check in checks}
