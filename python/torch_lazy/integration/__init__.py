"""One small module per feature of PyTorch, or of a library beside it, that needs a shim."""

from torch_lazy.integration import (
    accelerator,
    autocast,
    deepcopy,
    distributed,
    dlpack,
    fake_tensors,
    fully_shard,
    generator,
    multiprocessing,
    optimizers,
    pinned_memory,
    safetensors,
    serialization,
    sparse,
    storage,
    sync_batch_norm,
    tensor,
    upstream_lazy,
)


def install_all() -> None:
    """Installs every shim once, when the plugin is loaded."""
    for shim in (
        tensor,
        dlpack,
        autocast,
        fake_tensors,
        upstream_lazy,
        accelerator,
        deepcopy,
        distributed,
        generator,
        multiprocessing,
        optimizers,
        pinned_memory,
        safetensors,
        serialization,
        sparse,
        storage,
        fully_shard,
        sync_batch_norm,
    ):
        shim.install()
