"""Below autograd, PyTorch runs the same operators on the device as on the one it lives on.

Composite operators choose by device: other operators round otherwise, draw other random numbers and
have other strides. OpInfo's samples are run on both under a mode that sees every operator.
"""

from __future__ import annotations

import pytest
import torch
from behaviour import EXECUTION_DEVICE
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

SAMPLES = 3

# What differs, and why that is left.
DIFFERENT = {
    "as_strided_partial_views": "reads memory beside the sample's, which moved() leaves behind",
    "norm": "torch.norm has a list of device types for linalg_vector_norm, which kernels are equal",
    "norm_fro": "as norm",
    "norm_inf": "as norm",
    "nn_functional_normalize": "by torch.norm",
    "nn_functional_feature_alpha_dropout_with_train": "noise is made twice for unlisted devices",
    "sparse_mm_reduce": "the device has sparse tensors in coordinate form only",
    "sparse_sampled_addmm": "the device has sparse tensors in coordinate form only",
    "tensor_split": "refuses a tensor of sections that is not on the CPU, as on CUDA",
    "to_sparse": "sparse tensors of the device are made of its own indices and values",
}
if EXECUTION_DEVICE == "cuda":
    DIFFERENT |= {
        "nn_functional_ctc_loss": "asks for cuDNN on CUDA alone",
        "renorm": "accumulates in float on CUDA alone, and else in double",
    }


class Operators(TorchDispatchMode):
    """The names of the operators that run under the mode."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def moved(value, device):
    """The same arguments on the device, with the same strides."""

    def move(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        base = leaf.detach()
        if base.layout != torch.strided or base.is_conj() or base.is_neg():
            return base.to(device).requires_grad_(leaf.requires_grad)
        span = 1 + sum((n - 1) * s for n, s in zip(base.shape, base.stride(), strict=True))
        memory = base.as_strided((span if base.numel() else 0,), (1,)).to(device)
        return memory.as_strided(base.shape, base.stride(), 0).requires_grad_(leaf.requires_grad)

    return _pytree.tree_map(move, value)


def operators_of(op, sample, device) -> list[str]:
    arguments = moved((sample.input, sample.args, sample.kwargs), device)
    torch.manual_seed(0)
    with Operators() as seen:
        try:
            result = op(arguments[0], *arguments[1], **arguments[2])
            tensors = [t for t in _pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]
            with_gradient = [t.sum() for t in tensors if t.requires_grad]
            if with_gradient:
                sum(with_gradient).backward()
        except Exception as error:
            seen.names.append(type(error).__name__)
    return seen.names


@pytest.mark.recording
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "op",
    [op for op in op_db if torch.float32 in op.dtypes and op.formatted_name not in DIFFERENT],
    ids=lambda op: op.formatted_name,
)
def test_the_operators_are_the_execution_devices(device, op):
    samples = op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd)

    for _, sample in zip(range(SAMPLES), samples, strict=False):
        assert operators_of(op, sample, device) == operators_of(op, sample, EXECUTION_DEVICE)
