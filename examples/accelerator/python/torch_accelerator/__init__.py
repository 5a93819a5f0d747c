"""An accelerator made of the CPU: an example of a device of one's own.

Importing this package registers device `accel` and the module `torch.accel`, which PyTorch calls as
it calls `torch.cuda`; where the package is installed, `import torch` does it. A module that was
built without eager kernels (`-DACCELERATOR_EAGER=OFF`) registers neither.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from pathlib import Path

import torch

from torch_accelerator import accel

_FOLDER = Path(__file__).parent
torch.ops.load_library(_FOLDER / "libtorch_accelerator.so")
_driver = torch.ops.torch_accelerator

__all__ = ["backend_library", "inject", "synchronize"]


def inject(
    failing_command: int = 0,
    failing_allocation: int = 0,
    longest_delay: int = 0,
    seed: int = 0,
) -> None:
    """Makes the device go wrong on purpose, and replaces what was injected before.

    Args:
        failing_command: fails the n-th command from now on, 0 none. Its error is raised by whatever
            waits for the device next.
        failing_allocation: fails the n-th allocation from now on, 0 none.
        longest_delay: every command starts late by a random time of at most so many microseconds.
        seed: where the random times start.
    """
    _driver.inject(failing_command, failing_allocation, longest_delay, seed)


def synchronize() -> None:
    """Waits until all commands have run, and raises the error of one that failed."""
    _driver.synchronize()


def backend_library() -> str:
    """The library with the backend ``accel`` of torch_lazy, which calls this when it is chosen."""
    return str(_FOLDER / "libtorch_accelerator_backend.so")


def _from_environment() -> dict[str, int]:
    """What ACCEL_FAILING_COMMAND, ACCEL_FAILING_ALLOCATION, ACCEL_LONGEST_DELAY, ACCEL_SEED say."""
    names = ("failing_command", "failing_allocation", "longest_delay", "seed")
    return {name: int(os.environ.get(f"ACCEL_{name.upper()}", "0")) for name in names}


def _autoload() -> None:
    """Called by `import torch`; importing this package has done the work."""


@atexit.register
def _finish() -> None:
    """No command may run while the process is taken down."""
    if not accel._is_in_bad_fork():
        with contextlib.suppress(RuntimeError):  # nobody is left to tell
            synchronize()


inject(**_from_environment())

if hasattr(_driver, "register_device"):
    _driver.register_device()
    torch._register_device_module("accel", accel)
    torch.utils.generate_methods_for_privateuse1_backend()
    from torch_accelerator import recurrent_cells as recurrent_cells
