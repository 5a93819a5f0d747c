"""Makes ``cuda:0`` a device of a PyTorch that was built without CUDA (test/fake_cuda/README.md).

``import torch`` calls `load` where this folder is in PYTHONPATH, child processes' too.
"""

from __future__ import annotations

import ctypes
import importlib
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# Where the build puts the libraries.
FOLDER = Path(
    os.environ.get("FAKE_CUDA_FOLDER", Path(__file__).parents[3] / "build" / "fake_cuda")
).resolve()


def load() -> None:
    """Loads the device into PyTorch. May be called again.

    The driver and NVRTC are in the process then: who opens them by name gets these.
    """
    import torch

    if torch.accelerator.is_available():
        return
    ctypes.CDLL(str(FOLDER / "libnvrtc.so"))
    torch.ops.load_library(FOLDER / "libfake_cuda_aten.so")
    _give_functions_that_were_not_built(torch)


def take_findings() -> str:
    """What the emulator has found since the last call, after which the device is whole again."""
    function = ctypes.CDLL(str(FOLDER / "libcuda.so.1")).fake_cuda_take_findings
    function.restype = ctypes.c_char_p
    return (function() or b"").decode()


def fail(allocations: int = -1, launches: int = -1, graphs: int = -1) -> bool:
    """Lets that many allocations, launches, and graphs that are made ready, succeed and then one
    fail; negative: none fails. Whether a failure that was asked for before has not come.
    """
    function = ctypes.CDLL(str(FOLDER / "libcuda.so.1")).fake_cuda_fail
    function.argtypes = [ctypes.c_int64] * 3
    function.restype = ctypes.c_bool
    return function(allocations, launches, graphs)


def lose_device() -> None:
    """Makes the device answer with an error from now on, until `take_findings`."""
    ctypes.CDLL(str(FOLDER / "libcuda.so.1")).fake_cuda_lose_device()


def capture(capturing: bool) -> bool:
    """Another thread begins to capture a graph, or ends. Whether the capture that was under way
    was spoilt by a call that the driver forbids meanwhile.
    """
    function = ctypes.CDLL(str(FOLDER / "libcuda.so.1")).fake_cuda_capture
    function.argtypes = [ctypes.c_bool]
    function.restype = ctypes.c_bool
    return function(capturing)


def graph_launches() -> int:
    """How many graphs of kernels were launched so far."""
    function = ctypes.CDLL(str(FOLDER / "libcuda.so.1")).fake_cuda_graph_launches
    function.restype = ctypes.c_int64
    return function()


def launches_short_of_shared_memory() -> int:
    """How many launches there were of kernels for whose blocks a device may give a multiprocessor
    less shared memory than they could have, since they did not ask."""
    library = ctypes.CDLL(str(FOLDER / "libcuda.so.1"))
    function = library.fake_cuda_launches_short_of_shared_memory
    function.restype = ctypes.c_int64
    return function()


def replace_in_programs(text: str, by: str) -> None:
    """Lets NVRTC see another text in the last place of the first, in all that it compiles next."""
    ctypes.CDLL(str(FOLDER / "libnvrtc.so")).fake_nvrtc_replace(text.encode(), by.encode())


