"""Runs the tests of one of PyTorch's test files on a device, in this process.

These are the device-generic ones, or the others, which name no device and run on the default one.

Each test writes a line of JSON when it starts and one when it ends, so that who started this
process knows which test it died in. Tests that the file of results names already are not run.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import json
import os
import re
import sys
import time
import traceback
import unittest
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import torch
from as_the_cpu import instantiate_for
from torch.testing._internal.common_utils import TestCase

import torch_lazy

MOST_CHARACTERS = 6000  # of the end of a traceback


def repeat_tests(repetitions: int) -> None:
    """Make each test run so often, with all compiled by then that the earlier times recorded.

    The suites seed the generators before each test, so that its windows are the same every time.
    """
    run_once = TestCase.run

    def run(self: Any, result: Any = None) -> None:
        for _ in range(repetitions):
            run_once(self, result)
            if result.outcome["outcome"] != "passed":
                return
            # The error of a deferred operation that the test did not look at.
            with contextlib.suppress(Exception):
                torch_lazy.synchronize()
            torch_lazy.wait_for_compiles()

    TestCase.run = run


def copy_for_numpy() -> None:
    """Make NumPy and SciPy take tensors of the device, which tests for the CPU hand to them."""
    in_memory = torch.Tensor.numpy

    def numpy(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return in_memory(self.cpu() if self.device.type == "lazy" else self, *args, **kwargs)

    torch.Tensor.numpy = numpy


class Recorder(unittest.TestResult):
    """Writes what comes of each test as lines of JSON; the last line of a test is what counts."""

    def __init__(self, out: TextIO, default_device: str | None) -> None:
        super().__init__()
        self.out = out
        self.default_device = default_device

    def write(self, test: unittest.TestCase, **fields: Any) -> None:
        print(json.dumps({"test": name_of(test), **fields}), file=self.out, flush=True)

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.began = time.monotonic()
        self.outcome: dict[str, Any] = {"outcome": "passed"}
        self.write(test, outcome="started")
        torch.set_default_device(self.default_device)

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        torch.set_default_device(None)
        self.write(test, **self.outcome, seconds=round(time.monotonic() - self.began, 2))

    def addError(self, test: Any, error: Any) -> None:
        text = "".join(traceback.format_exception(*error))
        if not isinstance(test, unittest.TestCase):
            raise RuntimeError(f"{test} failed:\n{text}")  # what prepares a class of tests
        self.outcome = {"outcome": "failed", "reason": text[-MOST_CHARACTERS:]}

    addFailure = addError

    def addSubTest(self, test: Any, subtest: Any, error: Any) -> None:
        if error is not None:
            self.addError(test, error)

    def addSkip(self, test: Any, reason: str) -> None:
        self.outcome = {"outcome": "skipped", "reason": reason}

    def addExpectedFailure(self, test: Any, error: Any) -> None:
        self.outcome = {"outcome": "expected failure"}

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.outcome = {"outcome": "unexpected success"}


def name_of(test: unittest.TestCase) -> str:
    """The name of a test without that of its device: the same on every device."""
    device = getattr(test, "device_type", None)
    if device is None:
        return f"{type(test).__name__}.{test._testMethodName}"
    class_name = type(test).__name__.removesuffix(device.upper())
    # The last one is the device's: a test may be named after one, as `test_lazy_clone` is.
    return f"{class_name}." + re.sub(f"^(.*)_{device}(?![a-z])", r"\1", test._testMethodName)


def tests_of(module: ModuleType, device_type: str | None) -> Iterator[unittest.TestCase]:
    """The tests for a device, or those for none."""
    loader = unittest.TestLoader()
    for cls in list(vars(module).values()):
        if not isinstance(cls, type) or not issubclass(cls, unittest.TestCase):
            continue
        if getattr(cls, "device_type", None) == device_type:
            yield from (cls(name) for name in loader.getTestCaseNames(cls))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--one-in", type=int, required=True)
    parser.add_argument("--repetitions", type=int, required=True)
    parser.add_argument("--default-device", action="store_true")
    arguments = parser.parse_args()

    faulthandler.enable()
    os.chdir(arguments.file.parent)
    # The tests import one another, and from the folder above theirs.
    sys.path[:0] = [str(arguments.file.parent), str(arguments.file.parent.parent)]
    instantiate_for(arguments.device)
    module = importlib.import_module(arguments.file.stem)

    known = set()
    if arguments.results.exists():
        lines = map(json.loads, arguments.results.read_text().splitlines())
        outcomes = {line["test"]: line["outcome"] for line in lines}
        known = {test for test, outcome in outcomes.items() if outcome != "started"}
    suite = unittest.TestSuite()
    default = arguments.device if arguments.default_device else None
    for test in tests_of(module, None if default else arguments.device):
        name = name_of(test)
        if zlib.crc32(name.encode()) % arguments.one_in == 0 and name not in known:
            suite.addTest(test)
    if default is not None:
        copy_for_numpy()
    if arguments.repetitions > 1:
        repeat_tests(arguments.repetitions)
    with arguments.results.open("a") as out:
        suite.run(Recorder(out, default))


if __name__ == "__main__":
    main()
