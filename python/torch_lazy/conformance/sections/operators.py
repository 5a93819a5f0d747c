"""PyTorch's own samples of its operators, and who ran each."""

from __future__ import annotations

import contextlib
from typing import Any

import torch_lazy
from torch_lazy.conformance import opinfo
from torch_lazy.conformance.as_on_the_cpu import finish
from torch_lazy.conformance.coverage import forget_compiled, who_ran
from torch_lazy.conformance.opinfo_call import on_device
from torch_lazy.conformance.program_runner import REPETITIONS
from torch_lazy.conformance.section import Options, Result, Section
from torch_lazy.conformance.verdicts import told

_SAMPLES_QUICK = 2
# Of all, by name: enough to meet every family.
_EVERY_QUICK = 3


def _items(options: Options) -> list[str]:
    names = sorted(opinfo.operators())
    return names[options.seed % _EVERY_QUICK :: _EVERY_QUICK] if options.quick else names


def _is_compiled(op: Any) -> bool:
    """Whether windows of nothing but the operator's first sample run compiled."""
    with contextlib.suppress(Exception):  # which the samples are judged for
        sample = next(iter(opinfo.samples_of(op, 1)))
        value, args, kwargs = on_device((sample.input, sample.args, sample.kwargs), "lazy")
        finish()
        torch_lazy.reset_metrics()
        for _ in range(REPETITIONS):
            op.op(value, *args, **kwargs)
            finish()
    return torch_lazy.metrics()["windows_run"] > 0


def _check(item: str, options: Options) -> Result:
    op = opinfo.operators()[item]
    forget_compiled(options.backend)
    torch_lazy.reset_metrics()
    compiled = _is_compiled(op)
    samples = _SAMPLES_QUICK if options.quick else None
    verdict = opinfo.judge(op, "lazy", samples)
    facts = {"ran": who_ran(torch_lazy.metrics(), compiled)}
    return Result(failure=told(verdict.failures), facts=facts)


SECTION = Section(
    "operators",
    "PyTorch's samples of its operators, forward and backward, float32",
    _items,
    _check,
    seconds=300.0,
    needs=("expecttest", "numpy"),
    only_of_backend=True,
)
