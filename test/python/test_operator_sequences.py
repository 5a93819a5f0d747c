"""Below autograd, PyTorch runs the same operators on the device as on the one it lives on.

Composite operators choose by device: other operators round otherwise, draw other random numbers and
have other strides. PyTorch's samples of operators and of modules are run on both under a mode that
sees every operator.
"""

from __future__ import annotations

import pytest
import torch
from behaviour import EXECUTION_DEVICE, Operators
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.utils import _pytree

SAMPLES = 3
MODULE_SAMPLES = 8

# What differs, and why that is left.
DIFFERENT = {
    "as_strided_partial_views": "reads memory beside the sample's, which moved() leaves behind",
    "norm": "torch.norm has a list of device types for linalg_vector_norm, which kernels are equal",
    "norm_fro": "as norm",
    "norm_inf": "as norm",
    "nn_functional_normalize": "by torch.norm",
    "nn_functional_feature_alpha_dropout_with_train": "noise is made twice for unlisted devices",
    "tensor_split": "copies a tensor of sections to the CPU, where it has to be elsewhere",
    "to_sparse": "sparse tensors of the device are made of its own indices and values",
}
DIFFERENT_MODULES = {
    "nn.CTCLoss": "lengths that are not on the CPU are copied there for its kernel",
    **{
        f"nn.Lazy{kind}{dims}d": "asks, unlike on the CPU, whether its data may be assigned"
        for kind in ("Conv", "ConvTranspose")
        for dims in (1, 2, 3)
    },
}
if EXECUTION_DEVICE == "cuda":
    DIFFERENT |= {
        "nn_functional_ctc_loss": "asks for cuDNN on CUDA alone",
        "renorm": "accumulates in float on CUDA alone, and else in double",
        "sparse_mm_reduce": "the fake CUDA device has no sparse tensors",
        "sparse_sampled_addmm": "the fake CUDA device has no sparse tensors",
    }
    DIFFERENT_MODULES |= dict.fromkeys(
        ("nn.GRU", "nn.GRUCell", "nn.LSTM", "nn.LSTMCell"),
        "a cell is one operator for tensors whose type of device is CUDA",
    )


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


def operators_of(run) -> list[str]:
    """Those of `run()` and of the gradients of what it returns."""
    torch.manual_seed(0)
    with Operators() as seen:
        try:
            result = run()
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

    def run(sample, where):
        value, args, kwargs = moved((sample.input, sample.args, sample.kwargs), where)
        return lambda: op(value, *args, **kwargs)

    for _, sample in zip(range(SAMPLES), samples, strict=False):
        assert operators_of(run(sample, device)) == operators_of(run(sample, EXECUTION_DEVICE))


@pytest.mark.recording
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize(
    "info",
    [info for info in module_db if info.name not in DIFFERENT_MODULES],
    ids=lambda info: info.name,
)
def test_the_operators_of_modules_are_the_execution_devices(device, info, training):
    samples = info.module_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=False, training=training
    )

    def run(sample, where):
        made = sample.constructor_input
        module = info.module_cls(*made.args, **made.kwargs).to(where).train(training)
        args, kwargs = moved((sample.forward_input.args, sample.forward_input.kwargs), where)
        return lambda: module(*args, **kwargs)

    for _, sample in zip(range(MODULE_SAMPLES), samples, strict=False):
        assert operators_of(run(sample, device)) == operators_of(run(sample, EXECUTION_DEVICE))


PACKED = {
    "rnn": (nn.RNN, {"nonlinearity": "relu", "bias": False}),
    "rnn both ways": (nn.RNN, {"bidirectional": True, "num_layers": 2, "dropout": 0.1}),
    "gru": (nn.GRU, {"num_layers": 2}),
    "gru both ways": (nn.GRU, {"bidirectional": True}),
    "lstm": (nn.LSTM, {"num_layers": 2, "dropout": 0.1}),
    "lstm both ways": (nn.LSTM, {"bidirectional": True, "bias": False}),
    "lstm with projections": (nn.LSTM, {"proj_size": 2}),
}


@pytest.mark.recording
@pytest.mark.on_cpu("cuDNN's operators on CUDA")
@pytest.mark.parametrize("lengths", [[5, 4, 4, 1], [5, 5, 5, 5]], ids=["lengths", "one length"])
@pytest.mark.parametrize("name", PACKED)
def test_the_operators_of_packed_modules_are_the_execution_devices(device, name, lengths):
    kind, options = PACKED[name]

    def run(where):
        module = kind(3, 4, **options).to(where)
        data = torch.randn(5, 4, 3).to(where).requires_grad_()
        packed = pack_padded_sequence(data, torch.tensor(lengths))
        return lambda: module(packed)

    assert operators_of(run(device)) == operators_of(run(EXECUTION_DEVICE))
