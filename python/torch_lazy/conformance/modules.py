"""Every module and optimizer that PyTorch has samples of, on a device against the CPU.

    python -m torch_lazy.conformance.modules --device lazy --only BatchNorm,optim

They are judged as operators are (:mod:`torch_lazy.conformance.opinfo`), each sample four times. A
module, in training and in evaluation, is an operator on its parameters, its buffers and its input:
outputs, gradients and buffers afterwards are the CPU's. An optimizer is one from weights to trained
weights and its state, halfway through which the state goes through a file into a new optimizer.
"""

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_map

from torch_lazy.conformance.opinfo import add_arguments_of_runs, full_name, judge_all
from torch_lazy.conformance.opinfo_call import FLOAT32, Mode

STEPS = 4  # of an optimizer, before and after its state goes through a file


class _LikeAnOperator:
    """As much of an OpInfo as judging needs."""

    supports_gradgrad = False

    def __init__(self, name: str, variant: str) -> None:
        self.name, self.variant_test_name = name, variant

    def supported_backward_dtypes(self, device: str) -> set[torch.dtype]:
        return {torch.float32, torch.float64}


def _sample(value: Any, *args: Any) -> Any:
    from torch.testing._internal.opinfo.core import SampleInput

    return SampleInput(value, args=args)


class ModuleAsOperator(_LikeAnOperator):
    """`op(state, module, args, kwargs)`; the module itself stays on the CPU, without a part."""

    supports_autograd = True

    def __init__(self, info: Any, training: bool) -> None:
        super().__init__(info.name, "train" if training else "eval")
        self._info, self._training = info, training

    def sample_inputs(self, device: str, dtype: torch.dtype, requires_grad: bool) -> Iterator[Any]:
        options = {"requires_grad": requires_grad, "training": self._training}
        for sample in self._info.module_inputs_func(self._info, device, dtype, **options):
            made, given = sample.constructor_input, sample.forward_input
            module = self._info.module_cls(*made.args, **made.kwargs).train(self._training)
            if self._info.is_lazy:  # the first input gives it its parameters
                module(*given.args, **given.kwargs)
            state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
            yield _sample(state, module, given.args, given.kwargs)

    def op(self, state: dict[str, torch.Tensor], module: Any, args: Any, kwargs: Any) -> Any:
        # Modules that work in place may not write to leaves.
        copied = lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf  # noqa: E731
        args, kwargs = tree_map(copied, (args, kwargs))
        return torch.func.functional_call(module, state, args, kwargs)


class OptimizerAsOperator(_LikeAnOperator):
    """`op(weights, arguments)`: the weights and the optimizer's state after some steps."""

    supports_autograd = False

    def __init__(self, info: Any) -> None:
        super().__init__(f"optim.{info.optim_cls.__name__}", "")
        self._info = info

    def sample_inputs(self, device: str, dtype: torch.dtype, requires_grad: bool) -> Iterator[Any]:
        from torch.testing._internal import common_optimizers

        inputs = common_optimizers._get_optim_inputs_including_global_cliquey_kwargs
        shapes = [(6, 4), (4, 3)] if self.name == "optim.Muon" else [(6, 4), (5,), (), (3, 1, 2)]
        # Differentiable ones want weights that are no leaves.
        for sample in inputs(device, dtype, self._info, skip=("differentiable",)):
            yield _sample([torch.randn(shape, dtype=dtype) for shape in shapes], sample.kwargs)

    def op(self, weights: list[torch.Tensor], arguments: dict[str, Any]) -> Any:
        weights = [torch.nn.Parameter(w.detach().clone()) for w in weights]
        dtype = weights[0].dtype
        make = lambda: self._info.optim_cls(weights, **arguments)  # noqa: E731
        optimizer = make()
        self._train(optimizer, weights)
        file = io.BytesIO()
        torch.save(optimizer.state_dict(), file)
        file.seek(0)
        optimizer = make()
        optimizer.load_state_dict(torch.load(file, map_location=weights[0].device))
        self._train(optimizer, weights)
        # Numbers that the optimizer read from tensors are rounded as those are.
        state = tree_map(
            lambda leaf: torch.tensor(leaf, dtype=dtype) if isinstance(leaf, float) else leaf,
            optimizer.state_dict()["state"],
        )
        return [w.detach() for w in weights], state

    def _train(self, optimizer: torch.optim.Optimizer, weights: list[torch.Tensor]) -> None:
        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            with torch.enable_grad():
                losses = [(w.sin() * (i + 1) + w.square()).sum() for i, w in enumerate(weights)]
                loss = torch.stack(losses).sum()
                loss.backward()
            if self._info.only_supports_sparse_grads:
                for w in weights:
                    w.grad = w.grad.to_sparse()
            return loss

        for _ in range(STEPS):
            optimizer.step(closure)


def subjects() -> dict[str, tuple[Any, Mode]]:
    """All of them by name, and how each is judged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_modules import module_db
        from torch.testing._internal.common_optimizers import optim_db
    result: dict[str, tuple[Any, Mode]] = {}
    for info in module_db:
        for training in (True, False):
            module = ModuleAsOperator(info, training)
            # Its samples bring random numbers in double.
            mode = Mode(torch.float64) if "FractionalMaxPool" in info.name else FLOAT32
            result[full_name(module)] = (module, mode)
    for info in optim_db:
        optimizer = OptimizerAsOperator(info)
        # What it learns of the curvature, from differences of gradients, is mostly their rounding.
        mode = Mode(torch.float64) if optimizer.name == "optim.LBFGS" else FLOAT32
        result[full_name(optimizer)] = (optimizer, mode)
    return result


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    add_arguments_of_runs(parser)
    own = sys.argv[1:] if arguments is None else arguments
    argv = parser.parse_args(own)
    words = argv.only.split(",")
    chosen = {n: s for n, s in subjects().items() if any(word in n for word in words)}
    return judge_all(chosen, argv, [sys.executable, "-m", __spec__.name, *own, "--worker"])


if __name__ == "__main__":
    sys.exit(main())
