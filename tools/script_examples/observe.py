"""Runs a script as the user would, and notes what a comparison needs: what it prints, the weights
of the models that it moved to its device, and the time since the first of them was moved.

    python observe.py RESULT DEVICE [--round-otherwise] SCRIPT ARGUMENT...

`torch.accelerator` is the device. It is that on the CPU too, so that a script that looks for an
accelerator does the same there: some shuffle their data only where they find one. With
--round-otherwise each weight is moved by about a unit of its last place before the first backward
pass.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import runpy
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

# Backward passes before which the device's compiles are waited for: soon enough for short scripts
# to run by kernels, and again for what shows only later.
WAITS = {5, 10, 20, 40, 80, 160, 320}


class Observations:
    """Of the models that the script moves to a device, and of its backward passes."""

    def __init__(self, device: str, round_otherwise: bool) -> None:
        self.models: list[torch.nn.Module] = []
        self._known: set[torch.nn.Module] = set()  # with the models' parts
        self.start: float | None = None
        self.waited = 0.0  # seconds for compiles
        self._device = device
        self._passes = 0
        self._round_otherwise = round_otherwise
        # Of its own, so that the script draws the same numbers.
        self._generator = torch.Generator().manual_seed(0)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        move, backward = torch.nn.Module._apply, torch.Tensor.backward

        def observed_move(module: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
            self._moved(module)
            return move(module, *args, **kwargs)

        def observed_backward(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> None:
            self._before_backward()
            backward(tensor, *args, **kwargs)

        torch.nn.Module._apply = observed_move  # type: ignore[method-assign]
        torch.Tensor.backward = observed_backward  # type: ignore[assignment]
        try:
            yield
        finally:
            torch.nn.Module._apply = move  # type: ignore[method-assign]
            torch.Tensor.backward = backward  # type: ignore[method-assign]

    def _before_backward(self) -> None:
        self._passes += 1
        if self._round_otherwise and self._passes == 1:
            for model in self.models:
                for parameter in map(_local, model.parameters()):
                    signs = torch.randint(0, 2, parameter.shape, generator=self._generator) * 2 - 1
                    rounding = 0.503 * torch.finfo(parameter.dtype).eps * signs.double()
                    # Of the data, which autograd does not see.
                    parameter.data.mul_((1 + rounding).to(parameter.dtype))
        if self._device == "lazy" and self._passes in WAITS:
            start = time.perf_counter()
            torch.lazy.wait_for_compiles()
            self.waited += time.perf_counter() - start

    def _moved(self, model: torch.nn.Module) -> None:
        self.start = self.start or time.perf_counter()
        if model not in self._known:
            self.models.append(model)
        self._known.update(model.modules())

    def weights(self) -> list[torch.Tensor]:
        tensors = [t for model in self.models for t in model.state_dict().values()]
        return [t.detach().cpu().double() for t in map(_local, tensors) if t.is_floating_point()]


def _local(tensor: torch.Tensor) -> torch.Tensor:
    """This process's part of a tensor that several share."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


class Tee(io.StringIO):
    """Keeps what is printed and prints it."""

    def write(self, text: str) -> int:
        sys.__stdout__.write(text)  # type: ignore[union-attr]
        return super().write(text)


def make_the_cpu_an_accelerator() -> None:
    """For the functions that the scripts and DataLoader call."""
    replacements: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_accelerator": lambda check_available=False: torch.device("cpu"),
        "current_device_index": lambda: 0,
        "set_device_index": lambda device: None,
        "synchronize": lambda device=None: None,
    }
    for name, replacement in replacements.items():
        setattr(torch.accelerator, name, replacement)
    torch.Tensor.pin_memory = lambda self, device=None: self  # type: ignore[method-assign]


def main() -> None:
    result, device, *rest = sys.argv[1:]
    round_otherwise = rest[0] == "--round-otherwise"
    sys.argv = rest[round_otherwise:]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    if device == "cpu":
        make_the_cpu_an_accelerator()
    observations, printed = Observations(device, round_otherwise), Tee()
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    start = time.perf_counter()
    with observations.watching(), contextlib.redirect_stdout(printed):
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise
    weights = observations.weights()
    seconds = time.perf_counter() - (observations.start or start) - observations.waited
    if os.environ.get("RANK", "0") == "0":
        save(result, device, printed.getvalue(), weights, seconds, observations.waited)
    if "RANK" in os.environ:
        # On any device, PyTorch may abort a process that ends soon after its last collective.
        sys.stdout.flush()
        os._exit(0)


def save(
    result: str,
    device: str,
    printed: str,
    weights: list[torch.Tensor],
    seconds: float,
    waited: float,
) -> None:
    deferred = 0.0
    if device == "lazy":
        counts = torch.lazy.metrics()
        deferred = counts["deferred"] / max(1, counts["deferred"] + counts["eager"])
    torch.save(
        {
            "printed": printed,
            "weights": weights,
            "seconds": seconds,
            "waited": waited,
            "deferred": deferred,
        },
        result,
    )


if __name__ == "__main__":
    main()
