"""Processes that fork: the parent computes on, and the child computes or is told that it cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import torch

from torch_lazy.conformance.as_on_the_cpu import finish, require_same
from torch_lazy.conformance.section import (
    DoesNotApply,
    Options,
    by_name,
    require,
    section_of_checks,
)

_CHILD_SECONDS = 20
_RIGHT, _WRONG, _REFUSED = 0, 1, 2


def _ends(work: Callable[[], bool]) -> int:
    """How a child ends that does `work`; negative: the signal that ended it."""
    if not hasattr(os, "fork"):
        raise DoesNotApply("this system has no fork")
    child = os.fork()
    if child == 0:
        end = _WRONG
        try:
            signal.alarm(_CHILD_SECONDS)
            end = _RIGHT if work() else _WRONG
        except RuntimeError:
            end = _REFUSED
        finally:
            os._exit(end)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _hot_step() -> tuple[Callable[[], torch.Tensor], torch.Tensor]:
    """A step that is compiled, and its result."""
    host = torch.linspace(-1, 1, 12).view(3, 4)
    x = host.to("lazy")

    def step() -> torch.Tensor:
        return (x * 2 + 1).relu() @ x.t()

    expected = (host * 2 + 1).relu() @ host.t()
    for _ in range(4):
        require_same(step(), expected)
        finish()
    return step, expected


def _require_sound_end(end: int) -> None:
    if end == -signal.SIGALRM:
        require(False, f"a child of a fork hung for {_CHILD_SECONDS} s, where it used the device")
    require(end >= 0, f"a child of a fork died of {signal.Signals(-end).name if end < 0 else ''}")
    require(end != _WRONG, "a child of a fork computed something else, or raised no RuntimeError")


def a_child_computes_or_is_told(options: Options) -> dict[str, str]:
    """After the parent used the device. A driver that does not outlive a fork has to say so."""
    step, expected = _hot_step()
    end = _ends(lambda: torch.allclose(step().cpu(), expected, atol=1e-5))
    _require_sound_end(end)
    require_same(step(), expected, "in the parent, after the fork: ")
    return {"child": "is refused" if end == _REFUSED else "computes"}


def the_parent_computes_on(options: Options) -> None:
    """With work pending at the fork, and a child that leaves the device alone."""
    step, expected = _hot_step()
    pending = step()
    end = _ends(lambda: True)
    _require_sound_end(end)
    require_same(pending + 1, expected + 1, "pending at the fork: ")
    finish()
    for _ in range(3):
        require_same(step(), expected, "after the fork: ")
        finish()


def a_child_of_an_unused_device_computes(options: Options) -> None:
    """Forked by a process that has loaded the plugin and used no device, as data loaders are."""
    script = f"from {__name__} import use_first_in_a_child; use_first_in_a_child()"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False
    )
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    require(done.returncode == 0, f"a child of a fork that used the device first: {lines[-1]}")


def use_first_in_a_child() -> None:
    """Run in a process of its own, with the backend of the environment."""

    def work() -> bool:
        return (torch.ones(3).to("lazy") * 2).tolist() == [2.0] * 3

    _require_sound_end(_ends(work))


SECTION = section_of_checks(
    "forks",
    "children of forks compute, or are told that they cannot; parents compute on",
    by_name(
        a_child_computes_or_is_told, the_parent_computes_on, a_child_of_an_unused_device_computes
    ),
)
