"""``torch.compile`` with Inductor, its default backend, of what runs on device ``lazy``.

Inductor makes kernels for devices that it lists. This device fuses what it is given by itself, so a
graph with lazy tensors is run as Dynamo captured it: by the operators of the script, with autograd
above them, as without ``torch.compile``. Graphs of other devices go to Inductor as they are.

AOTAutograd, which Inductor would run first, is left out: it costs a joint graph for every set of
guards, and wrappers around every call, and what it would do for Inductor the windows do anyway.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import torch
from torch.fx import GraphModule

from torch_lazy.integration.at_import import when_imported

# Where Dynamo and make_fx keep the fake tensor that stands for a node's value.
_VALUES = ("example_value", "val")


def install() -> None:
    """Gives Inductor the graphs without lazy tensors only, now or when it is imported."""
    when_imported("torch._inductor.compile_fx", _keep_lazy_graphs)


def _keep_lazy_graphs(module: ModuleType) -> None:
    compile_fx: Callable[..., Any] = module.compile_fx

    @functools.wraps(compile_fx)
    def compile_graph(model_: Any, example_inputs_: Sequence[Any], *args: Any, **kw: Any) -> Any:
        if not _has_lazy_tensors(model_, example_inputs_):
            return compile_fx(model_, example_inputs_, *args, **kw)
        if module.V.aot_compilation:
            raise NotImplementedError(
                "AOTInductor makes libraries of the CPU's and CUDA's operators, and the graph has "
                "tensors on device lazy: move the module to the cpu before it is exported"
            )
        _warn_once()
        return model_.forward

    module.compile_fx = compile_graph


def _has_lazy_tensors(model: Any, example_inputs: Sequence[Any]) -> bool:
    values = [*example_inputs, *model.parameters(), *model.buffers(), *_values_of_nodes(model)]
    leaves = torch.utils._pytree.tree_leaves(values)
    return any(isinstance(leaf, torch.Tensor) and leaf.device.type == "lazy" for leaf in leaves)


def _values_of_nodes(model: torch.nn.Module) -> Iterator[Any]:
    """The values in a graph and in those that it calls, as of a branch or a checkpoint."""
    for graph_module in model.modules():
        if isinstance(graph_module, GraphModule):
            for node in graph_module.graph.nodes:
                yield from (node.meta[name] for name in _VALUES if name in node.meta)


@functools.cache
def _warn_once() -> None:
    warnings.warn(
        "torch.compile is not needed on device lazy, which records and fuses operations by itself: "
        "graphs with lazy tensors run as Dynamo captured them, without Inductor",
        stacklevel=3,  # the caller of compile_fx
    )
