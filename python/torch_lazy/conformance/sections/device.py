"""The contract of the device: what it says of itself, memory, streams, synchronization, index."""

from __future__ import annotations

from functools import partial

import torch

import torch_lazy
from torch_lazy.conformance.as_on_the_cpu import (
    finish,
    require_as_on_the_cpu,
    require_same,
    stateless,
)
from torch_lazy.conformance.section import (
    DoesNotApply,
    Options,
    by_name,
    require,
    section_of_checks,
)

_MEGABYTE = 1 << 20


def says_its_name(options: Options) -> None:
    name = torch_lazy.get_device_name()
    require(options.backend in name, f"get_device_name() is {name!r}, without the backend's name")
    hardware = name.partition("(")[2].rstrip(")").strip()
    require(bool(hardware), f"get_device_name() is {name!r}: Backend::device_name() is empty")


def has_devices(options: Options) -> None:
    count = torch_lazy.device_count()
    require(count >= 1, f"device_count() is {count}: the execution device reports no device")
    there = torch.ones(2).to("lazy")
    require(str(there.device) == "lazy:0", f"a lazy tensor is on {there.device}, not on lazy:0")
    require_same(there.to("lazy:0").cpu(), torch.ones(2))


def refuses_an_index_beyond_the_last(options: Options) -> None:
    count = torch_lazy.device_count()
    try:
        torch.ones(2).to(f"lazy:{count}")
    except (RuntimeError, ValueError):
        return
    require(False, f"a tensor was moved to lazy:{count}, and device_count() is {count}")


def computes_on_every_device(options: Options) -> None:
    count = torch_lazy.device_count()
    if count == 1:
        raise DoesNotApply("there is one device")
    x = torch.linspace(-2, 2, 12).view(3, 4)
    for index in range(count):

        def step(device: str, index: int = index) -> tuple[torch.Tensor, ...]:
            device = device if device == "cpu" else f"lazy:{index}"
            there = x.to(device)
            made = (there * 2 + 1).relu() @ there.t()
            require(str(made.device) == device, f"a result of {device} is on {made.device}")
            return made, made.sum(0)

        require_as_on_the_cpu(stateless(step))


def copies_between_devices(options: Options) -> None:
    count = torch_lazy.device_count()
    if count == 1:
        raise DoesNotApply("there is one device")
    x = torch.arange(12.0).view(3, 4)
    last = f"lazy:{count - 1}"
    for _ in range(4):
        pending = x.to("lazy:0") * 2
        moved = pending.to(last)
        target = torch.zeros(4, 3).to(last)
        target.copy_(pending.t())
        require(str(moved.device) == last, f"moved to {last}, the tensor is on {moved.device}")
        require_same(
            [moved, target, moved.to("lazy:0") + pending], [x * 2, (x * 2).t().contiguous(), x * 4]
        )
        finish()


def the_current_device_is_what_lazy_means(options: Options) -> None:
    last = torch_lazy.device_count() - 1
    with torch_lazy.device(last):
        made = torch.ones(2).to("lazy") + 1
        require(made.device.index == last, f"in torch.lazy.device({last}) it is on {made.device}")
    now = torch_lazy.current_device()
    require(now == 0, f"behind torch.lazy.device({last}) the current device is {now}, not 0")


def synchronizes(options: Options) -> None:
    x = torch.arange(6.0).to("lazy")
    for device in (None, 0, "lazy", "lazy:0"):
        total = (x * 2).sum()
        torch_lazy.synchronize(device)
        require_same(total, torch.tensor(30.0), f"synchronize({device!r}): ")


def memory_is_counted_and_given_back(options: Options) -> None:
    try:
        before = torch_lazy.memory_allocated()
    except NotImplementedError as error:
        raise DoesNotApply(str(error)) from None
    kept = [torch.zeros(_MEGABYTE // 4).to("lazy") for _ in range(4)]
    torch_lazy.synchronize()
    with_tensors = torch_lazy.memory_allocated() - before
    require(with_tensors >= 4 * _MEGABYTE, f"four tensors of 1 MiB count as {with_tensors} bytes")
    kept.clear()
    torch_lazy.synchronize()
    left = torch_lazy.memory_allocated() - before
    require(left < _MEGABYTE, f"{left} bytes of four tensors of 1 MiB are left once they are gone")


def work_on_another_stream_is_waited_for(options: Options) -> None:
    x = torch.arange(6.0).to("lazy")
    for _ in range(4):
        made = x * 3
        ready = torch_lazy.Event()
        ready.record()
        stream = torch_lazy.Stream()
        with torch_lazy.stream(stream):
            stream.wait_event(ready)
            further = made + 1
            done = torch_lazy.Event()
            done.record()
        torch_lazy.current_stream().wait_event(done)
        require_same(further * 2, (torch.arange(6.0) * 3 + 1) * 2)
        done.synchronize()
        require(done.query(), "an event was waited for, and query() says that it has not happened")
        stream.synchronize()
        require(stream.query(), "a stream was waited for, and query() says that it has work")
        finish()


def _computes_shape(shape: tuple[int, ...], options: Options) -> None:
    def make(device: str):
        x = torch.randn(shape).to(device)

        def step() -> list[torch.Tensor]:
            y = (x * 2 + 1).relu()
            z = torch.zeros(shape, device=device).add_(y)
            return [y, z, y.sum(), torch.cat([y.reshape(-1), z.reshape(-1)]), x.clone()]

        return step

    require_as_on_the_cpu(make)


SECTION = section_of_checks(
    "device",
    "what the device says of itself; memory, streams and events, synchronize, indices",
    {
        **by_name(
            says_its_name,
            has_devices,
            refuses_an_index_beyond_the_last,
            computes_on_every_device,
            copies_between_devices,
            the_current_device_is_what_lazy_means,
            synchronizes,
            memory_is_counted_and_given_back,
            work_on_another_stream_is_waited_for,
        ),
        "0-dim-tensors": partial(_computes_shape, ()),
        "empty-vectors": partial(_computes_shape, (0,)),
        "empty-matrices": partial(_computes_shape, (3, 0, 2)),
    },
)
