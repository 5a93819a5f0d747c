"""Runs random programs on a device and records what a user could observe."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Sequence
from typing import Any

import torch

import torch_lazy
from torch_lazy import _C
from torch_lazy.conformance.program import (
    LAZY,
    Program,
    Step,
    compiled,
    in_double,
    namespace,
    oracle_of,
    synchronize,
    variables,
    wait_for_compiles,
)
from torch_lazy.conformance.program_comparison import Difference, Trace, compare

torch_lazy.config.bypass = False  # windows are what is tried
torch_lazy.config.rng = "eager"  # the CPU's numbers are what a run is compared with

REPETITIONS = 4  # cold, warm, hot and once more


def normalised(text: str) -> str:
    """The text with the device's name replaced by the CPU's, as both should say the same thing
    otherwise."""
    kinds = {LAZY, torch._C._get_privateuse1_backend_name(), _C.chosen_execution_device()}
    kind = "|".join(re.escape(kind) for kind in sorted(kinds - {"", "cpu"}))
    text = re.sub(rf",?\s*\bdevice='(?:{kind})(:0)?'", "", text)
    text = re.sub(rf"\btorch\.(?:{kind})\.", "torch.", text)
    text = re.sub(rf"\b(?:{kind})(:0)?\b", "cpu", text)
    return re.sub(rf"\b(?i:{kind}|cpu)([A-Z]\w*)Type\b", r"torch.\1Tensor", text)


def described(error: BaseException) -> str:
    """Type and first line of an error: later lines may tell where it was recorded."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {normalised(lines[0]) if lines else ''}"


def value_of(t: torch.Tensor) -> torch.Tensor:
    """A private CPU copy of the values."""
    return t.detach().to("cpu", copy=True).resolve_conj().resolve_neg()


_METADATA = {
    "shape": lambda t: tuple(t.shape),
    "strides": lambda t: t.stride(),
    "offset": lambda t: t.storage_offset(),
    "dtype": lambda t: t.dtype,
    "requires_grad": lambda t: t.requires_grad,
    "is_leaf": lambda t: t.is_leaf,
    "is_view": lambda t: t._is_view(),
    "contiguous": lambda t: t.is_contiguous(),
    "version": lambda t: t._version,
    "conj": lambda t: t.is_conj(),
    "neg": lambda t: t.is_neg(),
    "value": value_of,
}


def _read(what: str, t: torch.Tensor) -> Any:
    """One property; reading it raises where a write to the base made a view invalid."""
    try:
        return _METADATA[what](t)
    except RuntimeError as error:
        return described(error)


def metadata_of(t: torch.Tensor) -> dict[str, Any]:
    """What can be read without needing a value."""
    return {what: _read(what, t) for what in _METADATA if what != "value"}


def snapshot(names: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Everything about every live tensor and its gradient, and who shares memory or identity with
    whom."""
    tensors: dict[str, torch.Tensor] = {}
    for name, t in sorted(variables(names).items()):
        tensors[name] = t
        if _read("is_leaf", t) is True and t.grad is not None:
            tensors[name + ".grad"] = t.grad
    storages: dict[int, str] = {}
    objects: dict[int, str] = {}
    result = {}
    for name, t in tensors.items():
        seen = metadata_of(t)
        storage = t.untyped_storage()
        seen["shares storage with"] = storages.setdefault(storage._cdata, name)
        seen["is"] = objects.setdefault(id(t), name)
        seen["storage bytes"] = storage.nbytes()
        result[name] = seen
    for name, t in tensors.items():  # after all metadata: reading a value is a sync
        result[name]["value"] = _read("value", t)
    return result


class Interpreter:
    """Executes the statements of one program once."""

    def __init__(self, device: str, run: int):
        self.device = device
        self.step = 0
        self.trace = Trace()
        self.names = namespace(device, run, self.observe, self.check)

    def observe(self, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            seen: Any = value_of(value)
        elif isinstance(value, str):  # a printed tensor: the device's name moves its line breaks
            seen = re.sub(r"grad_fn=<\w+>", "grad_fn", " ".join(normalised(value).split()))
        elif isinstance(value, float):
            seen = value
        else:
            seen = repr(value)
        self.trace.events.append((self.step, "observed", seen))

    def check(self) -> None:
        self.trace.events.append((self.step, "state", snapshot(self.names)))

    def execute(self, step: Step, index: int) -> str | None:
        """Runs one statement; returns the described error, if it raised."""
        self.step = index
        before = {k: id(v) for k, v in variables(self.names).items()}
        try:
            exec(compiled(step.code), self.names)
        except Exception as error:
            return described(error)
        for name, t in variables(self.names).items():
            if before.get(name) != id(t) or step.code.startswith(name):
                self.trace.events.append((index, f"metadata of {name}", metadata_of(t)))
        return None


def run_program(
    steps: Sequence[Step], device: str, run: int = 0, expected: Trace | None = None
) -> Trace:
    """One run. `expected` is the oracle's record: if that ended with a failure on data at step k,
    the device may notice later, so it goes on after k until that very failure surfaces, at the
    latest at the end."""
    torch.manual_seed(1234)
    machine = Interpreter(device, run)
    late = expected.fatal if expected else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for index, step in enumerate(steps):
            error = machine.execute(step, index)
            if error is None and not (late and machine.trace.shows(late)):
                continue
            error = error or late[1]
            if late and index >= late[0]:
                if error == late[1]:
                    machine.trace.fatal = late
                    break
                continue  # raised by the statement itself, in a part that the CPU never reached
            if step.may_fail:
                machine.trace.fatal = (index, error)
                break
            machine.trace.events.append((index, "error", error))
        try:
            if machine.trace.fatal is None and late is None:
                machine.step = len(steps)
                machine.check()
            machine.names.clear()
            synchronize(device)
        except Exception as error:
            machine.trace.fatal = (
                late if late and described(error) == late[1] else (len(steps), described(error))
            )
    return machine.trace


def record_in_double(steps: Sequence[Step], oracle: str, run: int) -> Trace | None:
    """The oracle's record of the statements in double, as far as they have such a form."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return run_program(in_double(steps), oracle, run)
    finally:
        torch.set_default_dtype(default)


def _not_compiled() -> str | None:
    """How the last run was other than compiled code alone."""
    counted = torch_lazy.metrics()
    if set(counted["windows"]) != {"hot"} or not counted["deferred"]:
        return f"was not compiled: {counted['windows']}"
    return f"fell back: {counted['fallbacks']}" if counted["fallbacks"] else None


def check_program(
    program: Program, device: str, branch_runs: int = 1, repetitions: int = REPETITIONS
) -> Difference | None:
    """Runs a program until it is hot, then its branch, each against eager; returns the first
    difference."""
    oracle = oracle_of(device)
    plan = [(program.steps, run, str(run + 1)) for run in range(repetitions)]
    if program.branch_tail:
        plan += [(program.branch, run, f"branch {run + 1}") for run in range(branch_runs)]
    counts = program.compiles and device.startswith(LAZY)
    for steps, run, label in plan:
        expected = run_program(steps, oracle, run)
        if counts:
            synchronize(device)
            torch_lazy.reset_metrics()
        actual = run_program(steps, device, run, expected)
        wait_for_compiles(device)
        exact = functools.cache(functools.partial(record_in_double, steps, oracle, run))
        found = compare(expected, actual, label, program.bounds, exact)
        if found:
            return found
    # An operation that raises ends its window, which is no failure to compile.
    reason = _not_compiled() if counts and expected.fatal is None else None
    return Difference(label, len(steps), reason, "compiled", "not", True) if reason else None
