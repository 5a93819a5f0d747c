"""Workers that are forked from a process that has imported torch: each is as a fresh one would
be."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import pytest
from behaviour import run_forked

from torch_lazy.conformance.fork_server import ForkServer
from torch_lazy.conformance.isolated import run_isolated

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
    with ForkServer() as server:
        first, second = (server.start(["-c", echo], {}, None) for _ in range(2))
        for worker in (second, first):
            worker.stdin.write("line\n")
            worker.stdin.flush()

            assert worker.stdout.readline() == "line\n"

        with pytest.raises(TimeoutError):
            first.wait(0.1)
        second.stdin.close()
        first.kill()
        assert (second.wait(), first.wait()) == (0, -signal.SIGKILL)


def wait_until_gone(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            time.sleep(0.01)


def test_a_worker_that_has_ended_may_be_killed():
    with ForkServer() as server:
        worker = server.start(["-c", "pass"], {}, None)
        wait_until_gone(worker.pid)

        worker.kill()

        assert worker.wait() == worker.wait() == 0


def test_a_worker_that_dies_while_nothing_is_asked_costs_the_next_item():
    code = "from torch_lazy.conformance.isolated import serve; import os\n"
    code += "serve(lambda item: os.getpid())"
    died = []
    with ForkServer() as server:

        def start(errors):
            return server.start(["-c", code], os.environ, errors)

        def report(outcome):
            died.append(outcome.died)
            if outcome.result:
                os.kill(outcome.result, signal.SIGKILL)
                wait_until_gone(outcome.result)

        run_isolated(start, ["first", "second"], report, timeout=30, quiet=True)

    assert died == [None, "the process died: SIGKILL"]


def test_a_server_that_died_is_told():
    with ForkServer() as server:
        worker = server.start(["-c", "open(0).read()"], {}, None)
        server.process.kill()

        with pytest.raises(RuntimeError, match="the process that starts workers has died"):
            worker.wait()
        with pytest.raises(RuntimeError, match="the process that starts workers has died"):
            server.start(["-c", "pass"], {}, None)


def test_something_else_than_a_module_or_code_is_refused():
    with pytest.raises(ValueError, match="begins with -m or with -c, not with '-W'"):
        ForkServer().start(["-W", "ignore"], {}, None)
