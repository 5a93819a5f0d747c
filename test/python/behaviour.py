"""Helpers for the behaviour tests: make a function hot, compare tensors, run a script in a process
of its own."""

from __future__ import annotations

import atexit
import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

try:
    import torch_lazy
    from torch_lazy.conformance.fork_server import ForkServer
except ImportError:  # the tests also run on the CPU alone, to test themselves
    torch_lazy = None

LAZY = "lazy"
# Where lazy tensors live: its operators are what theirs do.
EXECUTION_DEVICE = (torch_lazy.config.device if torch_lazy else "") or "cpu"
RUNS_UNTIL_HOT = 4  # cold, warm, hot; one more to be past the border


class Operators(TorchDispatchMode):
    """The names of the operators that run under the mode."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def wait_for_compiles() -> None:
    """Makes what is compiled in the background ready, so that the next pass of a loop is hot for
    certain."""
    if torch_lazy is not None:
        torch_lazy.wait_for_compiles()


def synchronize() -> None:
    if torch_lazy is not None:
        torch_lazy.synchronize()


def hot(fn: Callable[..., Any], *args: Any, runs: int = RUNS_UNTIL_HOT) -> Any:
    """Calls `fn` until its operations are deferred; returns the last result. Each call is a window
    of its own."""
    result = None
    for _ in range(runs):
        result = None  # as in a loop: the previous result is gone before the next is made
        synchronize()
        result = fn(*args)
        synchronize()
        wait_for_compiles()
    return result


def losses_of_training(
    device: str, model: torch.nn.Module, x: torch.Tensor, *, lr: float, steps: int
) -> torch.Tensor:
    """The losses of steps that make the model give back `x`, every compile finished in between."""
    model, x = model.to(device), x.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if device == LAZY:
            wait_for_compiles()
    return torch.tensor(losses)


def run_hot(fn: Callable[..., Any], *inputs: torch.Tensor) -> Any:
    """The result on the device once its window is hot."""
    on_device = [value.to(LAZY) for value in inputs]
    hot(fn, *on_device)
    before = torch_lazy.metrics()["windows"]["hot"]
    result = fn(*on_device)
    synchronize()
    assert torch_lazy.metrics()["windows"]["hot"] > before
    return result


def library_calls(fn: Callable[..., Any], *inputs: torch.Tensor) -> list[str]:
    """The operators that its hot window leaves to the library."""
    run_hot(fn, *inputs)
    on_device = [value.to(LAZY) for value in inputs]
    with torch_lazy.profile() as profile:
        fn(*on_device)
        synchronize()
    return [step.name for step in profile.summary.steps if step.name.startswith("aten::")]


def each_run(fn: Callable[..., Any], *args: Any, runs: int = RUNS_UNTIL_HOT) -> list[Any]:
    """As `hot`, but keeps the results of every pass, the first, eager one included."""
    results = []
    for _ in range(runs):
        synchronize()
        results.append(fn(*args))
        synchronize()
        wait_for_compiles()
    return results


def values_agree(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    """Bit for bit on the reference backend; generated kernels round some functions otherwise
    (docs/accuracy.md), by a few units in the last place of the largest element."""
    rtol = 0.0
    if torch_lazy is not None and torch_lazy.config.backend != "reference":
        rtol = {torch.float64: 1e-12, torch.float32: 2e-6}.get(expected.dtype, 0.0)
        if expected.dtype in (torch.float16, torch.bfloat16):
            rtol = 2 * torch.finfo(expected.dtype).eps
    finite = expected[expected.isfinite()] if rtol else expected
    atol = rtol * float(finite.abs().max()) if rtol and finite.numel() else 0.0
    return bool(torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=True).all())


CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def differences(actual: torch.Tensor, expected: torch.Tensor) -> list[str]:
    """What an observer can tell apart, apart from the device. NaN equals NaN."""
    found = []
    for what in ("shape", "dtype", "requires_grad", "is_leaf"):
        if getattr(actual, what) != getattr(expected, what):
            found.append(f"{what}: {getattr(actual, what)}, expected {getattr(expected, what)}")
    for what in ("stride", "storage_offset", "is_contiguous", "is_conj", "is_neg"):
        if getattr(actual, what)() != getattr(expected, what)():
            found.append(f"{what}: {getattr(actual, what)()}, expected {getattr(expected, what)()}")
    if not found and expected.dim() in CHANNELS_LAST:
        form = CHANNELS_LAST[expected.dim()]
        is_so = expected.is_contiguous(memory_format=form)
        if actual.is_contiguous(memory_format=form) != is_so:
            found.append(f"contiguous in {form}: {not is_so}, expected {is_so}")
    if not found:
        a, b = actual.detach().cpu(), expected.detach().cpu()
        if not values_agree(a, b):
            found.append(f"values: {a}, expected {b}")
    return found


def same(actual: Any, expected: Any) -> None:
    """Asserts that tensors (or lists and dicts of them) are equal in values and metadata."""
    if isinstance(expected, torch.Tensor):
        assert isinstance(actual, torch.Tensor), f"{actual!r} is no tensor"
        assert not differences(actual, expected), "\n".join(differences(actual, expected))
    elif isinstance(expected, dict):
        assert actual.keys() == expected.keys()
        for key in expected:
            same(actual[key], expected[key])
    elif isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected)
        for a, b in zip(actual, expected, strict=False):
            same(a, b)
    else:
        assert actual == expected


def same_on(device: str, fn: Callable[[str], Any], runs: int = RUNS_UNTIL_HOT) -> None:
    """Asserts that `fn(device)` gives in every pass, cold to hot, what `fn("cpu")` gives."""
    torch.manual_seed(0)
    expected = fn("cpu")
    for run in range(runs):
        torch.manual_seed(0)
        synchronize()
        actual = fn(device)
        try:
            same(actual, expected)
        except AssertionError as error:
            raise AssertionError(f"run {run + 1}: {error}") from None
        del actual
        wait_for_compiles()


# Ends a script whose threads of PyTorch's may abort a process that Python takes apart: autograd's
# for a device, and gloo's, which outlive `destroy_process_group()` where a model was distributed
# (https://github.com/pytorch/pytorch/issues/190489).
LEAVE = "\nimport os, sys\nsys.stdout.flush()\nos._exit(0)\n"


def of_all_workers(factory: pytest.TempPathFactory) -> Path:
    """A folder for the whole test run, which its workers share."""
    folder = factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


def run_script(
    code: str, timeout: float = 120.0, anew: bool = True, **environment: str
) -> subprocess.CompletedProcess:
    """Runs Python code in a process that is started anew, or in a forked one (see run_forked); its
    output is captured as text."""
    if not anew:
        return run_forked("-c", code, timeout=timeout, **environment)
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
        check=False,
    )


@functools.cache
def _fork_server() -> ForkServer:
    server = ForkServer()
    atexit.register(server.__exit__)
    return server.__enter__()


def run_forked(
    *arguments: object, timeout: float = 600.0, merge: bool = False, **environment: str
) -> subprocess.CompletedProcess:
    """What `python ARGUMENTS` (`-c CODE` or `-m MODULE`) does, in a process that has imported torch
    already: in half a second and not in four. The environment may tell it what torch_lazy, backends
    and their devices read, of which the rest is that of the first such process. Not for what has to
    be the same in processes that are started apart: their addresses and hashes differ. With `merge`
    its errors are within its output."""
    command = [str(argument) for argument in arguments]
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        worker = _fork_server().start(
            command, {**os.environ, **environment}, stdout if merge else stderr, stdout
        )
        worker.stdin.close()
        try:
            code = worker.wait(timeout)
        except TimeoutError:
            worker.kill()
            worker.wait()
            raise
        printed = []
        for stream in (stdout, stderr):
            stream.seek(0)
            printed.append(stream.read())
    return subprocess.CompletedProcess(command, code, *printed)


def deferred(fn, *args) -> int:
    """Operations that `fn` left pending, not run at the call."""
    synchronize()
    before = torch_lazy.metrics()["deferred"]
    result = fn(*args)
    count = torch_lazy.metrics()["deferred"] - before
    del result
    synchronize()
    return count
