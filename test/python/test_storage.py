"""Storages: what a script does with `untyped_storage()` and `storage()` gives the CPU's bytes."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from behaviour import deferred, hot, run_script, same_on, synchronize, torch_lazy
from saving import base_type
from torch import UntypedStorage
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._mode_utils import no_dispatch

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


def storage_of(values: list[int], device: str) -> UntypedStorage:
    return torch.tensor(values, dtype=torch.uint8).to(device).untyped_storage()


# ---------------------------------------------------------------- reading


def test_size_and_device(device):
    storage = torch.zeros(2, 3, dtype=torch.int16, device=device).untyped_storage()

    assert (storage.nbytes(), storage.size(), len(storage)) == (12, 12, 12)
    assert storage.device.type == base_type(device)


def test_bytes_are_read(device):
    storage = storage_of([3, 1, 4, 1, 5], device)

    assert storage.tolist() == [3, 1, 4, 1, 5]
    assert (storage[2], storage[-1]) == (4, 5)


def test_pending_work_runs_before_a_storage_is_read(device):
    x = torch.arange(4.0).to(device)

    read = hot(lambda: (x * 2).untyped_storage().float().tolist())

    assert read == (torch.arange(4.0) * 2).untyped_storage().float().tolist()


def test_a_typed_storage_has_elements(device):
    typed = torch.arange(4.0).to(device).storage()

    assert typed.tolist() == [0, 1, 2, 3]
    assert (typed[3], typed.size(), typed.nbytes(), typed.dtype) == (3.0, 4, 16, torch.float32)


def test_repr_shows_bytes_and_device(device):
    text = repr(storage_of([7, 9], device))

    assert text.startswith(" 7\n 9\n")
    assert f"device={torch.ones(1, device=device).device}" in text


def test_an_index_out_of_range_is_an_error(device):
    with pytest.raises(IndexError, match="index 7 out of range for storage of size 2"):
        storage_of([1, 2], device)[7]


# ---------------------------------------------------------------- identity and addresses


def test_views_have_one_storage(device):
    x = torch.zeros(3, 4, device=device)

    assert x.untyped_storage()._cdata == x[1:].t().untyped_storage()._cdata
    assert x.untyped_storage()._cdata != x.clone().untyped_storage()._cdata


def test_the_address_is_that_of_the_first_byte(device):
    x = torch.arange(8.0).to(device)

    hot(lambda: x.add_(1))

    assert x.untyped_storage().data_ptr() == x.data_ptr() != 0
    assert x[2:].untyped_storage().data_ptr() == x.storage().data_ptr() == x.data_ptr()


def test_a_storage_without_bytes_has_no_address(device):
    assert torch.empty(0, device=device).untyped_storage().data_ptr() == 0


@pytest.mark.recording
def test_asking_for_an_address_does_not_stop_deferring(device):
    x = torch.arange(8.0).to(device)

    def step():
        x.mul_(0.5).add_(1)

    x.untyped_storage().data_ptr()
    hot(step)

    assert deferred(step) == 2


# ---------------------------------------------------------------- writing


def test_bytes_are_written(device):
    x = torch.zeros(4, dtype=torch.uint8, device=device)

    x.untyped_storage()[1] = 7
    x.untyped_storage()[2:4] = 5

    assert x.tolist() == [0, 7, 5, 5]


def test_fill_and_copy(device):
    x = torch.zeros(3, dtype=torch.uint8, device=device)

    x.untyped_storage().fill_(9)
    assert x.tolist() == [9, 9, 9]
    assert x.untyped_storage().copy_(UntypedStorage([1, 2, 3])).device.type == base_type(device)
    assert x.tolist() == [1, 2, 3]
    assert UntypedStorage(3).copy_(x.untyped_storage()).tolist() == [1, 2, 3]


def test_a_write_comes_between_the_operations_around_it(device):
    def steps(where):
        x = torch.arange(4.0).to(where)
        y = x * 2
        x.untyped_storage().fill_(0)
        z = x + y
        x.storage()[0] = 3.0
        return x * 2, y, z

    same_on(device, lambda where: [t.cpu() for t in steps(where)])


def test_copying_another_number_of_bytes_is_an_error(device):
    with pytest.raises(RuntimeError, match="size does not match, self was 2 bytes but src was 3"):
        storage_of([1, 2], device).copy_(UntypedStorage(3))


def test_a_slice_shares_the_memory(device):
    x = torch.zeros(6, dtype=torch.uint8, device=device)

    part = x.untyped_storage()[2:4]
    part.fill_(8)
    x.add_(1)

    assert x.tolist() == [1, 1, 9, 9, 1, 1]
    assert part.tolist() == [9, 9]
    assert part.device.type == base_type(device)


# ---------------------------------------------------------------- making and moving


def test_a_storage_is_made_on_the_device(device):
    storage = UntypedStorage(6, device=device)
    x = torch.empty(0, dtype=torch.int16, device=device).set_(storage)

    x.copy_(torch.tensor([1, 2, 3]))

    assert storage.device.type == base_type(device)
    assert storage.short().tolist()[::2] == [1, 2, 3]
    assert UntypedStorage(device=device).nbytes() == 0
    assert UntypedStorage([1, 2], device=device).tolist() == [1, 2]
    assert torch.TypedStorage(4, dtype=torch.int32, device=device).fill_(3).tolist() == [3] * 4


def test_a_storage_moves_between_devices(device):
    here = UntypedStorage([1, 2, 3])

    there = here.to(device=device)

    assert there.device.type == base_type(device)
    assert there.to(device=device) is there
    assert there.cpu().tolist() == there.to(device="cpu").tolist() == [1, 2, 3]
    assert torch.FloatStorage([1.0, 2.0]).to(device=device).tolist() == [1, 2]


@pytest.mark.recording
def test_lazy_is_to_lazy(device):
    assert UntypedStorage([1, 2]).lazy().is_lazy
    assert torch.FloatStorage([1.0]).lazy().is_lazy
    assert not UntypedStorage(1).is_lazy


def test_a_clone_is_independent(device):
    storage = storage_of([1, 2], device)

    for twin in (storage.clone(), copy.copy(storage), copy.deepcopy(storage)):
        twin.fill_(0)

    assert storage.tolist() == [1, 2]


def test_elements_are_converted(device):
    storage = storage_of([0, 1, 255], device)

    for convert in ("float", "double", "half", "long", "bool", "bfloat16", "complex_float"):
        converted = getattr(storage, convert)()
        assert converted.tolist() == getattr(storage.cpu(), convert)().tolist()
        assert converted.device.type == base_type(device)


@pytest.mark.recording
def test_there_is_one_device():
    with pytest.raises(ValueError, match="there is no device lazy:1"):
        UntypedStorage(1, device="lazy:1")
    with pytest.raises(ValueError, match="there is no device lazy:3"):
        UntypedStorage(1).to(device="lazy:3")


def test_bad_arguments_are_errors(device):
    with pytest.raises(RuntimeError, match="Expected a sequence type, but got float"):
        UntypedStorage(1.5, device=device)
    with pytest.raises((RuntimeError, ValueError), match=r"no size of -1|negative number"):
        UntypedStorage(-1, device=device)
    with pytest.raises((RuntimeError, TypeError), match="resize_ expects"):
        UntypedStorage(1, device=device).resize_("2")
    with pytest.raises(TypeError, match=r"must be torch\.Storage, not int"):
        UntypedStorage(1, device=device).copy_(3)


@pytest.mark.recording
def test_what_only_the_cpu_can_do_is_refused(device):
    with pytest.raises(TypeError, match="only CPU memory can be pinned"):
        UntypedStorage(4, device=device).pin_memory()
    assert not UntypedStorage(4, device=device).is_pinned()


# ---------------------------------------------------------------- tensors on storages


def test_set_takes_a_storage(device):
    base = torch.arange(12.0).to(device)

    view = torch.empty(0, device=device).set_(base.untyped_storage(), 2, (2, 3), (4, 1))
    base.mul_(10)

    assert view.tolist() == [[20, 30, 40], [60, 70, 80]]


def test_a_tensor_is_made_of_a_typed_storage(device):
    x = torch.arange(3.0).to(device)

    twin = x.new(x.storage())
    twin.zero_()

    assert x.tolist() == [0, 0, 0]


def test_memory_is_freed_and_allocated_again(device):
    """What sharded training does with the parameters of a layer that is not at work."""
    x = torch.arange(6.0).to(device)
    view = x.view(2, 3)
    size = x.untyped_storage().nbytes()

    for i in range(5):
        x.untyped_storage().resize_(0)
        assert x.untyped_storage().size() == 0
        x.untyped_storage().resize_(size)
        x.copy_(torch.full((6,), float(i)))
        total = hot(lambda: (view * 2).sum(), runs=1)
        assert total.item() == 12 * i


def test_resizing_keeps_the_bytes_that_fit(device):
    x = torch.arange(4, dtype=torch.uint8).to(device)

    x.untyped_storage().resize_(6)

    assert x.untyped_storage().nbytes() == 6
    assert x.untyped_storage().tolist()[:4] == x.tolist() == [0, 1, 2, 3]
    x.untyped_storage().resize_(2)
    assert x.untyped_storage().tolist() == [0, 1]


@pytest.mark.recording
def test_memory_of_freed_storages_is_given_back(device):
    x = torch.zeros(1 << 16, device=device)
    synchronize()
    before = torch_lazy.memory_allocated()

    x.untyped_storage().resize_(0)

    assert before - torch_lazy.memory_allocated() >= 4 << 16


@pytest.mark.on_cpu("processes share memory of the host")
@pytest.mark.recording
def test_shared_memory_is_not_resized():
    storage = UntypedStorage(4, device="lazy").share_memory_()

    with pytest.raises(RuntimeError, match="cannot resize a storage on memory that came from"):
        storage.resize_(8)


def test_a_pending_storage_of_a_hot_window_has_the_size_it_will_have(device):
    x = torch.arange(5.0).to(device)

    def step():
        y = x * 2
        return y, y.untyped_storage().nbytes()

    y, before = hot(step)

    assert before == y.untyped_storage().nbytes() == len(y.untyped_storage().tolist()) == 20


# ---------------------------------------------------------------- shared memory


@pytest.mark.on_cpu("processes share memory of the host")
def test_only_shared_memory_says_that_it_is_shared(device):
    x = torch.arange(4.0).to(device)
    assert not x.is_shared()

    x.share_memory_()

    assert x.is_shared()
    assert x[1:].untyped_storage().is_shared()
    assert not x.clone().is_shared()
    assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.on_cpu("processes share memory of the host")
def test_operations_go_on_in_shared_memory(device):
    x = torch.arange(4.0).to(device)
    view = x[1:]
    hot(lambda: x.add_(0))

    x.share_memory_()
    hot(lambda: view.add_(1), runs=3)

    assert x.tolist() == [0, 4, 5, 6]


def test_storages_of_other_devices_are_as_before():
    """The CPU's own functions answer where the plugin is not meant."""
    code = """
import torch
s = torch.UntypedStorage([1, 2, 3])
print(s.tolist(), s[0:2].tolist(), s.new().nbytes(), s.is_shared())  # PyTorch's new() may end
print(s.share_memory_().is_shared(), s.device)  # the process once the memory is shared
print(torch.UntypedStorage(4, device="meta").device, s.to(device="cpu") is s)
"""
    stock = run_script(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")

    assert stock.stdout == run_script(code).stdout != ""


def test_nothing_warns_but_typed_storages(device):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        storage = UntypedStorage(4, device=device).fill_(1)
        assert storage.clone().resize_(2).tolist() == [1, 1]


def test_a_subclass_made_in_python_shows_the_storage_that_it_is_set_to(device):
    one, other = (TwoTensor(part, part) for part in torch.ones(2, 2, 3).to(device))

    # As the tensors that they show, which have no elements.
    with no_dispatch(), torch._C._AutoDispatchBelowAutograd():
        one.set_(other.t())

    assert one.shape == (3, 2)
    assert one.stride() == (1, 3)
