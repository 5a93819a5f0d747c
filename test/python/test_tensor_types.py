"""Types of tensors by dtype, which older scripts choose as `torch.cuda.FloatTensor`."""

from __future__ import annotations

import pickle

import numpy
import pytest
import torch
from behaviour import same

pytestmark = pytest.mark.recording  # the CPU's types have other names

TYPES = [
    (torch.lazy.BFloat16Tensor, torch.BFloat16Tensor),
    (torch.lazy.BoolTensor, torch.BoolTensor),
    (torch.lazy.ByteTensor, torch.ByteTensor),
    (torch.lazy.CharTensor, torch.CharTensor),
    (torch.lazy.DoubleTensor, torch.DoubleTensor),
    (torch.lazy.FloatTensor, torch.FloatTensor),
    (torch.lazy.HalfTensor, torch.HalfTensor),
    (torch.lazy.IntTensor, torch.IntTensor),
    (torch.lazy.LongTensor, torch.LongTensor),
    (torch.lazy.ShortTensor, torch.ShortTensor),
]


@pytest.mark.parametrize(("lazy", "cpu"), TYPES, ids=lambda kind: kind.__name__)
def test_a_type_makes_what_the_cpus_makes(lazy, cpu):
    made = lazy([0, 1, 1])

    assert made.is_lazy
    same(made, cpu([0, 1, 1]))
    same(lazy(2, 3).shape, cpu(2, 3).shape)
    assert lazy.dtype == cpu.dtype


@pytest.mark.parametrize(("lazy", "cpu"), TYPES, ids=lambda kind: kind.__name__)
def test_a_tensor_is_an_instance_of_its_type_alone(lazy, cpu):
    x = torch.zeros(2, dtype=cpu.dtype, device="lazy")

    assert [kind for kind, _ in TYPES if isinstance(x, kind)] == [lazy]
    assert not isinstance(x, cpu)
    assert not isinstance(x.cpu(), lazy)
    assert isinstance(torch.nn.Parameter(x, requires_grad=False), lazy)


def test_a_type_takes_arrays_sizes_and_tensors():
    array, size = numpy.ones((2, 2)), torch.Size([3])
    x = torch.arange(2.0, device="lazy")

    alias = torch.lazy.FloatTensor(x)
    alias[0] = 5

    same(torch.lazy.FloatTensor(array), torch.FloatTensor(array))
    same(torch.lazy.FloatTensor(size).shape, size)
    same(torch.lazy.FloatTensor().shape, torch.Size([0]))
    assert x.tolist() == [5, 1]


@pytest.mark.parametrize("kind", [torch.lazy.DoubleTensor, "torch.lazy.DoubleTensor"])
def test_a_tensor_is_converted_to_a_type(kind):
    converted = torch.arange(3).type(kind)

    assert converted.is_lazy
    same(converted, torch.arange(3.0, dtype=torch.float64))
    assert converted.type() == "torch.lazy.DoubleTensor"
    assert converted.type(converted.type()) is converted


def test_the_cpus_types_and_dtypes_convert_as_before():
    x = torch.ones(2, device="lazy")

    assert x.type(torch.FloatTensor).device.type == "cpu"
    assert x.type("torch.DoubleTensor").dtype == torch.float64
    assert x.type(torch.int32).is_lazy
    assert x.type(dtype=torch.int32).dtype == torch.int32


def test_a_name_of_no_type_is_an_error():
    with pytest.raises(ValueError, match=r"invalid type: 'torch\.lazy\.NoTensor'"):
        torch.ones(2).type("torch.lazy.NoTensor")


def test_a_type_can_be_pickled():
    assert pickle.loads(pickle.dumps(torch.lazy.FloatTensor)) is torch.lazy.FloatTensor


@pytest.mark.parametrize("kind", [torch.lazy.DoubleTensor, "torch.lazy.DoubleTensor"])
@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type")
def test_a_type_is_the_default_one_until_another_is(kind):
    torch.set_default_tensor_type(kind)
    try:
        by_default = torch.ones(2)
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    afterwards = torch.ones(2)

    assert (by_default.device.type, by_default.dtype) == ("lazy", torch.float64)
    assert (afterwards.device.type, afterwards.dtype) == ("cpu", torch.float32)


def test_a_type_in_a_compiled_function():
    compiled = torch.compile(lambda x: x.type(torch.float64) * 2, backend="eager", fullgraph=True)

    same(compiled(torch.ones(2, device="lazy")), torch.full((2,), 2.0, dtype=torch.float64))
