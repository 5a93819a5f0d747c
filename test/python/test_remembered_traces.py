"""Windows that one process ran often, and the next one compiles when it first records them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from behaviour import run_script

pytestmark = pytest.mark.recording

# A window of its own, and then one for each step, of which a number changes.
SCRIPT = """
import json, torch
x, w = torch.ones(4, 4, device="lazy"), torch.zeros(4, 4, device="lazy")
expected = torch.zeros(4, 4)
torch.lazy.synchronize()
for step in range(30):
    w.add_((x * 2).tanh(), alpha=0.9**step)
    torch.lazy.synchronize()
    torch.lazy.wait_for_compiles()
    expected.add_((torch.ones(4, 4) * 2).tanh(), alpha=0.9**step)
torch.testing.assert_close(w.cpu(), expected)
metrics = torch.lazy.metrics()
print(json.dumps([metrics["windows"], metrics["remembered_traces"]]))
"""


def run(
    directory: Path, script: str = SCRIPT, anew: bool = False, **environment: str
) -> tuple[dict, int, str]:
    """How windows ended in a process of its own, which may be one that is started anew, of how many
    an earlier one was remembered, and what it wrote to stderr."""
    settings = {"TORCH_LAZY_REMEMBER_TRACES": "1", "TORCH_LAZY_CACHE_DIR": str(directory)}
    done = run_script(script, anew=anew, **(settings | environment))
    assert done.returncode == 0, done.stderr
    return (*json.loads(done.stdout), done.stderr)


def test_a_second_process_defers_from_its_second_step_on(tmp_path):
    first, remembered_at_first, _ = run(tmp_path, anew=True)
    second, remembered, said = run(tmp_path, anew=True)

    assert first["cold"] == 2
    assert remembered_at_first == 0
    assert second == {"cold": 1, "warm": 1, "hot": 29}
    assert remembered == 1
    assert said == ""


def test_another_program_remembers_nothing(tmp_path):
    run(tmp_path)
    other, remembered, _ = run(tmp_path, SCRIPT.replace("4, 4", "5, 5"))

    assert remembered == 0
    assert other["cold"] == 2


def test_what_ran_a_few_times_is_not_remembered(tmp_path):
    short = SCRIPT.replace("range(30)", "range(6)")
    first, _, _ = run(tmp_path, short)
    _, remembered, _ = run(tmp_path, short)

    assert first["hot"] >= 2
    assert remembered == 0


def test_a_process_that_is_killed_has_left_what_it_ran(tmp_path):
    killed = SCRIPT + "import os, sys; sys.stdout.flush(); os._exit(0)"
    run(tmp_path, killed)
    _, remembered, _ = run(tmp_path)

    assert remembered > 0


def test_a_process_that_adds_nothing_writes_nothing(tmp_path):
    run(tmp_path)
    run(tmp_path)
    (file,) = (tmp_path / "traces").iterdir()
    written = file.stat().st_ino

    run(tmp_path)

    assert file.stat().st_ino == written


def test_what_is_not_run_any_more_is_forgotten(tmp_path):
    once = SCRIPT.replace("range(30)", "range(1)")
    run(tmp_path)

    remembered = [run(tmp_path, once)[1] for _ in range(4)]

    assert remembered[0] == 1
    assert remembered[-1] == 0


def test_a_thread_recalls_it_too(tmp_path):
    run(tmp_path)

    states, remembered, _ = run(
        tmp_path,
        "import threading\n"
        f"thread = threading.Thread(target=exec, args=({SCRIPT!r}, {{}}))\n"
        "thread.start()\nthread.join()\n",
    )

    assert remembered == 1
    assert states["hot"] == 29


@pytest.mark.on_cpu("a forked child cannot use CUDA")
def test_a_forked_child_recalls_it_too(tmp_path):
    run(tmp_path)

    states, remembered, _ = run(
        tmp_path,
        "import os, sys, torch\nx = torch.ones(2, device='lazy') + 1\nchild = os.fork()\n"
        "if child == 0:\n"
        f"    exec({SCRIPT!r}, {{}})\n    sys.stdout.flush()\n    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n",
    )

    assert remembered == 1
    assert states["hot"] == 29


def test_a_broken_file_is_said_once_and_replaced(tmp_path):
    run(tmp_path)
    (file,) = (tmp_path / "traces").iterdir()
    file.write_bytes(file.read_bytes()[:-8])

    _, remembered, said = run(tmp_path)
    _, remembered_after, said_after = run(tmp_path)

    assert remembered == 0
    assert said.count("a file was broken and is replaced") == 1
    assert remembered_after > 0
    assert said_after == ""


@pytest.mark.parametrize(
    "setting", [{"TORCH_LAZY_REMEMBER_TRACES": "0"}, {"TORCH_LAZY_CACHE_BYTES": "0"}]
)
def test_nothing_is_remembered_where_that_is_not_wanted(tmp_path, setting):
    run(tmp_path, **setting)

    assert not (tmp_path / "traces").exists()


def test_nothing_is_recalled_where_that_is_not_wanted(tmp_path):
    run(tmp_path)
    _, remembered, _ = run(tmp_path, TORCH_LAZY_REMEMBER_TRACES="0")

    assert remembered == 0


def test_a_process_that_does_not_use_the_device_leaves_nothing(tmp_path):
    run(tmp_path, "import torch; torch.ones(2) + 1; print('[{}, 0]')")

    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_said_once(tmp_path):
    file = tmp_path / "file"
    file.write_text("")

    _, _, said = run(file / "cache")

    assert said.count("nothing is kept between processes") == 1
    assert "could not be written" not in said


def test_a_window_that_warned_is_cold_the_first_time(tmp_path):
    """What PyTorch warns of once a process is no part of what repeats."""
    warning = SCRIPT.replace(
        "    torch.lazy.synchronize()\n    torch",
        "    torch.add(x[0], x[1], out=w[0].new_empty(1))\n    torch.lazy.synchronize()\n    torch",
    ).replace("range(30)", "range(40)")
    first, _, said_at_first = run(tmp_path, warning)
    second, _, said = run(tmp_path, warning)

    assert "UserWarning" in said_at_first
    assert second["cold"] == first["cold"]
    assert said.count("UserWarning") == said_at_first.count("UserWarning")


def test_deterministic_runs_do_not_depend_on_earlier_processes(tmp_path):
    deterministic = "import torch; torch.use_deterministic_algorithms(True)\n" + SCRIPT
    run(tmp_path)
    first, _, _ = run(tmp_path, deterministic)
    second, remembered, _ = run(tmp_path, deterministic)

    assert remembered == 0
    assert second == first
