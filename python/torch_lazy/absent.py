"""Names of ``torch.cuda`` that device ``lazy`` has nothing for, and what to do instead.

They are missing, so that ``hasattr`` says so; the error says more than that.
"""

from __future__ import annotations

_GRAPHS = "operations that repeat are recorded and replayed unasked, without a capture"
_MEMORY = "memory_stats() and memory_summary() tell what is counted"

INSTEAD = {
    "CUDAGraph": _GRAPHS,
    "graph": _GRAPHS,
    "graph_pool_handle": _GRAPHS,
    "make_graphed_callables": _GRAPHS,
    "MemPool": _MEMORY,
    "caching_allocator_alloc": _MEMORY,
    "host_memory_stats": _MEMORY,
    "max_memory_cached": "use max_memory_reserved()",
    "memory_cached": "use memory_reserved()",
    "memory_snapshot": _MEMORY,
    "nccl": "torch.distributed communicates, with gloo",
    "nvtx": "torch.profiler.record_function() names ranges, and torch.lazy.profile() shows windows",
    "set_sync_debug_mode": "metrics()['syncs'] counts sync points, and profile() names their lines",
}
"""By name: a sentence for the error."""
