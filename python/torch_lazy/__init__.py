"""Device ``lazy`` for stock PyTorch: record, recognise, defer, fuse.

``import torch`` loads this package by itself. The names below are also reachable as ``torch.lazy``.
"""

# First, because what follows imports torch, and torch calls it while this package is half imported.
from torch_lazy.loading import _autoload

# isort: split

from torch_lazy.config import config
from torch_lazy.device import (
    current_device,
    device_count,
    get_device_name,
    is_available,
    is_initialized,
    set_device,
)
from torch_lazy.exchange import from_dlpack
from torch_lazy.graphs import Graph, graphs
from torch_lazy.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
)
from torch_lazy.metrics import compile_count, metrics, reset_metrics
from torch_lazy.sync import mark_step, synchronize, wait_for_compiles

__version__ = "0.1.0"

__all__ = [
    "Graph",
    "_autoload",
    "compile_count",
    "config",
    "current_device",
    "device_count",
    "empty_cache",
    "from_dlpack",
    "get_device_name",
    "graphs",
    "is_available",
    "is_initialized",
    "mark_step",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "metrics",
    "reset_metrics",
    "reset_peak_memory_stats",
    "set_device",
    "synchronize",
    "wait_for_compiles",
]

_autoload()
