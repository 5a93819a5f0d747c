"""Streams and events: names and points in a program whose order is kept anyway."""

from __future__ import annotations

import threading
import time

import pytest
import torch
from behaviour import deferred, hot, torch_lazy

pytestmark = pytest.mark.recording


def test_the_current_stream_is_the_default_one_at_first():
    assert torch.lazy.current_stream() == torch.lazy.default_stream()
    assert torch.lazy.current_stream().device == torch.device("lazy:0")


def test_new_streams_differ():
    first, second = torch.lazy.Stream(), torch.lazy.Stream(device="lazy", priority=-1)

    assert first != second
    assert first != torch.lazy.default_stream()
    assert isinstance(first, torch.Stream)


def test_a_stream_is_current_inside_its_context():
    stream, inner = torch.lazy.Stream(), torch.lazy.Stream()

    with torch.lazy.stream(stream):
        assert torch.lazy.current_stream() == stream
        with torch.lazy.stream(inner), torch.lazy.stream(None):
            assert torch.lazy.current_stream() == inner
        assert torch.lazy.current_stream() == stream

    assert torch.lazy.current_stream() == torch.lazy.default_stream()


def test_a_stream_is_a_context_of_its_own():
    stream = torch.lazy.Stream()

    with stream, torch.lazy.Stream(), stream:
        assert torch.lazy.current_stream() == stream

    assert torch.lazy.current_stream() == torch.lazy.default_stream()


def test_the_current_stream_is_a_threads_own():
    seen = []
    torch.lazy.set_stream(torch.lazy.Stream())
    try:
        thread = threading.Thread(target=lambda: seen.append(torch.lazy.current_stream()))
        thread.start()
        thread.join()
    finally:
        torch.lazy.set_stream(torch.lazy.default_stream())

    assert seen == [torch.lazy.default_stream()]


def test_a_stream_is_found_again_by_its_number():
    stream = torch.lazy.Stream()

    found = torch.lazy.Stream(
        stream_id=stream.stream_id,
        device_index=stream.device_index,
        device_type=stream.device_type,
    )

    assert found == stream


def test_a_stream_of_another_device_is_refused():
    with pytest.raises(ValueError, match="expected a stream of device lazy, but got one of cpu"):
        torch.lazy.set_stream(torch.Stream(device="cpu"))


def test_waiting_for_a_stream_needs_no_flush():
    x = torch.ones(5, device="lazy")
    side = torch.lazy.Stream()

    def step():
        side.wait_stream(torch.lazy.current_stream())
        with torch.lazy.stream(side):
            y = x * 2
        y.record_stream(side)
        torch.lazy.current_stream().wait_stream(side)
        side.record_event().wait()
        return y + 1

    assert hot(step).tolist() == [3] * 5
    assert deferred(step) == 2


@pytest.mark.parametrize("ask", ["query", "synchronize"])
def test_a_stream_runs_what_is_pending_when_it_is_asked(ask):
    x = torch.ones(5, device="lazy")
    hot(lambda: x + 9)
    torch_lazy.reset_metrics()

    y = x + 9
    getattr(torch.lazy.Stream(), ask)()

    assert torch_lazy.metrics()["windows_run"] == 1
    assert y.tolist() == [10] * 5


@pytest.mark.on_cpu("another device has to be waited for first, and its times are its own")
def test_elapsed_time_is_that_of_the_operations_between_two_events():
    start, end = (torch.lazy.Event(enable_timing=True) for _ in range(2))

    before = time.perf_counter()
    start.record()
    time.sleep(0.02)
    end.record()
    around = (time.perf_counter() - before) * 1000

    assert 20 <= start.elapsed_time(end) <= around
    assert end.elapsed_time(start) == -start.elapsed_time(end)


def test_recording_an_event_with_timing_runs_what_is_pending():
    x = torch.ones(5, device="lazy")
    event = torch.lazy.Event(enable_timing=True)
    hot(lambda: x * 3)
    torch_lazy.reset_metrics()

    y = x * 3
    event.record()

    assert torch_lazy.metrics()["windows_run"] == 1
    assert y.tolist() == [3] * 5


@pytest.mark.on_cpu("others can wait for an event of another device")
def test_recording_an_event_without_timing_leaves_the_window_open():
    x = torch.ones(5, device="lazy")
    hot(lambda: x * 5)
    torch_lazy.reset_metrics()

    y = x * 5
    torch.lazy.Event().record()
    recorded = torch_lazy.metrics()["windows_run"]

    assert recorded == 0
    assert y.tolist() == [5] * 5


@pytest.mark.parametrize("ask", ["query", "synchronize"])
def test_an_event_without_timing_runs_what_is_pending_when_it_is_asked(ask):
    x = torch.ones(5, device="lazy")
    event = torch.lazy.Event()
    hot(lambda: x * 7)
    torch_lazy.reset_metrics()

    y = x * 7
    event.record()
    getattr(event, ask)()

    assert torch_lazy.metrics()["windows_run"] == 1
    assert y.tolist() == [7] * 5


def test_an_event_that_was_not_recorded_has_happened():
    assert torch.lazy.Event().query()


def test_the_time_of_an_event_without_timing_is_refused():
    start, end = torch.lazy.Event(enable_timing=True), torch.lazy.Event()
    start.record()
    end.record()

    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(end)
    with pytest.raises(TypeError, match="takes an event, not int"):
        start.elapsed_time(3)


def test_pytorchs_generic_events_and_streams_work_with_the_device():
    start, end = (torch.Event("lazy", enable_timing=True) for _ in range(2))
    stream = torch.Stream(device="lazy")

    start.record(stream)
    stream.record_event(end)
    stream.wait_event(end)
    end.synchronize()

    assert start.elapsed_time(end) >= 0
    assert stream.device == torch.device("lazy:0")


def test_an_event_for_other_processes_is_refused():
    with pytest.raises(NotImplementedError, match="processes can wait for"):
        torch.lazy.Event(interprocess=True)


def test_nothing_is_being_captured():
    assert not torch.lazy.is_current_stream_capturing()
