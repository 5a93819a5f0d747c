"""One small module per feature of PyTorch, or of a library beside it, that needs a shim."""

from importlib import import_module

_SHIMS = (
    "tensor",
    "dlpack",
    "autocast",
    "cuda_array_interface",
    "cuda_graphs",
    "custom_operators",
    "fake_tensors",
    "fast_path",
    "flex_attention",
    "upstream_lazy",
    "accelerator",
    "deepcopy",
    "device_numbers",
    "distributed",
    "distributed_checkpoint",
    "distributed_random",
    "dynamo",
    "generator",
    "gradcheck",
    "inductor",
    "jagged_attention",
    "lightning",
    "memory_pools",
    "multiprocessing",
    "nested",
    "opcheck",
    "optimizers",
    "pinned_memory",
    "safetensors",
    "serialization",
    "sparse",
    "spawned_processes",
    "storage",
    "fully_shard",
    "sync_batch_norm",
    "synchronization",
    "tensor_types",
    "torchscript",
    "trainer",
)


def install_all() -> None:
    """Installs every shim once, when the plugin is loaded."""
    for name in _SHIMS:
        import_module(f"{__name__}.{name}").install()
