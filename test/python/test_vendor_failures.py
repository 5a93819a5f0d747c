"""What a backend from outside does wrong stays its own: windows fall back or raise its error, and
the process computes, forks and ends as ever."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from vendor import install, run_with

pytestmark = pytest.mark.recording


@pytest.fixture
def vendor(vendor_libraries, tmp_path) -> Path:
    """A folder with an installed package that brings the backend `vendor`."""
    install(tmp_path, "vendor", vendor_libraries / "libvendor_backend.so", "vendor_package")
    return tmp_path


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("compile raises", "this graph is too much"),
        ("compile raises bad_alloc", "std::bad_alloc"),
        ("compile raises a number", "it raised something that is no std::exception"),
        ("compile returns nothing", "it returned no executable"),
    ],
)
def test_a_window_that_is_not_compiled_runs_node_by_node(vendor, mode, reason):
    done = run_with(
        vendor,
        "print(hot(torch.ones(2).to('lazy')).tolist())\n"
        "metrics = torch.lazy.metrics()\n"
        "print(metrics['windows_run'] > 0, metrics['fallbacks'])",
        TORCH_LAZY_BACKEND="vendor",
        VENDOR_BACKEND=mode,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[3.0, 3.0]", "True {'window not compiled': 1}"]
    warning = "backend 'vendor' does not compile a window, which runs node by node instead: "
    assert warning + reason in done.stderr


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("run raises", "the accelerator is on fire"),
        ("run raises a number", "backend 'vendor' raised something that is no std::exception"),
        ("wrong dtype", "returned as output 0 of 1 Long [2]"),
        ("wrong sizes", "returned as output 0 of 1 Float [2, 1]"),
        ("wrong strides", "Float [2] with strides [2]"),
        ("no storage", "on meta"),
        ("small storage", "in a storage of 1 bytes"),
        ("part of a storage", "in a storage of 12 bytes from element 1"),
        ("nothing", "returned as output 0 of 1 nothing; recorded was Float [2] with strides [1]"),
        ("too few outputs", "returned 0 outputs of a window that has 1"),
        ("failure of no operation", "failure of an operation that the window does not have"),
        ("failure without error", "reported a failure without its error"),
    ],
)
def test_a_wrong_result_is_the_windows_error_and_no_values(vendor, mode, reason):
    done = run_with(
        vendor,
        "import os\n"
        "x = torch.ones(2).to('lazy')\n"
        "hot(x)\n"
        f"os.environ['VENDOR_BACKEND'] = {mode!r}\n"
        "y = (x * 2 + 1).relu()\n"
        "for read in range(2):\n"
        "    try:\n        print(y.tolist())\n"
        "    except RuntimeError as error:\n        print(str(error).splitlines()[0])\n"
        "del os.environ['VENDOR_BACKEND']\n"
        "print(hot(x).tolist())",
        TORCH_LAZY_BACKEND="vendor",
    )

    assert done.returncode == 0, done.stderr
    first, again, afterwards = done.stdout.splitlines()
    assert reason in first
    assert again == first  # the tensor is poisoned
    assert afterwards == "[3.0, 3.0]"


def test_a_backend_that_cannot_trim_goes_on(vendor):
    done = run_with(
        vendor,
        "import time\n"
        "x = torch.ones(2).to('lazy')\n"
        "hot(x)\n"
        "time.sleep(0.5)  # the pause after which the backend is asked\n"
        "print(hot(x).tolist())",
        TORCH_LAZY_BACKEND="vendor",
        VENDOR_BACKEND="trim raises a number",
    )

    assert (done.returncode, done.stdout) == (0, "[3.0, 3.0]\n"), done.stderr


def test_a_compile_that_hangs_is_named_and_no_fork_and_no_exit_waits_for_it(vendor):
    done = run_with(
        vendor,
        """
import os, time
x = torch.ones(2).to('lazy')
for _ in range(3):
    y = (x * 2 + 1).relu()
    torch.lazy.synchronize()
while 'compile takes long' not in torch.lazy.metrics()['fallbacks']:
    print('finished', torch.lazy.wait_for_compiles(timeout=0.5))
start = time.monotonic()
child = os.fork()
if child == 0:
    os._exit(0 if (x + 1).tolist() == [2, 2] and torch.lazy.wait_for_compiles(5) else 1)
print('child', os.waitpid(child, 0)[1], 'waited', time.monotonic() - start > 20)
print((x * 2 + 1).relu().tolist())
print(time.time())
""",
        TORCH_LAZY_BACKEND="vendor",
        VENDOR_BACKEND="compile hangs",
        TORCH_LAZY_COMPILE_SECONDS="1",
    )

    assert done.returncode == 0, done.stderr
    *waits, child, values, end = done.stdout.splitlines()
    assert time.time() - float(end) < 20
    assert set(waits) == {"finished False"}
    assert (child, values) == ("child 0 waited False", "[3.0, 3.0]")
    assert done.stderr.count("backend 'vendor' has been compiling graph ") == 1


def test_a_compile_beyond_the_limit_may_still_end_and_is_used(vendor):
    done = run_with(
        vendor,
        "print(hot(torch.ones(2).to('lazy')).tolist())\n"
        "print(torch.lazy.metrics()['windows_run'] > 0, torch.lazy.metrics()['fallbacks'])",
        TORCH_LAZY_BACKEND="vendor",
        VENDOR_BACKEND="compile takes 3 s",
        TORCH_LAZY_COMPILE_SECONDS="1",
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[3.0, 3.0]", "True {'compile takes long': 1}"]


def test_the_process_ends_well_with_a_backend_whose_end_would_not(vendor):
    """Its destructor aborts, and so does every call once its statics are gone: also of a compile
    that is under way when the process ends."""
    done = run_with(
        vendor,
        "x = torch.ones(2).to('lazy')\n"
        "hot(x)\n"
        "import os\n"
        "os.environ['VENDOR_BACKEND'] = 'compile takes 3 s'\n"
        "for _ in range(3):\n"
        "    y = (x - 5).exp()\n"
        "    torch.lazy.synchronize()\n"
        "print('ends', torch.lazy.wait_for_compiles(timeout=0))",
        TORCH_LAZY_BACKEND="vendor",
    )

    assert (done.returncode, done.stdout) == (0, "ends False\n"), done.stderr
