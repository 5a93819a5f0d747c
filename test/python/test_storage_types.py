"""Storages by dtype, which older scripts choose as `torch.cuda.FloatStorage`."""

from __future__ import annotations

import pickle

import pytest
import torch

pytestmark = [
    pytest.mark.recording,  # the CPU's types have other names
    pytest.mark.filterwarnings("ignore:TypedStorage is deprecated"),
]

TYPES = [
    (torch.lazy.BFloat16Storage, torch.BFloat16Storage),
    (torch.lazy.BoolStorage, torch.BoolStorage),
    (torch.lazy.ByteStorage, torch.ByteStorage),
    (torch.lazy.CharStorage, torch.CharStorage),
    (torch.lazy.ComplexDoubleStorage, torch.ComplexDoubleStorage),
    (torch.lazy.ComplexFloatStorage, torch.ComplexFloatStorage),
    (torch.lazy.DoubleStorage, torch.DoubleStorage),
    (torch.lazy.FloatStorage, torch.FloatStorage),
    (torch.lazy.HalfStorage, torch.HalfStorage),
    (torch.lazy.IntStorage, torch.IntStorage),
    (torch.lazy.LongStorage, torch.LongStorage),
    (torch.lazy.ShortStorage, torch.ShortStorage),
]


@pytest.mark.parametrize(("lazy", "cpu"), TYPES, ids=lambda kind: kind.__name__)
def test_a_type_makes_what_the_cpus_makes(lazy, cpu):
    made = lazy([0, 1, 1])

    assert (made.device.type, made.dtype, lazy.dtype) == ("lazy", cpu.dtype, cpu.dtype)
    assert made.tolist() == cpu([0, 1, 1]).tolist()
    assert (len(lazy(5)), len(lazy())) == (5, 0)


@pytest.mark.parametrize(("lazy", "cpu"), TYPES, ids=lambda kind: kind.__name__)
def test_a_tensor_tells_the_type_of_its_storage(lazy, cpu):
    x = torch.zeros(2, dtype=cpu.dtype, device="lazy")

    assert x.storage_type() is lazy
    assert x.storage().type() == f"torch.lazy.{lazy.__name__}"
    assert [kind for kind, _ in TYPES if isinstance(x.storage(), kind)] == [lazy]
    assert not isinstance(x.storage(), cpu)
    assert x.cpu().storage_type() is cpu


def test_a_type_takes_a_storage_of_the_device():
    storage = torch.arange(3.0).to("lazy").untyped_storage()

    assert torch.lazy.FloatStorage(wrap_storage=storage).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="must be lazy, but got cpu"):
        torch.lazy.FloatStorage(wrap_storage=storage.cpu())
    with pytest.raises(RuntimeError, match="from_buffer"):
        torch.lazy.FloatStorage.from_buffer(b"1234", byte_order="native")


def test_a_type_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(torch.lazy.FloatStorage)) is torch.lazy.FloatStorage
