"""Small training loops: losses and weights are the CPU's, and once warm every step is deferred."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch_lazy
from torch_lazy.conformance.as_on_the_cpu import finish
from torch_lazy.conformance.coverage import bytes_moved, not_compiled
from torch_lazy.conformance.section import Options, require, section_of_checks
from torch_lazy.conformance.small_training import STEPS, TASKS, Task, require_agreement, train

_WARM = 8  # steps after which every one has to be deferred whole


def _trains(task: Task, options: Options) -> dict[str, Any]:
    counted: dict[int, dict[str, Any]] = {}  # by the number of steps that were done

    def after_step(step: int) -> None:
        finish()
        if step in (_WARM, STEPS):
            counted[step] = torch_lazy.metrics()
            torch_lazy.reset_metrics()

    weights = task.weights()
    expected = train(task, weights, "cpu")
    torch_lazy.reset_metrics()
    actual = train(task, weights, "lazy", after_step)
    require_agreement(actual, expected)
    require(expected.losses[-1] < expected.losses[0], "the loss does not fall on the CPU either")
    left = not_compiled(counted[_WARM]["fallbacks"])
    require(not left, f"the backend did not compile windows, which others ran: {left}")
    warm = counted[STEPS]
    windows = warm["windows"]
    require(set(windows) == {"hot"}, f"windows of warm steps: {windows}, expected hot ones only")
    at_call = warm["eager"]
    require(at_call == 0, f"{at_call} operations of warm steps ran at the call, expected none")
    steps = STEPS - _WARM
    return {"bytes_moved": {name: n // steps for name, n in bytes_moved(warm).items()}}


SECTION = section_of_checks(
    "training",
    "losses and weights are the CPU's, and warm steps are deferred whole",
    {name: partial(_trains, task) for name, task in TASKS.items()},
)
