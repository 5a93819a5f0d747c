"""A fast, fixed slice of `torch_lazy.conformance.opinfo`: operators of every kind behave on the
device as on the CPU.

The whole list is checked by the command; `opinfo_expected.txt` names what is known to differ, and
why.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch

from torch_lazy.conformance import opinfo
from torch_lazy.conformance.verdicts import expected_failures

# By hand: the operators that training scripts live on.
COMMON = [
    "__getitem__",
    "add",
    "addmm",
    "amax",
    "argmax",
    "as_strided",
    "baddbmm",
    "bernoulli",
    "bmm",
    "cat",
    "chunk",
    "clamp",
    "clone",
    "contiguous",
    "cumsum",
    "diagonal",
    "div.no_rounding_mode",
    "einsum",
    "empty_like",
    "exp",
    "expand",
    "fill",
    "flatten",
    "floor_divide",
    "full",
    "gather",
    "index_add",
    "index_copy",
    "index_put",
    "index_select",
    "linalg.inv",
    "linalg.norm",
    "linspace",
    "log_softmax",
    "logsumexp",
    "masked_fill",
    "masked_select",
    "matmul",
    "max.reduction_with_dim",
    "mean",
    "mm",
    "mul",
    "multinomial",
    "native_layer_norm",
    "new_zeros",
    "nn.functional.batch_norm",
    "nn.functional.conv2d",
    "nn.functional.cross_entropy",
    "nn.functional.dropout",
    "nn.functional.embedding",
    "nn.functional.gelu",
    "nn.functional.group_norm",
    "nn.functional.interpolate.bilinear",
    "nn.functional.layer_norm",
    "nn.functional.linear",
    "nn.functional.max_pool2d",
    "nn.functional.mse_loss",
    "nn.functional.pad.constant",
    "nn.functional.relu",
    "nn.functional.scaled_dot_product_attention",
    "nn.functional.softplus",
    "nn.functional.unfold",
    "nonzero",
    "norm",
    "ones",
    "permute",
    "pow",
    "prod",
    "randn",
    "repeat",
    "reshape",
    "resize_",
    "roll",
    "rsub",
    "scatter",
    "scatter_add",
    "select",
    "slice",
    "sort",
    "split",
    "squeeze",
    "stack",
    "std",
    "sub",
    "sum",
    "t",
    "take",
    "tanh",
    "to",
    "topk",
    "transpose",
    "tril",
    "unbind",
    "unfold",
    "unique",
    "unsqueeze",
    "var",
    "view",
    "view_as_complex",
    "where",
    "zeros",
]
# And each so-manieth of all, so that the corners are visited too.
STRIDE = 17
SAMPLES = 2

_OPERATORS = opinfo.operators()
_EXPECTED = expected_failures(Path(__file__).with_name("opinfo_expected.txt"))
SLICE = sorted({n for n in COMMON if n in _OPERATORS} | set(sorted(_OPERATORS)[::STRIDE]))


@pytest.mark.parametrize("name", SLICE)
def test_operator_behaves_as_on_the_cpu(name, device):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = opinfo.judge(_OPERATORS[name], device, limit=SAMPLES)

    unexpected = [f for f in verdict.failures if (name, f.kind) not in _EXPECTED]
    assert not unexpected, "\n".join(
        f"{f.kind}, sample {f.sample}, run {f.run}: {f.reason}" for f in unexpected
    )


def test_the_harness_sees_wrong_strides_values_and_gradients(monkeypatch):
    wrong_strides = lambda t: t.t().clone(memory_format=torch.contiguous_format).t()  # noqa: E731
    wrong_gradient = lambda t: t.detach() * 2 - t  # noqa: E731 - the value of t, minus its gradient
    seen = []
    for wrong in (wrong_strides, lambda t: t + 1e-3, wrong_gradient):
        calls = iter(range(100))

        def call(t, calls=calls, wrong=wrong):
            is_devices = next(calls) and t.dtype == torch.float32
            return wrong(t.clone()) if is_devices else t.clone()

        operator = _Operator(call)
        seen.append({f.kind: f.reason for f in opinfo.judge(operator, "cpu").failures})

    assert "strides" in seen[0]["forward"]
    assert "not close" in seen[1]["forward"]
    assert "forward" not in seen[2]
    assert "gradient 0" in seen[2]["gradients"]


class _Operator:
    """As much of an OpInfo as the harness needs; its first call is the reference's, the others the
    device's, unless they are in double."""

    name, variant_test_name, supports_autograd = "own", "", True

    def supported_backward_dtypes(self, device):
        return {torch.float32}

    def __init__(self, op):
        self.op = op

    def sample_inputs(self, device, dtype, requires_grad):
        from torch.testing._internal.opinfo.core import SampleInput

        yield SampleInput(torch.randn(3, 4, dtype=dtype, requires_grad=requires_grad))
