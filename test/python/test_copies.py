"""Copies in every direction, with and without a change of dtype, blocking or not; and what may
change afterwards."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from behaviour import EXECUTION_DEVICE, Operators, hot, same, same_on
from torch._subclasses.fake_tensor import FakeTensorMode

DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
    torch.complex64,
]


def values(dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor([[0, 1, 2], [3, 100, 1]]).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_there_and_back(device, dtype):
    x = values(dtype)

    same(x.to(device).cpu(), x)
    same(x.to(device).to(device, copy=True).to("cpu"), x)


@pytest.mark.parametrize("target", DTYPES, ids=str)
@pytest.mark.parametrize(
    "source", [torch.float32, torch.int64, torch.bool, torch.bfloat16], ids=str
)
def test_casts_on_the_way_in_on_the_device_and_on_the_way_out(device, source, target):
    x = values(source)

    same(x.to(device, target).cpu(), x.to(target))
    same(x.to(device).to(target).cpu(), x.to(target))
    same(x.to(device).to("cpu", target), x.to(target))


@pytest.mark.parametrize("non_blocking", [False, True])
def test_copy_in_every_direction(device, non_blocking):
    here, there = torch.arange(6.0).reshape(2, 3), torch.zeros(2, 3, device=device)
    back, twin = torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.float64, device=device)

    there.copy_(here, non_blocking=non_blocking)
    twin.copy_(there, non_blocking=non_blocking)
    back.copy_(there, non_blocking=non_blocking)

    same(back, here)
    same(twin.cpu(), here.double())


@pytest.mark.parametrize("non_blocking", [False, True])
def test_a_source_changed_after_the_copy_does_not_change_the_copy(device, non_blocking):
    def step():
        source = torch.ones(4)
        there = source.to(device, non_blocking=non_blocking, copy=True)
        doubled = there * 2
        also = torch.zeros(4, device=device)
        also.copy_(source, non_blocking=non_blocking)
        source.fill_(99)
        return there, doubled, also

    there, doubled, also = hot(step, runs=5)

    assert there.tolist() == [1] * 4
    assert doubled.tolist() == [2] * 4
    assert also.tolist() == [1] * 4


def test_new_data_reaches_a_hot_loop(device):
    def step(x):
        y = x.to(device)
        return ((y + 1) * 2).cpu()

    for i in range(8):
        x = torch.full((3,), float(i))
        same(step(x), (x + 1) * 2)
        hot(lambda: None, runs=1)


def test_copies_through_views(device):
    def program(where):
        x = torch.zeros(4, 4, device=where)
        x[1:3, ::2].copy_(torch.arange(4.0).reshape(2, 2).t())
        x.diagonal().copy_(torch.ones(()))
        y = torch.ones(4, 1).to(where)
        x.t()[0:1].copy_(y.t())
        return x, x[:, 1].to("cpu", copy=True).to(where)

    same_on(device, program)


def test_strides_of_a_transferred_tensor(device):
    for x in (
        torch.ones(3, 4).t(),
        torch.ones(2, 3, 4).permute(2, 0, 1),
        torch.ones(3, 1).expand(3, 4),
        torch.ones(6)[::2],
    ):
        assert x.to(device, copy=True).stride() == x.to("cpu", copy=True).stride()


@pytest.mark.parametrize(
    "x",
    [
        torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
        torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last),
        torch.arange(3.0).as_strided((1, 3), (100, 1)),
        torch.arange(6.0)[1::2],
        torch.arange(40_000.0).reshape(200, 200).t(),
        torch.arange(4.0).to(torch.complex64).mul(1 + 1j).conj(),
        torch.arange(4.0).to(torch.complex64).mul(1j).conj().imag,
    ],
    ids=["dense", "channels last", "one row", "with gaps", "large", "conj", "neg"],
)
def test_layouts_arrive_with_values_and_strides(device, x):
    there = x.to(device, copy=True)

    back = there.to("cpu", copy=True)
    filled = torch.zeros_like(there).copy_(x)

    assert torch.equal(back, x)
    assert back.stride() == x.to("cpu", copy=True).to("cpu", copy=True).stride()
    assert torch.equal(filled.cpu(), x)


def test_scalars_and_empty_tensors(device):
    assert torch.tensor(3.5).to(device).item() == 3.5
    assert torch.zeros(0, 3).to(device).cpu().shape == (0, 3)
    assert torch.tensor(True).to(device).item() is True


def test_to_the_same_device_and_dtype_is_the_same_tensor(device):
    x = torch.ones(2, device=device)

    assert x.to(device) is x
    assert x.to(x.device, x.dtype) is x
    assert x.to(device, copy=True) is not x


ELEMENTS = {
    "an element": lambda x: x[1, 1],
    "what is pending": lambda x: x[0, 2] + x[1, 0],
    "the same, reinterpreted": lambda x: x[1, 1].view(x.dtype),
    "of a copy": lambda x: x.t().contiguous()[2, 1],
    "negated on access": lambda x: x.is_complex() and x.conj().imag[1, 1],
    "conjugated on access": lambda x: x.conj()[1, 1],
}


@pytest.mark.parametrize("read", ELEMENTS.values(), ids=ELEMENTS)
@pytest.mark.parametrize("dtype", [*DTYPES, torch.float8_e4m3fn], ids=str)
def test_an_element_is_read_as_on_the_cpu(device, dtype, read):
    def element(where):
        x = values(torch.float32).to(dtype).to(where)
        try:
            return torch.as_tensor(read(x)).item()
        except RuntimeError as error:  # no sums in this dtype
            return str(error)

    on_cpu = element("cpu")
    found = [element(device) for _ in range(4)]
    assert found == [on_cpu] * 4
    assert {type(value) for value in found} == {type(on_cpu)}


@pytest.mark.parametrize("to_device", [True, False])
def test_lists_are_copied_between_the_cpu_and_the_device(device, to_device):
    on_cpu = [torch.ones(3), torch.ones(2, 2)]
    there = [torch.zeros(3, device=device), torch.zeros(2, 2, device=device)]
    targets, sources = (there, on_cpu) if to_device else (on_cpu, there)

    for _ in range(4):
        for source in sources:
            source.add_(1)
        torch._foreach_copy_(targets, sources)

        same([target.cpu() for target in targets], [source.cpu() for source in sources])


def test_a_list_is_made_without_a_copy(device):
    x = values(torch.float32).to(device)

    with Operators() as operators:
        assert (x.t()[1:] + 1).tolist() == [[2, 101], [3, 2]]

    if EXECUTION_DEVICE == "cpu":
        assert not any("copy" in name for name in operators.names)


@pytest.mark.recording
def test_a_list_is_made_of_a_real_tensor_under_a_mode_of_fake_ones(device):
    x = values(torch.float32).to(device)

    with FakeTensorMode():
        assert x.tolist() == [[0, 1, 2], [3, 100, 1]]


def test_a_list_of_conjugates_is_that_of_the_cpu(device):
    x = torch.tensor([1 + 2j, 3 - 4j])

    assert x.to(device).conj().tolist() == x.conj().tolist()
    assert x.to(device).conj().imag.tolist() == x.conj().imag.tolist()


def test_tolist_numpy_and_iteration(device):
    x = torch.arange(4).to(device)

    assert x.tolist() == [0, 1, 2, 3]
    assert np.array_equal(x.cpu().numpy(), np.arange(4))
    assert [int(e) for e in x] == [0, 1, 2, 3]
    assert len(x) == 4


def test_zero_dim_cpu_tensors_mix_as_on_other_devices(device):
    x = torch.ones(3, device=device)

    assert (x * torch.tensor(2.0)).tolist() == [2] * 3
    assert (torch.tensor(2.0) - x).tolist() == [1] * 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor(2.0),
        lambda: torch.tensor(1 + 2j).conj(),
        lambda: torch.tensor(1 + 2j).conj().imag,
        lambda: torch._efficientzerotensor(3),
        lambda: torch.arange(6.0).view(2, 3).t()[1],
        lambda: torch.tensor(2.0).expand(3),
    ],
    ids=["number", "conjugate", "negative", "zeros without memory", "column", "expanded"],
)
def test_a_cpu_tensor_is_read_at_the_call_of_a_hot_loop(device, make):
    def step(on):
        source, made = make(), torch.ones(4, *make().shape, dtype=make().dtype, device=on)
        target = made * 2
        target.copy_(source)
        if source.dim() == 0:
            target = target * source
            source.fill_(7)
        return target + 1

    same_on(device, step)


def test_gradients_cross_devices(device):
    x = torch.ones(3, requires_grad=True)

    (x.to(device) * 3).cpu().sum().backward()

    same(x.grad, torch.full((3,), 3.0))
