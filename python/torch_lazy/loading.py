"""Loads the plugin into PyTorch, in either import order; never breaks ``import torch``."""

from __future__ import annotations

import atexit
import os
import sys
import sysconfig
import warnings

_tried = False
_loaded = False


def _autoload() -> None:
    """Registers device ``lazy``; ``import torch`` calls it (entry point group torch.backends).

    Safe to call again. When something is wrong it warns and leaves PyTorch as it is.
    """
    global _tried, _loaded
    torch = sys.modules.get("torch")
    # `import torch_lazy` before `import torch`: torch calls back here while it is half imported,
    # and once more is asked for at the end of our own import.
    if _tried or torch is None or not _fully_imported(torch):
        return
    _tried = True
    try:
        _load()
        _loaded = True
    except Exception as error:
        warnings.warn(
            f"torch_lazy could not be loaded, device 'lazy' is not available: {error}",
            RuntimeWarning,
            stacklevel=2,
        )


def _fully_imported(torch: object) -> bool:
    # Autoload is the last thing torch/__init__.py does.
    return hasattr(torch, "_is_device_backend_autoload_enabled") and hasattr(torch, "func")


def _minor_version(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])


def _load() -> None:
    import torch

    from torch_lazy import _build_info

    built, present = _minor_version(_build_info.TORCH_VERSION), _minor_version(torch.__version__)
    if built != present:
        raise RuntimeError(
            f"it was built for torch {built} and this is torch {torch.__version__}: "
            "build it again with `pip install --no-build-isolation .` in this environment"
        )

    from torch_lazy import _C

    _C.register_device()
    _C.set_library_prefixes(
        [
            os.path.dirname(torch.__file__),
            os.path.dirname(__file__),
            sysconfig.get_path("stdlib"),
        ]
    )
    module = sys.modules["torch_lazy"]
    torch._register_device_module("lazy", module)
    from torch_lazy.integration import install_all

    install_all()
    atexit.register(_C.discard)
