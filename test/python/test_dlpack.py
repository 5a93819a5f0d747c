"""DLPack and numpy: the exported memory is the tensor's own, also after later, deferred writes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from behaviour import LAZY, hot, synchronize, torch_lazy


def numpy_of(t: torch.Tensor) -> np.ndarray:
    return np.from_dlpack(t)


def imported(x: torch.Tensor, device: str) -> torch.Tensor:
    """A tensor of the device on the memory of a CPU tensor."""
    return torch_lazy.from_dlpack(x) if device.startswith(LAZY) else torch.from_dlpack(x)


@pytest.mark.on_cpu("NumPy's memory is the host's")
def test_exported_memory_is_shared(device):
    x = torch.arange(6.0).reshape(2, 3).to(device)
    seen = numpy_of(x)

    assert seen.tolist() == [[0, 1, 2], [3, 4, 5]]
    x.add_(1)
    synchronize()
    assert seen.tolist() == [[1, 2, 3], [4, 5, 6]]
    seen[0, 0] = 50
    assert x[0, 0].item() == 50


@pytest.mark.on_cpu("NumPy's memory is the host's")
def test_a_pending_value_is_computed_for_export(device):
    x = torch.arange(4.0).to(device)

    exported = hot(lambda: numpy_of(x * 2 + 1), runs=5)

    assert exported.tolist() == [1, 3, 5, 7]


@pytest.mark.on_cpu("NumPy's memory is the host's")
def test_writes_to_exported_memory_are_seen_at_the_call(device):
    x = torch.zeros(4, device=device)
    seen = numpy_of(x)

    for i in range(6):
        seen[:] = i
        y = x * 2
        seen[:] = -1
        assert y.tolist() == [2 * i] * 4
        hot(lambda: None, runs=1)


@pytest.mark.on_cpu("NumPy's memory is the host's")
def test_a_view_is_exported_with_its_strides_and_offset(device):
    x = torch.arange(12.0).reshape(3, 4).to(device)

    seen = numpy_of(x.t()[1:3, ::2])

    assert seen.tolist() == [[1, 9], [2, 10]]
    seen[:] = 0
    assert x[0].tolist() == [0, 0, 0, 3]


@pytest.mark.on_cpu("memory of the execution device is imported, which here is the CPU's")
def test_imported_memory_is_shared(device):
    x = torch.arange(4.0)
    there = imported(x, device)

    assert there.device.type == device.partition(":")[0]
    there.mul_(2)
    synchronize()
    assert x.tolist() == [0, 2, 4, 6]
    x[0] = 9
    assert there.tolist() == [9, 2, 4, 6]


@pytest.mark.on_cpu("memory of the execution device is imported, which here is the CPU's")
def test_overlapping_imports_see_each_others_writes(device):
    x = torch.zeros(6)
    left, right = imported(x[:4], device), imported(x[2:], device)

    def step():
        left.add_(1)
        right.mul_(2)
        left.add_(right)

    reference = torch.zeros(6)
    for _ in range(6):
        hot(step, runs=1)
        reference[:4].add_(1)
        reference[2:].mul_(2)
        reference[:4].add_(reference[2:].clone())
        assert x.tolist() == reference.tolist()


@pytest.mark.on_cpu("NumPy's memory is the host's")
def test_imported_memory_of_numpy(device):
    array = np.arange(4, dtype=np.float32)
    there = imported(torch.from_numpy(array), device)

    there.add_(1)
    synchronize()

    assert array.tolist() == [1, 2, 3, 4]


def test_round_trip_through_torch(device):
    x = torch.arange(4.0).to(device)

    here = torch.from_dlpack(x)

    assert here.device == x.device
    here[1] = 7
    assert x.tolist() == [0, 7, 2, 3]


def asarray_by_name(capsule: object) -> torch.Tensor:
    return torch.asarray(obj=capsule)


@pytest.mark.parametrize("take", [torch.asarray, asarray_by_name, torch.from_dlpack])
def test_a_capsule_comes_back_as_a_tensor_of_the_device(device, take):
    x = torch.arange(4.0).to(device)

    for capsule in (torch.to_dlpack(x), x.__dlpack__(max_version=(1, 0))):
        back = take(capsule)
        back[1] += 7

        assert back.device == x.device
    assert x.tolist() == [0, 15, 2, 3]


def test_an_array_of_a_capsule_is_moved_and_cast(device):
    x = torch.arange(4.0).to(device)

    there = torch.asarray(torch.to_dlpack(x), device="cpu", dtype=torch.int64)
    copied = torch.asarray(torch.to_dlpack(x), copy=True)
    copied.zero_()

    assert (there.device.type, there.tolist()) == ("cpu", [0, 1, 2, 3])
    assert (copied.device, x.tolist()) == (x.device, [0, 1, 2, 3])


def test_a_capsule_of_the_cpu_stays_the_cpus(device):
    x = torch.arange(4.0)

    assert torch.asarray(torch.to_dlpack(x)).device.type == "cpu"
    assert torch.asarray(torch.to_dlpack(x), device=device).device.type == device.partition(":")[0]


@pytest.mark.on_cpu("the CPU's tensor is on memory of the execution device")
def test_a_tensor_of_the_cpu_is_made_of_the_devices_memory(device):
    x = torch.arange(4.0).to(device)

    here = torch.from_dlpack(x, device="cpu")

    assert here.device.type == "cpu"
    here[1] = 7
    assert x.tolist() == [0, 7, 2, 3]


@pytest.mark.parametrize("copy", [None, True])
def test_what_other_libraries_made_is_copied_to_the_device(device, copy):
    array = np.ones(3)

    there = torch.from_dlpack(array, device=device, copy=copy)
    array[0] = 5

    assert there.device.type == device.partition(":")[0]
    assert there.tolist() == [5 if device == "cpu" and not copy else 1, 1, 1]


@pytest.mark.on_cpu("NumPy's memory is the host's")
def test_what_other_libraries_made_is_shared_where_a_copy_is_forbidden(device):
    array = np.ones(3)

    there = torch.from_dlpack(array, device=device, copy=False)
    array[0] = 5

    assert there.device.type == device.partition(":")[0]
    assert there.tolist() == [5, 1, 1]


def test_a_copy_that_is_asked_for_shares_nothing(device):
    x = torch.arange(4.0).to(device)

    copy = torch.from_dlpack(x, copy=True)
    copy[1] = 7

    assert copy.device == x.device
    assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.on_cpu("NumPy's memory is the host's")
def test_the_memory_outlives_the_tensor(device):
    seen = numpy_of(torch.full((1000,), 3.0).to(device))

    torch.zeros(1000, device=device).add_(1)

    assert seen.sum() == 3000


def test_a_tensor_that_requires_grad_is_refused(device):
    with pytest.raises(BufferError, match="require"):
        numpy_of(torch.ones(3, device=device, requires_grad=True))


@pytest.mark.on_cpu("NumPy's memory is the host's")
def test_to_dlpack_does_not_ask_for_a_gradient(device):
    x = torch.ones(3, device=device, requires_grad=True)

    shared = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))

    assert shared.tolist() == [1, 1, 1]
    assert not shared.requires_grad


def test_data_ptr_is_the_exported_address(device):
    x = torch.arange(4.0).to(device)
    hot(lambda: x.add_(0))

    assert x.data_ptr() == numpy_of(x).__array_interface__["data"][0] != 0
    assert x.const_data_ptr() == x.data_ptr()


@pytest.mark.recording
def test_numpy_and_cuda_arrays_are_refused(device):
    """As on CUDA, where `numpy()` wants the tensor on the CPU, and unlike there `hasattr` tells
    other libraries that the memory is no CUDA memory."""
    x = torch.ones(3, device=device)

    for convert in (torch.Tensor.numpy, np.asarray):
        with pytest.raises(TypeError, match=r"can't convert lazy:0 .* Use Tensor\.cpu\(\)"):
            convert(x)
    with pytest.raises(AttributeError, match="__cuda_array_interface__ on non-CUDA tensor type"):
        _ = x.__cuda_array_interface__
    assert x.numpy(force=True).tolist() == [1, 1, 1]
