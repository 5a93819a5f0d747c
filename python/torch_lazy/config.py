"""Settings, each also read from an environment variable when the plugin is loaded."""

from __future__ import annotations

from typing import Any


class _Config:
    """The settings of the process; assign to change one.

    ==================  ===========================  ==============================================
    name                environment                  meaning
    ==================  ===========================  ==============================================
    defer               ``TORCH_LAZY=0`` is "never"  "hot": operations on known traces are deferred;
                                                     "never": every operation runs at the call
    backend             ``TORCH_LAZY_BACKEND``       "cpu": windows become generated kernels;
                                                     "reference": they run node by node
    rng                 ``TORCH_LAZY_RNG``           "philox": dropout and Bernoulli draws are made
                                                     by kernels, keyed by PyTorch's generator;
                                                     "eager": by ATen at the call, eager's numbers
    verify              ``TORCH_LAZY_VERIFY``        run every window both ways and compare
    check_effects       ``TORCH_LAZY_CHECK_EFFECTS``  check what operators read and write
    verify_passes       ``TORCH_LAZY_VERIFY_PASSES``  check graphs after every pass and loops before
                                                     they are printed, as ``debug`` from 3 on does
    warn_fallbacks      ``TORCH_LAZY_WARN_FALLBACKS``  warn once about operators that cost speed
    perf_map            ``TORCH_LAZY_PERF_MAP``      name kernels in /tmp/perf-<pid>.map
    debug               ``TORCH_LAZY_DEBUG``         1 windows, 2 graphs, 3 passes, 4 kernels,
                                                     5 every operation
    window_operations   ``TORCH_LAZY_WINDOW_OPERATIONS``  most operations in a window
    window_bytes        ``TORCH_LAZY_WINDOW_BYTES``  most bytes a window keeps longer than eager
    rematerialize_bytes  ``TORCH_LAZY_REMATERIALIZE_BYTES``  least bytes of a value that kernels
                                                     rematerialize instead of storing and reading it
    allocator           ``TORCH_LAZY_ALLOCATOR``     "caching": freed memory is kept for reuse;
                                                     "system": PyTorch's own CPU allocator. Read
                                                     only: it is chosen when the process starts
    cache_dir           ``TORCH_LAZY_CACHE_DIR``     where compiled kernels are kept for the next
                                                     process. Read only
    cache_bytes         ``TORCH_LAZY_CACHE_BYTES``   most bytes of them; 0: none. Read only
    ==================  ===========================  ==============================================
    """

    _names = (
        "defer",
        "backend",
        "rng",
        "verify",
        "check_effects",
        "verify_passes",
        "warn_fallbacks",
        "perf_map",
        "debug",
        "window_operations",
        "window_bytes",
        "rematerialize_bytes",
        "allocator",
        "cache_dir",
        "cache_bytes",
    )
    _read_only = ("allocator", "cache_dir", "cache_bytes")

    def __getattr__(self, name: str) -> Any:
        if name not in self._names:
            raise AttributeError(self._unknown(name))
        from torch_lazy import _C

        return getattr(_C, f"get_{name}")()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names:
            raise AttributeError(self._unknown(name))
        if name in self._read_only:
            raise AttributeError(
                f"torch_lazy.config.{name} is chosen when the process starts: "
                f"set TORCH_LAZY_{name.upper()} in the environment instead"
            )
        from torch_lazy import _C

        getattr(_C, f"set_{name}")(value)

    def __dir__(self) -> list[str]:
        return sorted(self._names)

    def __repr__(self) -> str:
        return "\n".join(f"{name} = {getattr(self, name)!r}" for name in self._names)

    def _unknown(self, name: str) -> str:
        return f"torch_lazy.config has no setting {name!r}; there are: {', '.join(self._names)}"


config = _Config()
