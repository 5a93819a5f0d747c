"""``torch.jit.load`` with ``map_location`` on device ``lazy``.

PyTorch's reader of TorchScript files has a list of devices. Here the file is read to the CPU, and
the module goes to the device, with the tensors that are constants in its code (what `freeze` made
of parameters, and what a trace met) and those in attributes that are no buffers.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.jit import _serialization
from torch.utils._pytree import tree_any, tree_map_only


def _move_constants(block: torch.Graph | torch.Block, device: str | torch.device) -> None:
    for node in block.nodes():
        constant = node.kind() == "prim::Constant" and node.hasAttribute("value")
        if constant and node.kindOf("value") == "t":
            moved = node.t("value").to(device)
            node.t_("value", moved)
            node.output().inferTypeFrom(moved)
        for inner in node.blocks():
            _move_constants(inner, device)


@torch.no_grad()
def _moved(module: torch.jit.ScriptModule, device: str | torch.device) -> torch.jit.ScriptModule:
    """A module that has not run yet, so that nothing is made of its graphs so far."""
    for part in module.modules():
        for name, (_, is_parameter) in part._concrete_type.get_attributes().items():
            value = part._c.getattr(name)
            if not is_parameter and tree_any(lambda leaf: isinstance(leaf, torch.Tensor), value):
                part._c.setattr(name, tree_map_only(torch.Tensor, lambda t: t.to(device), value))
        for method in map(part._c._get_method, part._c._method_names()):
            _move_constants(method.graph, device)
    return module.to(device)


def install() -> None:
    """Exchanges ``torch.jit.load``."""
    original = torch.jit.load
    if hasattr(original, "_takes_lazy"):
        return

    @functools.wraps(original)
    def load(
        f: Any, map_location: str | torch.device | None = None, *rest: Any, **named: Any
    ) -> torch.jit.ScriptModule:
        if map_location is None or torch.device(map_location).type != "lazy":
            return original(f, map_location, *rest, **named)
        return _moved(original(f, "cpu", *rest, **named), map_location)

    load._takes_lazy = True
    torch.jit.load = _serialization.load = load