def _give_functions_that_were_not_built(torch: Any) -> None:
    """What ``torch.cuda`` calls in torch._C, and what it chose by their absence when it was
    imported.
    """
    cuda, library = torch.cuda, torch._C

    def properties(_: int = 0) -> SimpleNamespace:
        return SimpleNamespace(
            name="CUDA emulator",
            major=9,
            minor=0,
            multi_processor_count=132,
            warp_size=32,
            total_memory=80 << 30,
            L2_cache_size=50 << 20,
        )

    def initialize() -> None:
        cuda.default_generators = (torch.ops.fake_cuda.default_generator(),)
        cuda._get_device_properties = properties

    functions = {
        "getDeviceCount": lambda: 1,
        "init": initialize,
        "getDevice": library._accelerator_getDeviceIndex,
        "setDevice": library._accelerator_setDeviceIndex,
        "getCurrentRawStream": lambda _: cuda.current_stream().native_handle,
        "synchronize": torch.ops.fake_cuda.synchronize,
        "emptyCache": library._accelerator_emptyCache,
        "memoryStats": library._accelerator_getDeviceStats,
        "resetPeakMemoryStats": library._accelerator_resetPeakStats,
        "resetAccumulatedMemoryStats": library._accelerator_resetAccumulatedStats,
        "getArchFlags": lambda: "sm_90",
        "canDeviceAccessPeer": lambda _, __: False,
    }
    for name, function in functions.items():
        setattr(library, f"_cuda_{name}", function)

    # The children of a process that has used the device have none.
    forked = []
    os.register_at_fork(
        after_in_child=lambda: forked.append(True) if cuda.is_initialized() else None
    )
    cuda._is_in_bad_fork = lambda: bool(forked)

    cuda._queued_calls.clear()  # checks of the device that cuBLAS and cuDNN are built for
    cuda._cudart = SimpleNamespace(cudaMemGetInfo=library._accelerator_getMemoryInfo)
    cuda._exchange_device = library._accelerator_exchangeDevice
    cuda._maybe_exchange_device = library._accelerator_maybeExchangeDevice

    _give_streams(torch)


def _give_streams(torch: Any) -> None:
    """PyTorch's own types of streams and events, over what is compiled in others: types that ask
    the driver, and not what PyTorch has for any device.
    """
    cuda, library, driver = torch.cuda, torch._C, torch.ops.fake_cuda
    kind = int(library._autograd.DeviceType.CUDA)

    class StreamBase(torch.Stream):
        def __new__(cls, priority: int = 0, **known: int) -> StreamBase:
            if known:
                return super().__new__(cls, **known)
            return super().__new__(cls, device="cuda", priority=priority)

        @property
        def cuda_stream(self) -> int:
            return self.native_handle

        def query(self) -> bool:
            return driver.query_stream(self.stream_id)

        def synchronize(self) -> None:
            driver.synchronize_stream(self.stream_id)

    class EventBase(torch.Event):
        def __new__(cls, enable_timing: bool, blocking: bool, **_: bool) -> EventBase:
            self = super().__new__(cls, "cuda", enable_timing=enable_timing, blocking=blocking)
            self.cuda_event = 0
            return self

        def __del__(self) -> None:
            driver.destroy_event(self.cuda_event)

        def record(self, stream: torch.Stream) -> None:
            self.cuda_event = driver.record_event(self.cuda_event, stream.stream_id)

        def wait(self, stream: torch.Stream) -> None:
            driver.wait_event(self.cuda_event, stream.stream_id)

        def query(self) -> bool:
            return driver.query_event(self.cuda_event)

        def synchronize(self) -> None:
            driver.synchronize_event(self.cuda_event)

        def elapsed_time(self, end: EventBase) -> float:
            return driver.elapsed_time(self.cuda_event, end.cuda_event)

    def current_stream(_: int) -> tuple[int, int, int]:
        return torch.accelerator.current_stream().stream_id, 0, kind

    def set_stream(stream_id: int, **_: int) -> None:
        torch.accelerator.set_stream(
            torch.Stream(stream_id=stream_id, device_index=0, device_type=kind)
        )

    library._CudaStreamBase, library._CudaEventBase = StreamBase, EventBase
    library._cuda_getCurrentStream = current_stream
    library._cuda_getDefaultStream = lambda _: (0, 0, kind)
    library._cuda_setStream = set_stream
    torch.backends.cuda.is_built = lambda: True
    library._cuda_CUDAAllocator_AllocatorState = type("AllocatorState", (), {})  # Inductor has it
    importlib.reload(cuda.streams)
    for name in ("Stream", "Event", "ExternalStream"):
        setattr(cuda, name, getattr(cuda.streams, name))
