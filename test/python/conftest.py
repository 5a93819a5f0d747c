"""Shared by all behaviour tests: the device under test, and helpers that make code hot and compare
tensors.

The device is `lazy` unless `--device` or TORCH_LAZY_TEST_DEVICE says otherwise; `--device cpu`
tests the tests.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# Eager on the CPU is what tests compare with, its random numbers included, in their child processes
# too. test_random.py is about the others.
os.environ.setdefault("TORCH_LAZY_RNG", "eager")

# Tensors of tests are small: kernels rematerialize values of any size where that is cheaper.
os.environ.setdefault("TORCH_LAZY_REMATERIALIZE_BYTES", "1")

# Kernels are kept for the child processes of this run, and not beside the user's.
os.environ["TORCH_LAZY_CACHE_DIR"] = tempfile.mkdtemp(prefix="torch_lazy_test_")

# Hot windows of tests run by kernels: library calls are what they are compared with.
# test_measured_choice.py is about choosing between them.
os.environ.setdefault("TORCH_LAZY_MEASURED_CHOICE", "0")

# Whether an operation of a test is recorded depends on no time. test_bypass.py is about that.
os.environ.setdefault("TORCH_LAZY_BYPASS", "0")

# Tests count what is recorded for the first time. test_remembered_traces.py is about the others.
os.environ.setdefault("TORCH_LAZY_REMEMBER_TRACES", "0")

# A pass that breaks the form of a graph is found by the pass's name.
os.environ.setdefault("TORCH_LAZY_VERIFY_PASSES", "1")

import example_accelerator
import torch
import vendor
from behaviour import EXECUTION_DEVICE, LAZY, torch_lazy
from ranks import Ranks

_WITHOUT_KERNELS = next(
    (b.error for b in (torch_lazy.backends() if torch_lazy else []) if b.name == "cpu"), None
)

# The backend that stands in for `cpu` is chosen, here and in child processes: no warning of it then
# gets among their output.
if _WITHOUT_KERNELS and os.environ.setdefault("TORCH_LAZY_BACKEND", "reference") == "reference":
    torch_lazy.config.backend = "reference"


def pytest_addoption(parser: pytest.Parser) -> None:
    default = os.environ.get("TORCH_LAZY_TEST_DEVICE", "lazy")
    parser.addoption("--device", default=default, help="device under test")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "recording: is about recording and deferring, which only the lazy device does"
    )
    config.addinivalue_line("markers", "kernels: is about kernels that backend `cpu` compiles")
    config.addinivalue_line(
        "markers", "on_cpu(reason): holds only where lazy tensors live on the CPU, for that reason"
    )


_broken_graphs: list[str] = []


def pytest_warning_recorded(warning_message: warnings.WarningMessage) -> None:
    """What a pass broke runs node by node, and no test would see that by its values."""
    if re.search("broke the graph|loop IR of kernel", str(warning_message.message)):
        _broken_graphs.append(str(warning_message.message))


def pytest_sessionfinish(session: pytest.Session) -> None:
    for message in _broken_graphs:
        print(f"\n{message}", file=sys.stderr)
    if _broken_graphs and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(os.environ["TORCH_LAZY_CACHE_DIR"], ignore_errors=True)


# Fixtures that are of no use where lazy tensors live on another device than the CPU.
ON_CPU = {
    **dict.fromkeys(["two", "four"], "gloo communicates the host's memory"),
    **dict.fromkeys(
        ["accelerator_site", "offload_site", "vendor_libraries"], "brings a device of its own"
    ),
}


def _why_on_cpu(item: pytest.Item) -> list[str]:
    """Why lazy tensors have to live on the CPU for the test."""
    reasons = [marker.args[0] for marker in item.iter_markers("on_cpu")]
    return reasons + [ON_CPU[name] for name in getattr(item, "fixturenames", ()) if name in ON_CPU]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if EXECUTION_DEVICE == "cuda":
        # Seeds wait for that, and would then set the generator again in the middle of a test: the
        # fake device shares the CPU's.
        torch.cuda.init()
    if EXECUTION_DEVICE != "cpu":
        for item in items:
            for reason in _why_on_cpu(item):
                item.add_marker(pytest.mark.skip(reason=reason))
    reasons = {}
    if not config.getoption("--device").startswith(LAZY):
        reasons["recording"] = (
            "needs a device that records: metrics and deferred errors have no meaning on another"
        )
    if _WITHOUT_KERNELS:
        reasons["kernels"] = f"needs backend 'cpu': {_WITHOUT_KERNELS}"
    for item in items:
        for marker, reason in reasons.items():
            if marker in item.keywords:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def device(request: pytest.FixtureRequest) -> str:
    """The name of the device under test."""
    return request.config.getoption("--device")


def _world(size: int) -> Iterator[Ranks]:
    ranks = Ranks(size)
    yield ranks
    ranks.close()


@pytest.fixture(scope="module")
def two() -> Iterator[Ranks]:
    """Two processes that communicate."""
    yield from _world(2)


@pytest.fixture(scope="module")
def four() -> Iterator[Ranks]:
    """Four processes that communicate."""
    yield from _world(4)


@pytest.fixture(scope="session")
def vendor_libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with backends in libraries of their own (test/vendor_backend)."""
    return vendor.build(tmp_path_factory)


@pytest.fixture(scope="session")
def accelerator_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip has installed the example accelerator."""
    return example_accelerator.install(tmp_path_factory, eager=True)


@pytest.fixture(scope="session")
def offload_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip has installed the example accelerator without kernels for PyTorch."""
    return example_accelerator.install(tmp_path_factory, eager=False)


@pytest.fixture(autouse=True)
def _fresh_state():
    """Equal random numbers for every test; no setting and no error left for the next one."""
    torch.manual_seed(0)
    defer = torch_lazy.config.defer if torch_lazy else None
    yield
    if torch_lazy is not None:
        torch_lazy.config.defer = defer
        with contextlib.suppress(Exception):  # the test that caused it has judged it already
            torch_lazy.synchronize()
