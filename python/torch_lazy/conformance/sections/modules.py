"""PyTorch's own samples of its modules and optimizers."""

from __future__ import annotations

from torch_lazy.conformance import modules, opinfo
from torch_lazy.conformance.section import Options, Result, Section
from torch_lazy.conformance.verdicts import told

_SAMPLES_QUICK = 1
_EVERY_QUICK = 4  # of all, by name


def _items(options: Options) -> list[str]:
    names = sorted(modules.subjects())
    return names[options.seed % _EVERY_QUICK :: _EVERY_QUICK] if options.quick else names


def _check(item: str, options: Options) -> Result:
    subject, mode = modules.subjects()[item]
    verdict = opinfo.judge(subject, "lazy", _SAMPLES_QUICK if options.quick else None, mode=mode)
    return Result(failure=told(verdict.failures))


SECTION = Section(
    "modules",
    "PyTorch's samples of its modules, in training and evaluation, and of its optimizers",
    _items,
    _check,
    seconds=300.0,
    needs=("expecttest", "numpy"),
    only_of_backend=True,
)
