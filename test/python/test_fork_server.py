"""Workers that are forked from a process that has imported torch: each is as a fresh one would
be."""

from __future__ import annotations

import signal
import tempfile

import pytest
from behaviour import run_forked

from torch_lazy.conformance.fork_server import ForkServer

pytestmark = pytest.mark.recording


def test_a_worker_computes_on_the_device():
    done = run_forked("-c", "import torch; print((torch.ones(2).to('lazy') + 1).tolist())")

    assert (done.returncode, done.stdout, done.stderr) == (0, "[2.0, 2.0]\n", "")


def test_a_worker_has_its_own_environment_arguments_and_packages(tmp_path):
    (tmp_path / "package_of_test.py").write_text("import sys; print(sys.argv[1:], __name__)\n")

    settings = {"PYTHONPATH": str(tmp_path), "TORCH_LAZY_BACKEND": "reference"}
    module = run_forked("-m", "package_of_test", "one", 2, **settings)
    code = run_forked(
        "-c", "import torch, package_of_test; print(torch.lazy.config.backend)", "one", **settings
    )

    assert module.stdout == "['one', '2'] __main__\n", module.stderr
    assert code.stdout == "['one'] package_of_test\nreference\n", code.stderr


def test_a_worker_may_do_without_devices():
    code = "import sys; print('torch' in sys.modules, 'torch_lazy' in sys.modules)"

    assert run_forked("-c", code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout == "True False\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise SystemExit(3)", 3),
        ("import missing_module", 1),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
    ],
)
def test_how_a_worker_ends_is_told(code, expected):
    assert run_forked("-c", code).returncode == expected


def test_workers_run_beside_each_other():
    echo = "for line in open(0): print(line, end='', flush=True)"
    with ForkServer() as server, tempfile.TemporaryFile("w+") as errors:
        first, second = (server.start(["-c", echo], {}, errors) for _ in range(2))
        for worker in (second, first):
            worker.stdin.write("line\n")
            worker.stdin.flush()

            assert worker.stdout.readline() == "line\n"

        with pytest.raises(TimeoutError):
            first.wait(0.1)
        second.stdin.close()
        first.kill()
        assert (second.wait(), first.wait()) == (0, -signal.SIGKILL)


def test_something_else_than_a_module_or_code_is_refused():
    with (
        ForkServer() as server,
        tempfile.TemporaryFile("w+") as errors,
        pytest.raises(ValueError, match="a worker begins with -m or with -c, not with '-W'"),
    ):
        server.start(["-W", "ignore"], {}, errors)
