"""Runs PyTorch's own tests on device lazy and on the CPU, and compares by test.

    tools/run-pytorch-suites ~/pytorch/test test_view_ops test_unary_ufuncs/10

runs all tests of test_view_ops.py and a tenth of test_unary_ufuncs.py, and prints a table of how
many of those that pass on the CPU pass on lazy. The folder is that of a source tree of PyTorch; one
of another version than the installed one has tests that fail on both. With --repetitions 4 each
test runs four times on lazy, so that its windows get hot. In --results failures.txt lists what
differs, and a log beside each file holds what was printed. A file may be in a folder, as
functorch/test_vmap. With --default-device the tests that are not device-generic run, with the
device as default: what they make by name or with NumPy stays on the CPU, and NumPy gets copies.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from comparison import Comparison, compare, table
from supervise import Suite, run_suite


def suite_and_share(text: str) -> tuple[str, int]:
    """A file, maybe in a folder, and of how many of its tests one is run."""
    name, _, share = text.rpartition("/")
    return (name, int(share)) if name and share.isdecimal() else (text, 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="run-pytorch-suites",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tests", type=Path, help="the folder of PyTorch's tests")
    parser.add_argument(
        "suites", nargs="+", metavar="suite[/n]", help="a file; one test in n of it"
    )
    parser.add_argument("--device", default="lazy")
    parser.add_argument("--default-device", action="store_true", help="run the tests for no device")
    parser.add_argument("--repetitions", type=int, default=1, help="of each test on the device")
    parser.add_argument("--seconds", type=float, default=120, help="most for one test")
    parser.add_argument("--results", type=Path, default=Path("build/pytorch-suites"))
    parser.add_argument("--resume", action="store_true", help="keep results that are there")
    arguments = parser.parse_args()

    results = arguments.results.resolve()
    results.mkdir(parents=True, exist_ok=True)
    comparisons: list[Comparison] = []
    for text in arguments.suites:
        name, one_in = suite_and_share(text)
        file = (arguments.tests / f"{name}.py").resolve()
        suite = Suite(file, one_in, arguments.default_device)
        if not suite.file.exists():
            parser.error(f"{suite.file} does not exist: give the folder `test` of PyTorch's source")
        files = {}
        for device, repetitions in (("cpu", 1), (arguments.device, arguments.repetitions)):
            files[device] = results / f"{suite.title}-{one_in}-{device}-{repetitions}.jsonl"
            if not arguments.resume:
                files[device].unlink(missing_ok=True)
            run_suite(suite, device, files[device], repetitions, arguments.seconds)
        comparisons.append(compare(name, suite.one_in, files["cpu"], files[arguments.device]))
    failures = [f"{c.suite} {test}: {why}" for c in comparisons for test, why in c.failures.items()]
    (results / "failures.txt").write_text("".join(f"{line}\n" for line in failures))
    print(table(comparisons))


if __name__ == "__main__":
    main()
