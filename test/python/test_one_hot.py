"""One-hot codes of a given number of classes: no sync, and errors as in eager."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from behaviour import hot

import torch_lazy


def codes(classes: torch.Tensor) -> torch.Tensor:
    return F.one_hot(classes, 12).float() * 2 + 1


@pytest.mark.parametrize("shape", [(), (50,), (5, 7)])
def test_codes_are_those_of_eager_in_hot_windows(shape: tuple[int, ...]) -> None:
    classes = torch.randint(0, 12, shape)

    assert torch.equal(hot(codes, classes.to("lazy")).cpu(), codes(classes))


def test_codes_are_int64() -> None:
    classes = torch.arange(5)

    made = hot(lambda x: F.one_hot(x, 6), classes.to("lazy"))

    assert (made.dtype, made.stride()) == (torch.int64, (6, 1))


@pytest.mark.on_cpu("elsewhere PyTorch's composite looks at the classes")
def test_a_given_number_of_classes_is_no_sync() -> None:
    classes = torch.arange(9).to("lazy")
    hot(codes, classes)
    before = torch_lazy.metrics()["syncs"]

    codes(classes)

    assert torch_lazy.metrics()["syncs"] == before


@pytest.mark.kernels
@pytest.mark.on_cpu("elsewhere PyTorch's composite looks at the classes")
def test_codes_are_made_by_the_kernel_that_reads_them() -> None:
    classes = torch.arange(9).to("lazy")
    hot(codes, classes)

    with torch_lazy.profile() as profile:
        codes(classes)
        torch_lazy.synchronize()

    assert not [step for step in profile.summary.steps if step.name.startswith("aten::")]


@pytest.mark.on_cpu("elsewhere PyTorch's composite leaves the check to the write that it makes")
@pytest.mark.parametrize(("values", "classes"), [([2, -1], -1), ([0, 2], -2), ([0, 2], 0)])
def test_a_number_of_classes_that_is_not_given_raises_as_in_eager(
    values: list[int], classes: int
) -> None:
    def message(device: str) -> str:
        with pytest.raises(RuntimeError) as error:
            F.one_hot(torch.tensor(values, device=device), classes)
        return str(error.value)

    assert message("lazy") == message("cpu")


@pytest.mark.on_cpu("elsewhere PyTorch's composite leaves the check to the write that it makes")
@pytest.mark.parametrize("pending", [False, True], ids=["in memory", "pending"])
@pytest.mark.parametrize("wrong", [12, -1])
def test_a_class_out_of_range_raises_as_in_eager(wrong: int, pending: bool) -> None:
    def of_classes(classes: torch.Tensor) -> torch.Tensor:
        return codes(classes + 0 if pending else classes)

    good, bad = torch.arange(9), torch.arange(9).index_fill(0, torch.tensor(4), wrong)
    hot(of_classes, good.to("lazy"))
    with pytest.raises(RuntimeError) as of_eager:
        of_classes(bad)

    with pytest.raises(RuntimeError) as of_lazy:
        of_classes(bad.to("lazy")).cpu()

    assert str(of_lazy.value).startswith(str(of_eager.value))


def test_without_a_number_of_classes_the_greatest_tells_it() -> None:
    classes = torch.tensor([1, 4, 0])

    assert torch.equal(hot(F.one_hot, classes.to("lazy")).cpu(), F.one_hot(classes))
