"""Subclasses that wrap tensors and have no memory of their own: quantized weights, DTensors."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.masked import masked_tensor
from torch.utils._python_dispatch import return_and_correct_aliasing


class Scaled(torch.Tensor):
    """Values of few bits, and a factor for all of them."""

    @staticmethod
    def __new__(cls, bits: torch.Tensor, scale: torch.Tensor) -> Scaled:
        return torch.Tensor._make_wrapper_subclass(
            cls, bits.shape, dtype=scale.dtype, device=bits.device
        )

    def __init__(self, bits: torch.Tensor, scale: torch.Tensor) -> None:
        self.bits, self.scale = bits, scale

    def __tensor_flatten__(self):
        return ["bits", "scale"], None

    @classmethod
    def __tensor_unflatten__(cls, parts, meta, size, stride):
        return cls(parts["bits"], parts["scale"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.clone.default):
            result = cls(func(args[0].bits), func(args[0].scale))
            return return_and_correct_aliasing(func, args, kwargs or {}, result)
        return func(*[x.values() if isinstance(x, cls) else x for x in args], **(kwargs or {}))

    def values(self) -> torch.Tensor:
        return self.bits * self.scale


def scaled(device: str) -> Scaled:
    bits = torch.tensor([[1, 2], [3, 4]], dtype=torch.int8, device=device)
    return Scaled(bits, torch.tensor(0.5, device=device))


def saved_and_loaded(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, saved_and_loaded, lambda value: pickle.loads(pickle.dumps(value))]
)
def test_a_wrapper_is_copied_saved_and_pickled_by_what_it_wraps(device, copied):
    module = torch.nn.Linear(2, 2, bias=False)
    module.weight = torch.nn.Parameter(scaled(device), requires_grad=False)

    weight = copied(module).weight

    assert isinstance(weight.data, Scaled)
    assert weight.device == module.weight.device
    assert weight.bits is not module.weight.bits
    assert (weight + 0).tolist() == [[0.5, 1.0], [1.5, 2.0]]


def test_a_wrapper_has_no_address_as_on_the_cpu(device):
    wrapper = scaled(device)

    assert wrapper.data_ptr() == 0
    assert wrapper.untyped_storage().nbytes() == scaled("cpu").untyped_storage().nbytes()


def test_a_masked_tensor_is_copied(device):
    mask = torch.tensor([True, False, True], device=device)
    masked = masked_tensor(torch.ones(3, device=device), mask)

    copied = copy.deepcopy(masked)

    assert copied.get_mask().tolist() == [True, False, True]
    assert copied.get_data().device == masked.get_data().device


def test_a_distributed_tensor_is_copied_and_saved(device, one_process):
    mesh = DeviceMesh(torch.device(device).type, [0])
    tensor = distribute_tensor(torch.ones(4, 2, device=device), mesh, [Shard(0)])

    for copied in (copy.deepcopy(tensor), saved_and_loaded(tensor)):
        assert copied.to_local().device == tensor.to_local().device
        assert copied.full_tensor().tolist() == [[1.0, 1.0]] * 4


@pytest.fixture
def one_process(tmp_path):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/ranks", rank=0, world_size=1
    )
    yield
    torch.distributed.destroy_process_group()
