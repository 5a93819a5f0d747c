"""One small module per PyTorch feature that needs a shim for device ``lazy``."""

from torch_lazy.integration import autocast, dlpack, fake_tensors, tensor, upstream_lazy


def install_all() -> None:
    """Installs every shim once, when the plugin is loaded."""
    for shim in (tensor, dlpack, autocast, fake_tensors, upstream_lazy):
        shim.install()
