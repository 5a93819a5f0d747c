"""The command queue: order, events, streams, delays and failures."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
import torch
import torch_accelerator


def _enqueue_slow_commands(tensor: torch.Tensor) -> None:
    torch_accelerator.inject(longest_delay=20_000, seed=1)
    for value in range(20):
        tensor.fill_(value)


def test_an_event_is_reached_when_the_commands_before_it_have_run():
    tensor = torch.zeros(3, device="accel")
    event = torch.Event("accel")
    _enqueue_slow_commands(tensor)
    event.record()

    reached_at_once = event.query()
    event.synchronize()

    assert not reached_at_once
    assert event.query()
    assert tensor.tolist() == [19, 19, 19]


def test_an_event_that_was_not_recorded_is_reached():
    assert torch.Event("accel").query()


def test_a_stream_is_current_in_its_block_and_sees_what_came_before():
    tensor = torch.zeros(3, device="accel")
    stream = torch.Stream("accel")
    _enqueue_slow_commands(tensor)

    with stream:
        current = torch.accelerator.current_stream()
        doubled = tensor * 2

    assert current == stream
    assert torch.accelerator.current_stream() != stream
    assert doubled.tolist() == [38, 38, 38]
    assert stream.query()


def test_a_device_that_is_synchronized_is_idle():
    _enqueue_slow_commands(torch.zeros(3, device="accel"))

    torch.accelerator.synchronize()

    assert torch.accelerator.current_stream().query()


def test_a_copy_to_the_host_has_arrived_when_it_returns():
    tensor = torch.zeros(3, device="accel")
    _enqueue_slow_commands(tensor)

    assert tensor.to("cpu", non_blocking=True).tolist() == [19, 19, 19]


def test_a_source_on_the_host_may_change_after_its_copy():
    torch_accelerator.inject(longest_delay=20_000, seed=1)
    source = torch.ones(3)

    tensor = source.to("accel", non_blocking=True)
    source.zero_()

    assert tensor.tolist() == [1, 1, 1]


def test_a_failure_of_an_asynchronous_command_is_raised_where_the_host_waits_and_once():
    tensor = torch.zeros(3, device="accel")
    torch_accelerator.inject(failing_command=2)
    for value in range(4):
        tensor.fill_(value)

    with pytest.raises(RuntimeError, match="this command was to fail"):
        torch_accelerator.synchronize()

    assert tensor.tolist() == [3, 3, 3]


def test_a_failure_of_an_operators_command_is_raised_by_the_operator():
    tensor = torch.zeros(3, device="accel")
    torch_accelerator.synchronize()
    torch_accelerator.inject(failing_command=1)

    with pytest.raises(RuntimeError, match="this command was to fail"):
        tensor + 1

    assert (tensor + 1).tolist() == [1, 1, 1]


def test_threads_share_the_queue():
    sums = {}

    def work(value: int) -> None:
        for _ in range(20):
            filled = torch.full((16, 16), float(value), device="accel")
            sums.setdefault(value, set()).add((filled @ filled).sum().item())

    threads = [threading.Thread(target=work, args=(value,)) for value in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sums == {value: {16.0**3 * value**2} for value in (1, 2, 3)}


def test_the_environment_injects_faults_too():
    code = """
import torch, torch_accelerator
torch.zeros(3, device="accel")
torch_accelerator.synchronize()
"""

    child = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "ACCEL_FAILING_COMMAND": "1"},
    )

    assert child.returncode == 1
    assert "this command was to fail" in child.stderr


def test_a_forked_process_is_told_that_it_has_no_device():
    torch.ones(3, device="accel")
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            torch.ones(3, device="accel")
        except RuntimeError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.close(write)

    with os.fdopen(read) as pipe:
        message = pipe.read()

    assert os.waitpid(child, 0)[1] == 0
    assert "a forked process has no device" in message
