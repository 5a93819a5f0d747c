"""Runs a random program on a device, records what a user could observe, and compares two such
records."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from program_builder import Program, Step, compiled, namespace, variables

try:
    import torch_lazy
except ImportError:  # the harness also compares the CPU with itself
    torch_lazy = None
else:
    torch_lazy.config.rng = "eager"  # the CPU's numbers are what a run is compared with

REPETITIONS = 4  # cold, warm, hot and once more


@dataclass
class Trace:
    """What one run showed: (step, what, value) in order, and the failure on data that ended it."""

    events: list[tuple[int, str, Any]] = field(default_factory=list)
    fatal: tuple[int, str] | None = None


@dataclass(frozen=True)
class Difference:
    """The first disagreement between the CPU's run and the device's."""

    repetition: str
    step: int
    what: str
    expected: str
    actual: str

    def __str__(self) -> str:
        where = f"run {self.repetition}, step {self.step}: {self.what}"
        return f"{where}\n  cpu:    {self.expected}\n  device: {self.actual}"


def wait_for_compiles() -> None:
    if torch_lazy is not None:
        torch_lazy.wait_for_compiles()


def synchronize(device: str) -> None:
    if torch_lazy is not None and device.startswith("lazy"):
        torch_lazy.synchronize()


def normalised(text: str) -> str:
    """The text with the device's name replaced by the CPU's, as both should say the same thing
    otherwise."""
    text = re.sub(r",?\s*\bdevice='lazy(:0)?'", "", text)
    text = re.sub(r"\btorch\.lazy\.", "torch.", text)
    text = re.sub(r"\blazy(:0)?\b", "cpu", text)
    return re.sub(r"\bLazy([A-Z]\w*)Type\b", r"torch.\1Tensor", text)


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
        elif isinstance(value, float) and not EXACT:
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
    """One run. `expected` is the CPU's record: if that ended with a failure on data at step k, the
    device may notice later, so it goes on after k until that very failure surfaces, at the latest
    at the end."""
    torch.manual_seed(1234)
    machine = Interpreter(device, run)
    late = expected.fatal if expected else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for index, step in enumerate(steps):
            error = machine.execute(step, index)
            if error is None:
                continue
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


# Generated kernels round some functions otherwise than ATen's (docs/accuracy.md), and a program
# goes on computing with what it got: relative to the largest element, by dtype. The reference
# backend is exact. Doubles may have been floats before.
EXACT = os.environ.get("TORCH_LAZY_BACKEND", "cpu") == "reference"
TOLERANCES = {torch.float64: 3e-4, torch.float32: 3e-4, torch.float16: 2e-2, torch.bfloat16: 5e-2}


def close_values(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Within the tolerance of the dtype; infinities and NaN in the same places."""
    if a.numel() == 0:
        return True
    finite = a.isfinite() & b.isfinite()
    scale = float(a[finite].abs().max()) if bool(finite.any()) else 1.0
    tolerance = TOLERANCES[a.dtype]
    return torch.allclose(
        a.double(), b.double(), rtol=tolerance, atol=tolerance * max(scale, 1e-3), equal_nan=True
    )


# The programs' own integers are small: larger ones are bits of floats under `view(dtype)`.
_SMALLEST_BITS = 1 << 20
_FLOAT_OF_BITS = {torch.int32: torch.float32, torch.int64: torch.float64}
_NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")


def close_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal, where they are not bits of floats that are close."""
    if a.dtype not in _FLOAT_OF_BITS:
        return torch.equal(a, b)
    bits = (a.abs() >= _SMALLEST_BITS) & (b.abs() >= _SMALLEST_BITS)
    as_floats = [t[bits].view(_FLOAT_OF_BITS[a.dtype]) for t in (a, b)]
    return torch.equal(a[~bits], b[~bits]) and close_values(*as_floats)


def close_text(a: str, b: str) -> bool:
    """The same text around floats that are close."""
    floats = [torch.tensor([float(n) for n in _NUMBER.findall(text)]) for text in (a, b)]
    return _NUMBER.split(a) == _NUMBER.split(b) and close_values(*floats)


def equal_values(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Bitwise, except that any NaN equals any NaN; floats of generated kernels within tolerance."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.is_complex():
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    if not a.is_floating_point():
        return torch.equal(a, b) or (not EXACT and close_bits(a, b))
    if not EXACT:
        return close_values(a, b)
    different = (a != b) | (torch.signbit(a) != torch.signbit(b))
    return not bool((different & ~(a.isnan() & b.isnan())).any())


def _short(value: Any) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) < 400 else text[:400] + "…"


def _compare(expected: Any, actual: Any) -> tuple[str, Any, Any] | None:
    """The first difference inside two observations: where, and both sides."""
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        return None if equal_values(expected, actual) else ("", expected, actual)
    if isinstance(expected, dict) and isinstance(actual, dict) and expected.keys() == actual.keys():
        for key in expected:
            found = _compare(expected[key], actual[key])
            if found:
                return f" {key}{found[0]}", found[1], found[2]
        return None
    floats = isinstance(expected, float) and isinstance(actual, float)
    if not EXACT and floats and close_values(torch.tensor([expected]), torch.tensor([actual])):
        return None
    if not EXACT and isinstance(expected, str) and isinstance(actual, str):
        return None if close_text(expected, actual) else ("", expected, actual)
    if (
        type(expected) is type(actual)
        and not isinstance(expected, torch.Tensor)
        and expected == actual
    ):
        return None
    return "", expected, actual


def compare(expected: Trace, actual: Trace, repetition: str) -> Difference | None:
    """The first difference between two records; after a late failure only what came before it
    counts."""
    end = expected.fatal[0] if expected.fatal else None
    left = [e for e in expected.events if end is None or e[0] < end]
    right = [e for e in actual.events if end is None or e[0] < end]
    for (step, what, a), (step2, what2, b) in zip(left, right, strict=False):
        if (step, what) != (step2, what2):
            return Difference(
                repetition,
                min(step, step2),
                "different observations",
                f"step {step} {what}: {_short(a)}",
                f"step {step2} {what2}: {_short(b)}",
            )
        found = _compare(a, b)
        if found:
            return Difference(repetition, step, what + found[0], _short(found[1]), _short(found[2]))
    if expected.fatal != actual.fatal:
        step = min(f[0] for f in (expected.fatal, actual.fatal) if f)
        return Difference(
            repetition, step, "failure on data", _short(expected.fatal), _short(actual.fatal)
        )
    if len(left) != len(right):
        extra = (
            (left + right)[min(len(left), len(right))]
            if not right or not left
            else (left[len(right) :] or right[len(left) :])[0]
        )
        return Difference(
            repetition,
            extra[0],
            "missing or additional observation",
            f"{len(left)} observations",
            f"{len(right)}, around {_short(extra)}",
        )
    return None


def check_program(program: Program, device: str, branch_runs: int = 1) -> Difference | None:
    """Runs a program until it is hot, then its branch, each against the CPU; returns the first
    difference."""
    plan = [(program.steps, run, str(run + 1)) for run in range(REPETITIONS)]
    if program.branch_tail:
        plan += [(program.branch, run, f"branch {run + 1}") for run in range(branch_runs)]
    for steps, run, label in plan:
        expected = run_program(steps, "cpu", run)
        found = compare(expected, run_program(steps, device, run, expected), label)
        if found:
            return found
        wait_for_compiles()
    return None
