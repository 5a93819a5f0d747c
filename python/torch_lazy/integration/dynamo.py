"""What ``torch.compile`` does not trace, but runs as it is."""

from __future__ import annotations

from types import ModuleType

from torch_lazy.integration.at_import import when_imported

# They call the extension module, which Dynamo warns of, or read the ``__dict__`` of a tensor of the
# device, where it fails. Other modules are traced: optimizers, for one, ask for lists of devices.
_UNTRACED = (
    "torch_lazy.device",
    "torch_lazy.integration.accelerator",
    "torch_lazy.integration.deepcopy",
    "torch_lazy.integration.storage",
)


def install() -> None:
    """Names the modules to Dynamo once a script imports it."""
    when_imported("torch._dynamo.trace_rules", _skip)


def _skip(rules: ModuleType) -> None:
    for module in _UNTRACED:
        rules.add(module)
