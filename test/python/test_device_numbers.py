"""Numbers as devices where there is no accelerator: scripts write `model.to(rank)`."""

from __future__ import annotations

import pickle

import pytest
import torch
from behaviour import run_script
from test_fake_cuda import run_on_device
from torch.utils._device import _device_constructors

from torch_lazy.integration.accelerator import machines_accelerator

pytestmark = [
    pytest.mark.recording,
    pytest.mark.skipif(
        machines_accelerator() is not None,
        reason="a number means the accelerator that this machine has, as without the plugin",
    ),
]

NOT_ON_THE_DEVICE = {
    torch.empty_quantized,
    torch.sparse_compressed_tensor,
    torch.sparse_csr_tensor,
    torch.sparse_csc_tensor,
    torch.sparse_bsr_tensor,
    torch.sparse_bsc_tensor,
}


def test_a_number_is_a_device():
    assert torch.device(0) == torch.device("lazy", 0)
    assert torch.device(device=0) == torch.device("lazy", 0)
    assert pickle.loads(pickle.dumps(torch.device(0))) == torch.device("lazy:0")


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2).to(0),
        lambda: torch.ones(2).to(device=0, dtype=torch.float64),
        lambda: torch.ones(2).to(torch.ones(1, device="lazy").get_device(), torch.float16),
        lambda: torch.nn.Linear(2, 2).to(0).weight,
        lambda: torch.nn.Linear(2, 2).to(device=0).weight,
        lambda: torch.nn.Linear(2, 2, device=0).weight,
        lambda: torch.tensor([1, 2], device=0),
        lambda: torch.zeros_like(torch.ones(2), device=0),
        lambda: torch.ones(2).new_zeros(2, device=0),
        lambda: torch.fft.fftfreq(2, device=0),
    ],
)
def test_a_number_stands_for_the_device(make):
    assert make().device == torch.device("lazy", 0)


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "bsc"])
def test_a_number_stands_for_the_device_of_a_compressed_tensor(layout):
    make = getattr(torch, f"sparse_{layout}_tensor")
    values = torch.ones(1, 1, 1) if layout.startswith("b") else torch.ones(1)

    made = make(torch.tensor([0, 1]), torch.tensor([0]), values, size=(1, 1), device=0)

    assert made.device == torch.device("lazy", 0)


@pytest.mark.parametrize(
    "make",
    sorted(_device_constructors() - NOT_ON_THE_DEVICE, key=repr),
    ids=lambda make: make.__name__,
)
def test_every_function_that_makes_tensors_takes_a_number(make):
    arguments = {
        torch.as_tensor: [[1.0]],
        torch.asarray: [[1.0]],
        torch.empty_permuted: [(2, 3), (1, 0)],
        torch.empty_strided: [(2,), (1,)],
        torch.full: [(2,), 1.0],
        torch.linspace: [0, 1, 3],
        torch.logspace: [0, 1, 3],
        torch.nested.nested_tensor: [[torch.ones(2)]],
        torch.randint: [3, (2,)],
        torch.range: [0, 3],
        torch.scalar_tensor: [1.0],
        torch.sparse_coo_tensor: [[[0]], [1.0]],
        torch.tensor: [[1.0]],
        torch.tril_indices: [3, 3],
        torch.triu_indices: [3, 3],
    }.get(make, [3])
    layout = {"layout": torch.jagged} if make is torch.nested.nested_tensor else {}

    assert make(*arguments, device=0, **layout).device == torch.device("lazy", 0)


def test_the_number_of_no_device_is_an_error():
    with pytest.raises(RuntimeError, match="there is no device lazy:7"):
        torch.ones(2).to(7)


@pytest.mark.parametrize("call", [lambda: torch.device(-1), lambda: torch.ones(2, device=-1)])
def test_a_negative_number_is_refused_as_without_the_plugin(call):
    with pytest.raises(RuntimeError, match="Device index must not be negative"):
        call()


def test_a_truth_value_is_no_device():
    assert torch.ones(2).to(True).device.type == "cpu"  # PyTorch's parser takes it for a dtype


def test_numbers_serve_as_context_and_as_default():
    with torch.device(0):
        inside = torch.ones(2)
    torch.set_default_device(0)
    try:
        by_default = torch.ones(2)
    finally:
        torch.set_default_device(None)

    assert inside.is_lazy
    assert by_default.is_lazy


def test_a_number_in_a_compiled_function():
    compiled = torch.compile(lambda x: x.to(0) + 1, backend="eager", fullgraph=True)

    assert compiled(torch.zeros(2)).is_lazy


def test_functions_stay_the_objects_they_were():
    # Overrides tell functions apart by identity.
    class Seen(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            functions.append(function)
            return function(*args, **(kwargs or {}))

    functions = []
    with Seen():
        torch.zeros(2, device=0)
        torch.ones(2).to(0)

    assert torch.zeros in functions
    assert torch.Tensor.to in functions


def test_memory_is_pinned_by_a_function_that_makes_tensors():
    x = torch.ones(2, pin_memory=True)

    assert x.device.type == "cpu"
    assert x.to("lazy", non_blocking=True).tolist() == [1, 1]


def test_without_the_plugin_a_number_means_what_it_meant():
    result = run_script("import torch; torch.ones(2).to(0)", TORCH_DEVICE_BACKEND_AUTOLOAD="0")

    assert "Cannot access accelerator device when none is available" in result.stderr


def test_a_number_means_the_accelerator_where_there_is_one():
    script = "print(torch.device(0), torch.ones(2).to(0).device, torch.ones(2, device=0).device)"

    assert run_on_device(script, TORCH_LAZY_DEVICE="cuda") == ["cuda:0 cuda:0 cuda:0"]
