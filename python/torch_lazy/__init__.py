"""Device ``lazy`` for stock PyTorch: record, recognise, defer, fuse.

``import torch`` loads this package by itself. The names below are also reachable as ``torch.lazy``.
"""

# First, because what follows imports torch, and torch calls it while this package is half imported.
from torch_lazy.loading import _autoload

# isort: split

from torch_lazy import amp, utils
from torch_lazy.backends import Backend, backends, set_backend
from torch_lazy.config import config
from torch_lazy.device import (
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    execution_device,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    ipc_collect,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
)
from torch_lazy.exchange import from_dlpack
from torch_lazy.graphs import Graph, graphs
from torch_lazy.memory import (
    OutOfMemoryError,
    empty_cache,
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from torch_lazy.metrics import compile_count, metrics, reset_metrics
from torch_lazy.profiling import profile
from torch_lazy.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_lazy.storage_types import (
    BFloat16Storage,
    BoolStorage,
    ByteStorage,
    CharStorage,
    ComplexDoubleStorage,
    ComplexFloatStorage,
    DoubleStorage,
    FloatStorage,
    HalfStorage,
    IntStorage,
    LongStorage,
    ShortStorage,
)
from torch_lazy.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    is_current_stream_capturing,
    set_stream,
    stream,
)
from torch_lazy.sync import mark_step, synchronize, wait_for_compiles
from torch_lazy.tensor_types import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)

__version__ = "0.1.0"

# torch.utils.checkpoint saves and restores the random numbers of devices that say this.
_initialized = True

__all__ = [
    "BFloat16Storage",
    "BFloat16Tensor",
    "Backend",
    "BoolStorage",
    "BoolTensor",
    "ByteStorage",
    "ByteTensor",
    "CharStorage",
    "CharTensor",
    "ComplexDoubleStorage",
    "ComplexFloatStorage",
    "DoubleStorage",
    "DoubleTensor",
    "Event",
    "FloatStorage",
    "FloatTensor",
    "Graph",
    "HalfStorage",
    "HalfTensor",
    "IntStorage",
    "IntTensor",
    "LongStorage",
    "LongTensor",
    "OutOfMemoryError",
    "ShortStorage",
    "ShortTensor",
    "Stream",
    "StreamContext",
    "_autoload",
    "amp",
    "backends",
    "can_device_access_peer",
    "compile_count",
    "config",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "execution_device",
    "from_dlpack",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "graphs",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "mark_step",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "metrics",
    "profile",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_metrics",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_backend",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
    "utils",
    "wait_for_compiles",
]


def __getattr__(name: str) -> object:
    # When it is asked for: the library is not loaded before PyTorch's version is checked.
    if name == "default_generators":
        from torch_lazy.random import default_generators

        return default_generators()
    from torch_lazy.absent import INSTEAD

    instead = f": {INSTEAD[name]}" if name in INSTEAD else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead}")


_autoload()
