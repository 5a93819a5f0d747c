"""Strided nested tensors of the device; test_jagged.py is about the others."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from behaviour import same, wait_for_compiles

pytestmark = [
    pytest.mark.recording,
    pytest.mark.on_cpu("the fake CUDA device has no nested tensors"),
    # PyTorch says once that these are a prototype.
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning"),
]


def make(device: str, requires_grad: bool = False) -> torch.Tensor:
    """Of parts that are pending on the device."""
    parts = [torch.arange(6.0, device=device).view(2, 3) * 2, torch.ones(4, 3, device=device) * 3]
    return torch.nested.nested_tensor(parts, requires_grad=requires_grad)


def observed(value: object) -> object:
    if isinstance(value, list | tuple):
        return [observed(element) for element in value]
    if not isinstance(value, torch.Tensor):
        return value
    if not value.is_nested:
        return value.detach().cpu().clone()
    return [part.detach().cpu().clone() for part in value.unbind()]


OPERATORS = {
    "itself": lambda n: n,
    "padded": lambda n: torch.nested.to_padded_tensor(n, 0.5),
    "parts": lambda n: n.unbind(),
    "a part": lambda n: n[1],
    "sizes": lambda n: (n.dim(), n.size(0), n.size(2), n.numel(), n.is_contiguous()),
    "transposed": lambda n: n.transpose(1, 2).contiguous(),
    "times a number": lambda n: n * 2,
    "plus itself": lambda n: n + n,
    "plus itself in place": lambda n: n.add_(n),
    "rectified": lambda n: (n - 3).relu(),
    "softmax": lambda n: n.softmax(-1),
    "linear": lambda n: F.linear(n, torch.ones(2, 3, device=n.device)),
    "product": lambda n: torch.bmm(n, n.transpose(1, 2)),
    "normalized": lambda n: F.layer_norm(
        n, (3,), torch.ones(3, device=n.device), torch.zeros(3, device=n.device)
    ),
    "cloned": lambda n: n.clone(),
    "detached": lambda n: n.detach(),
    "double": lambda n: n.double(),
    "of a padded one": lambda n: torch._nested_from_padded(
        torch.ones(2, 4, 3, device=n.device), n._nested_tensor_size()
    ),
    "of a mask": lambda n: torch._nested_tensor_from_mask(
        torch.ones(1, 2, 3, device=n.device), torch.tensor([[True, False]], device=n.device)
    ),
}


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_an_operator_computes_what_the_cpus_does(operator):
    def run(device):
        nested = make(device)
        result = operator(nested)
        if isinstance(result, torch.Tensor):
            assert result.device.type == device
        return observed([result, nested])

    for _ in range(3):
        same(run("lazy"), run("cpu"))
        wait_for_compiles()


MADE_OF = {
    "parts of the CPU": lambda: torch.nested.nested_tensor(
        [torch.ones(2), torch.ones(3)], device="lazy"
    ),
    "parts of the CPU, with gradients": lambda: torch.nested.as_nested_tensor(
        [torch.ones(2), torch.ones(3)], device="lazy"
    ),
    "numbers": lambda: torch.nested.nested_tensor([[1.0, 1.0], [1.0, 1.0, 1.0]], device="lazy"),
    "a nested tensor of the CPU": lambda: torch.nested.nested_tensor(
        [torch.ones(2), torch.ones(3)]
    ).to("lazy"),
}


@pytest.mark.parametrize("made_of", MADE_OF.values(), ids=MADE_OF)
def test_one_is_made_on_the_device(made_of):
    nested = made_of()

    assert nested.is_lazy
    assert nested.is_nested
    same(observed(nested.cpu()), [torch.ones(2), torch.ones(3)])


def test_a_write_to_a_part_is_seen_through_the_whole():
    def run(device):
        nested = make(device)
        nested.unbind()[0].mul_(5)
        return observed(nested * 1)

    same(run("lazy"), run("cpu"))


GRADIENTS = {
    "padded": lambda n: torch.nested.to_padded_tensor(n, 0.0),
    "softmax": lambda n: torch.nested.to_padded_tensor(n.softmax(-1), 0.0),
    "linear": lambda n: F.linear(n, torch.ones(2, 3, device=n.device)).unbind()[1],
    "a part": lambda n: n[0],
}


@pytest.mark.parametrize("function", GRADIENTS.values(), ids=GRADIENTS)
def test_gradients_are_the_cpus(function):
    def run(device):
        nested = make(device, requires_grad=True)
        function(nested).square().sum().backward()
        return observed(nested.grad)

    for _ in range(3):
        same(run("lazy"), run("cpu"))
        wait_for_compiles()


def test_parts_get_their_gradients():
    def run(device):
        parts = [torch.ones(n, 2, device=device, requires_grad=True) for n in (1, 3)]
        nested = torch.nested.as_nested_tensor(parts)
        torch.nested.to_padded_tensor(nested * 2, 0.0).square().sum().backward()
        return [part.grad.cpu().clone() for part in parts]

    same(run("lazy"), run("cpu"))


def test_parts_of_the_cpu_get_their_gradients():
    parts = [torch.ones(n, 2, requires_grad=True) for n in (1, 3)]
    nested = torch.nested.as_nested_tensor(parts, device="lazy")

    torch.nested.to_padded_tensor(nested * 2, 0.0).sum().backward()

    same([part.grad.clone() for part in parts], [torch.full((1, 2), 2.0), torch.full((3, 2), 2.0)])


def test_parts_may_be_named(device):
    parts = [torch.ones(2), torch.ones(3)]

    made = torch._nested_tensor_from_tensor_list(list=parts, device=device)

    assert (made.device.type, made.size(0)) == (torch.device(device).type, 2)
    assert torch._nested_tensor_from_tensor_list(list=parts).device.type == "cpu"


def test_dlpack_refuses_it(device):
    for export in (torch.to_dlpack, torch.from_dlpack):
        with pytest.raises(BufferError, match="Can't export nested tensors"):
            export(make(device))
