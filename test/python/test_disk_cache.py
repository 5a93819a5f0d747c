"""Kernels that one process compiled and the next one finds."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from behaviour import run_script

pytestmark = [
    pytest.mark.recording,
    pytest.mark.kernels,
    pytest.mark.on_cpu("about the files of backend cpu"),
]

SCRIPT = """
import json, torch
x = torch.randn(64, 64, device="lazy")
for _ in range(6):
    y = ((x * 2).tanh() + x).sum(0)
    torch.lazy.synchronize()
    torch.lazy.wait_for_compiles()
expected = ((x.cpu() * 2).tanh() + x.cpu()).sum(0)
torch.testing.assert_close(y.cpu(), expected)
metrics = torch.lazy.metrics()
assert metrics["windows"].get("hot"), metrics["windows"]
print(json.dumps({"disk": metrics["disk_cache"], "passes": list(metrics["compile_ns"])}))
"""


def run(directory: Path, **environment: str) -> tuple[dict, str]:
    """What the script counted in a process of its own, and what it wrote to stderr."""
    done = run_script(SCRIPT, TORCH_LAZY_CACHE_DIR=str(directory), **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def kept(directory: Path) -> list[Path]:
    return sorted((directory / "kernels").iterdir())


def test_a_second_process_compiles_nothing(tmp_path):
    first, _ = run(tmp_path)
    second, said = run(tmp_path)

    assert first["disk"]["stored"] == len(kept(tmp_path)) > 0
    assert second["disk"] == {"hit": first["disk"]["stored"]}
    assert "clang" in first["passes"]
    assert "clang" not in second["passes"]
    assert said == ""


def test_a_broken_file_is_compiled_again_and_said_once(tmp_path):
    run(tmp_path)
    for file in kept(tmp_path):
        file.write_bytes(file.read_bytes()[:-10])

    broken, said = run(tmp_path)
    after, nothing_said = run(tmp_path)

    assert broken["disk"]["broken"] == broken["disk"]["stored"] == len(kept(tmp_path))
    assert said.count("a file was broken and is replaced") == 1
    assert list(after["disk"]) == ["hit"]
    assert nothing_said == ""


def test_a_directory_that_others_may_write_to_is_refused(tmp_path):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels").chmod(0o777)

    counted, said = run(tmp_path)

    assert counted["disk"] == {"refused": 1}
    assert said.count("other users may write to it (mode 777, expected 700)") == 1
    assert kept(tmp_path) == []


def test_warnings_that_are_errors_do_not_stop_a_compile(tmp_path):
    (tmp_path / "kernels").touch()

    _, said = run(tmp_path, PYTHONWARNINGS="error")

    assert "nothing is kept between processes" in said


def test_a_limit_of_no_bytes_keeps_nothing(tmp_path):
    counted, said = run(tmp_path, TORCH_LAZY_CACHE_BYTES="0")

    assert counted["disk"] == {}
    assert list(tmp_path.iterdir()) == []
    assert said == ""


def test_the_settings_can_be_read_and_not_changed():
    assert Path(torch.lazy.config.cache_dir).is_absolute()
    assert torch.lazy.config.cache_bytes == int(os.environ.get("TORCH_LAZY_CACHE_BYTES", 256 << 20))

    with pytest.raises(AttributeError, match="set TORCH_LAZY_CACHE_DIR in the environment"):
        torch.lazy.config.cache_dir = "/tmp"
    with pytest.raises(AttributeError, match="set TORCH_LAZY_CACHE_BYTES in the environment"):
        torch.lazy.config.cache_bytes = 0
