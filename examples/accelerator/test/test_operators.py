"""Operators: what the boxed kernel keeps of the CPU's, beyond values."""

from __future__ import annotations

import io
import warnings

import pytest
import torch
from torch import nn


def test_views_share_the_memory_of_their_base():
    base = torch.zeros(3, 4, device="accel")
    view = base.t()[1:].unsqueeze(0).view(1, 3, 3)

    view.add_(1)

    assert view.data_ptr() == base[:, 1:].data_ptr()
    assert base.tolist() == [[0, 1, 1, 1]] * 3


def test_arguments_that_share_memory_share_it_in_the_kernel():
    tensor = torch.arange(4.0, device="accel")

    torch._foreach_add_([tensor[:3], tensor[1:]], [tensor[1:].clone(), tensor[1:].clone()])

    assert tensor.tolist() == [1, 4, 7, 6]


def test_an_argument_that_is_returned_is_the_argument():
    tensor = torch.ones(3, device="accel")
    out = torch.empty(3, device="accel")

    assert tensor.mul_(2) is tensor
    assert torch.ops.aten.sin_(tensor) is tensor
    assert torch.add(tensor, 1, out=out) is out


def test_an_out_argument_is_resized():
    out = torch.empty(0, device="accel")
    values = torch.arange(6.0, device="accel").view(2, 3)

    torch.mm(values, values.t(), out=out)

    assert out.shape == (2, 2)
    assert out.tolist() == [[5, 14], [14, 50]]


def test_a_warning_of_the_kernel_reaches_the_caller():
    out = torch.empty(3, device="accel")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.nonzero(torch.ones(2, device="accel"), out=out.long())

    assert any("was resized" in str(warning.message) for warning in caught)


def test_a_tensor_can_be_set_to_a_storage():
    source = torch.arange(6.0, device="accel")

    tensor = torch.empty(0, device="accel").set_(source.untyped_storage(), 1, (2, 2), (2, 1))
    tensor.zero_()

    assert source.tolist() == [0, 0, 0, 0, 0, 5]


def test_lists_and_missing_tensors_are_arguments():
    values = torch.arange(12.0, device="accel").view(3, 4)
    indices = torch.tensor([0, 2], device="accel")

    assert torch.cat([values, values]).shape == (6, 4)
    assert values[:, indices].tolist() == [[0, 2], [4, 6], [8, 10]]
    assert values[:, indices.cpu()].tolist() == [[0, 2], [4, 6], [8, 10]]


def test_numbers_may_be_on_the_cpu_and_tensors_may_not():
    tensor = torch.ones(2, 2, device="accel")

    assert (tensor * torch.tensor(3.0)).tolist() == [[3, 3], [3, 3]]
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        tensor @ torch.ones(2, 2)


@pytest.mark.parametrize(
    "fails",
    [
        lambda t: t[torch.full((1,), 7, device=t.device)],
        lambda t: t @ t,
        lambda t: t.expand(5, 2, 3).copy_(t.new_ones(5, 2, 3)),
        lambda t: t.view(-1)[1:].copy_(t.view(-1)[:-1]),
        lambda t: t.to(torch.int8).fill_(1000),
        lambda t: torch.linalg.inv(t.new_zeros(2, 2)),
    ],
)
def test_an_error_is_raised_at_the_call_with_the_cpus_message(fails):
    messages = []
    for device in ("cpu", "accel"):
        with pytest.raises((RuntimeError, IndexError)) as raised:
            fails(torch.ones(2, 3, device=device))
        messages.append((raised.type, str(raised.value)))

    assert messages[0] == messages[1]


@pytest.mark.parametrize(
    "draw",
    [
        lambda device: torch.randn(5, device=device),
        lambda device: torch.randperm(5, device=device),
        lambda device: torch.rand(
            5, device=device, generator=torch.Generator(device).manual_seed(3)
        ),
        lambda device: torch.ones(100, device=device).bernoulli_(0.3),
        lambda device: nn.functional.dropout(torch.ones(100, device=device), 0.3),
    ],
)
def test_a_seed_gives_the_cpus_numbers(draw):
    torch.manual_seed(5)
    expected = draw("cpu")
    torch.manual_seed(5)

    assert torch.equal(draw("accel").cpu(), expected)


def test_an_operators_kernel_may_be_in_python():
    @torch.library.custom_op("accelerator_test::twice", mutates_args=(), device_types="cpu")
    def twice(tensor: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(tensor.numpy() * 2)

    result = twice(torch.ones(3, device="accel"))

    assert result.device == torch.device("accel:0")
    assert result.tolist() == [2, 2, 2]


def test_conjugates_are_kept_and_resolved():
    tensor = torch.tensor([1 + 2j, 3 - 1j], device="accel")

    conjugate = tensor.conj()

    assert conjugate.is_conj()
    assert conjugate.data_ptr() == tensor.data_ptr()
    assert conjugate.resolve_conj().tolist() == [1 - 2j, 3 + 1j]


def test_a_view_is_a_normal_tensor_where_its_base_is_and_a_result_is_what_the_mode_makes_it():
    base = torch.ones(3, device="accel")

    with torch.inference_mode():
        view, result = base[1:], base * 2

    assert not view.is_inference()
    assert result.is_inference()


def test_a_file_of_tensors_comes_back_on_the_device_and_on_the_cpu():
    file = io.BytesIO()
    tensor = torch.arange(4.0, device="accel")
    torch.save({"whole": tensor, "part": tensor[1:]}, file)

    file.seek(0)
    loaded = torch.load(file)
    file.seek(0)
    on_cpu = torch.load(file, map_location="cpu")

    assert loaded["part"].device == torch.device("accel:0")
    assert loaded["part"].data_ptr() == loaded["whole"].data_ptr() + 4
    assert on_cpu["part"].tolist() == [1, 2, 3]


def test_there_are_two_devices():
    assert torch.accelerator.device_count() == 2
    second = torch.arange(3, device="accel:1")
    assert (second + 1).device == torch.device("accel:1")
    assert (second + 1).tolist() == [1, 2, 3]
    assert torch.empty(0, device="accel:1").resize_(3).untyped_storage().device == second.device
    assert second.to("accel:0").device == torch.device("accel:0")
    with pytest.raises(RuntimeError, match="no device accel:2: there are 2"):
        torch.empty(3, device="accel:2")


def test_tensors_of_two_devices_do_not_mix():
    with pytest.raises(RuntimeError, match="at least two devices, accel:0 and accel:1"):
        torch.ones(2, device="accel:0") + torch.ones(2, device="accel:1")
