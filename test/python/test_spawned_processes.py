"""Processes of `torch.multiprocessing`, which scripts give a device each by their number."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from behaviour import LEAVE

pytestmark = [pytest.mark.recording, pytest.mark.on_cpu("a process of CUDA's may use any device")]

PRELUDE = """
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def start(function, *args, how="fork"):  # which need not import PyTorch once more
    if __name__ == "__main__":
        mp.start_processes(function, args, nprocs=2, start_method=how)
"""


def printed(folder: Path, script: str, **environment: str) -> list[str]:
    """Sorted lines that a script prints, which is a file: spawned processes import it.

    Each process keeps its lines until it ends, and then writes them at once: unbuffered, `print`
    writes a line in pieces, and those of two processes may mix.
    """
    path = folder / "script.py"
    path.write_text(PRELUDE + script)
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONUNBUFFERED": "", **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


def test_data_parallel_processes_take_the_device_of_their_number(tmp_path):
    leave = textwrap.indent(LEAVE, "    ")
    script = f"""
def train(rank):
    store = dist.FileStore({str(tmp_path / "store")!r}, 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1).to(rank), [rank])
    for step in range(4):
        model(torch.full((2, 2), float(rank))).sum().backward()
    print(model.module.weight.grad.tolist())
    dist.destroy_process_group()
{leave}
start(train, how="spawn")
"""

    assert printed(tmp_path, script) == ["[[4.0, 4.0]]", "[[4.0, 4.0]]"]


def test_a_process_is_what_it_makes_the_current_device(tmp_path):
    script = """
def show(rank):
    torch.lazy.set_device(rank)
    x = torch.ones(2, device="lazy")
    print(rank, x.device, x.to(rank) is x, torch.lazy.current_device(), torch.lazy.device_count())

start(show)
"""

    assert printed(tmp_path, script) == ["0 lazy:0 True 0 2", "1 lazy:1 True 1 2"]


def test_a_process_that_names_no_device_has_the_first(tmp_path):
    script = """
def show(rank):
    print(torch.ones(2, device="lazy").device, torch.ones(2, device=f"lazy:{rank}").device)

start(show)
"""

    assert printed(tmp_path, script) == ["lazy:0 lazy:0", "lazy:0 lazy:0"]


def test_tensors_that_are_there_keep_their_name(tmp_path):
    script = """
def show(rank, x):
    torch.lazy.set_device(rank)
    y = x.to(rank) + torch.ones(2, device="lazy")
    print(x.device, y.device, y.tolist())

start(show, torch.ones(2, device="lazy"))
"""

    assert printed(tmp_path, script) == ["lazy:0 lazy:0 [2.0, 2.0]"] * 2


def test_there_are_no_more_devices_than_processes(tmp_path):
    script = """
def show(rank):
    try:
        torch.lazy.set_device(2)
    except ValueError as error:
        print(error)

start(show)
if __name__ == "__main__":
    print(torch.lazy.device_count())
"""

    error = "there is no device lazy:2: device lazy has 2 devices"
    assert printed(tmp_path, script) == ["1", error, error]


def test_a_forked_process_shares_the_cpu_that_its_parent_chose(tmp_path):
    script = """
def show(rank):
    print(torch.ones(2).to(rank).device, torch.lazy.device_count())

if __name__ == "__main__":
    x = torch.ones(2, device="lazy") + 1
    start(show)
"""

    assert printed(tmp_path, script) == ["lazy:0 2", "lazy:0 2"]


def test_a_launcher_numbers_the_processes(tmp_path):
    script = """
def show(rank):
    torch.lazy.set_device(rank)
    print(torch.ones(2, device="lazy").device, torch.lazy.device_count())

start(show)
"""

    numbered = printed(tmp_path, script, LOCAL_RANK="2", LOCAL_WORLD_SIZE="3")

    assert numbered == ["lazy:2 3", "lazy:2 3"]
