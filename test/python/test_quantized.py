"""Quantized tensors of the device, and modules that PyTorch has quantized."""

from __future__ import annotations

import copy
import ctypes
import io

import pytest
import torch
from behaviour import same, wait_for_compiles
from torch import nn
from torch.ao import quantization

pytestmark = [
    pytest.mark.recording,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

_no_quantized = pytest.mark.on_cpu("the fake CUDA device has no quantized tensors")


def per_tensor(device: str) -> torch.Tensor:
    """Of a tensor that is pending on the device."""
    x = torch.linspace(-1, 1, 12, device=device).view(3, 4) * 2
    return torch.quantize_per_tensor(x, 0.05, 3, torch.qint8)


def per_channel(device: str) -> torch.Tensor:
    x = torch.linspace(-1, 1, 12, device=device).view(3, 4) * 2
    scales = torch.tensor([0.1, 0.2, 0.05], device=device)
    zero_points = torch.tensor([0, 1, 2], device=device)
    return torch.quantize_per_channel(x, scales, zero_points, 0, torch.quint8)


def observed(value: object) -> object:
    if isinstance(value, list | tuple):
        return [observed(element) for element in value]
    if not isinstance(value, torch.Tensor):
        return value
    if not value.is_quantized:
        return value.cpu().clone()
    scheme = (
        (value.q_scale(), value.q_zero_point())
        if value.qscheme() == torch.per_tensor_affine
        else (value.q_per_channel_scales().cpu(), value.q_per_channel_axis())
    )
    return [value.int_repr().cpu(), value.stride(), str(value.dtype), *scheme]


def through_a_file(value: torch.Tensor) -> torch.Tensor:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file)


OPERATORS = {
    "itself": lambda q: q,
    "dequantized": lambda q: q.dequantize(),
    "integers": lambda q: q.int_repr(),
    "parameters": lambda q: (q.qscheme() == torch.per_tensor_affine, q.is_quantized),
    "cloned": lambda q: q.clone(),
    "written by floats": lambda q: q.copy_(torch.ones(3, 4, device=q.device)),
    "equal to itself": lambda q: torch.equal(q, q),
    "through a file": through_a_file,
    "deepcopy": copy.deepcopy,
    "to the device": lambda q: q.to(q.device),
}
OF_ONE_SCALE = {
    "view": lambda q: q.view(4, 3),
    "transposed": lambda q: q.transpose(0, 1),
    "slice": lambda q: q[:, 1:3],
    "flipped": lambda q: torch.flip(q, [0]),
    "rectified": lambda q: torch.relu(q),
    "sum of two": lambda q: torch.ops.quantized.add(q, q, 0.1, 0),
    "largest": lambda q: torch.topk(q, 2)[0],
    "joined": lambda q: torch.cat([q, q]),
}
CASES = [
    *(
        pytest.param(per_tensor, operator, id=f"one scale, {name}")
        for name, operator in (OPERATORS | OF_ONE_SCALE).items()
    ),
    *(
        pytest.param(per_channel, operator, id=f"scales of channels, {name}")
        for name, operator in OPERATORS.items()
    ),
]


@_no_quantized
@pytest.mark.parametrize(("make", "operator"), CASES)
def test_an_operator_computes_what_the_cpus_does(make, operator):
    def run(device):
        quantized = make(device)
        result = operator(quantized)
        if isinstance(result, torch.Tensor):
            assert result.device.type == device
        return observed([result, quantized])

    for _ in range(3):
        same(run("lazy"), run("cpu"))
        wait_for_compiles()


@_no_quantized
def test_a_quantized_tensor_moves_to_the_device_and_back():
    there = per_tensor("cpu").to("lazy")

    assert there.is_lazy
    assert there.is_quantized
    same(observed(there.cpu()), observed(per_tensor("cpu")))


@_no_quantized
def test_a_write_through_a_view_is_seen_through_the_base():
    def run(device):
        quantized = per_tensor(device)
        quantized.view(12)[:6].copy_(torch.zeros(6, device=device))
        return observed(quantized)

    same(run("lazy"), run("cpu"))


def _dynamic(module):
    return quantization.quantize_dynamic(module, {nn.Linear, nn.LSTM}, dtype=torch.qint8)


def _static(module):
    whole = nn.Sequential(quantization.QuantStub(), module, quantization.DeQuantStub()).eval()
    whole.qconfig = quantization.get_default_qconfig("fbgemm")
    prepared = quantization.prepare(whole)
    prepared(torch.linspace(-1, 1, 12).view(3, 4))
    return quantization.convert(prepared)


def _perceptron():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


MODULES = {
    "linear, dynamic": lambda: _dynamic(_perceptron()),
    "LSTM, dynamic": lambda: _dynamic(nn.LSTM(4, 5)),
    "linear, static": lambda: _static(_perceptron()),
}


@_no_quantized
@pytest.mark.parametrize("make", MODULES.values(), ids=MODULES)
def test_a_quantized_module_computes_what_the_cpus_does(make):
    torch.manual_seed(0)
    module = make()
    x = torch.linspace(-1, 1, 12).view(1, 3, 4)
    expected = module(x)

    module = module.to("lazy")
    for _ in range(3):
        same(module(x.to("lazy")), expected)
        wait_for_compiles()


@_no_quantized
def test_dlpack_refuses_it_as_on_the_cpu(device):
    for export in (torch.to_dlpack, torch.from_dlpack):
        with pytest.raises(BufferError, match="QUInt/QInt types are not supported by dlpack"):
            export(per_tensor(device))


@_no_quantized
def test_its_address_is_that_of_its_integers(device):
    quantized = per_tensor(device)

    integers = (ctypes.c_int8 * 12).from_address(quantized.data_ptr())

    assert list(integers) == quantized.int_repr().flatten().tolist()
