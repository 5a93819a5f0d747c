"""Losses of classes, and batch norm in training, agree with eager's and raise what eager raises."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from behaviour import hot
from torch import nn

SHAPES = {
    "samples": ((6, 40), (6,)),
    "one sample": ((40,), ()),
    "images": ((2, 24, 3, 4), (2, 3, 4)),
    "a column": ((5, 1), (5,)),
}


def loss_and_gradient(where, shape, target, **options):
    torch.manual_seed(3)
    scores = torch.randn(shape).to(where).requires_grad_()
    weight = options.pop("weight", None)
    weight = None if weight is None else weight.to(where)
    loss = F.nll_loss(F.log_softmax(scores, -1 if len(shape) == 1 else 1), target.to(where),
                      weight=weight, **options)  # fmt: skip
    (loss * 1.5).sum().backward()
    return loss.detach().cpu(), scores.grad.cpu()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_a_loss_of_classes_is_eagers(device, shapes, weighted, reduction):
    shape, of_target = shapes
    classes = shape[0] if len(shape) == 1 else shape[1]
    target = torch.randint(classes, of_target, generator=torch.Generator().manual_seed(1))
    options = {"reduction": reduction, "ignore_index": 0 if classes > 1 else -100}
    if weighted:
        options["weight"] = torch.arange(1.0, classes + 1)

    got = hot(lambda: loss_and_gradient(device, shape, target, **options))

    expected = loss_and_gradient("cpu", shape, target, **options)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_the_mean_of_ignored_targets_alone_is_nan(device):
    target = torch.full((6,), 2)

    loss, _ = hot(lambda: loss_and_gradient(device, (6, 40), target, ignore_index=2))

    assert loss.isnan()


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_a_target_that_is_no_class_raises_where_it_is_computed(device, weighted):
    weight = torch.ones(40).to(device) if weighted else None

    def run(offset):
        scores = torch.randn(6, 40).to(device).requires_grad_()
        target = torch.arange(6).to(device) * 2 + offset
        F.cross_entropy(scores, target, weight=weight).backward()
        return scores.grad.cpu()

    hot(lambda: run(0))
    with pytest.raises(IndexError):
        run(100)
    assert run(0).shape == (6, 40)


NORMS = {
    "images": (nn.BatchNorm2d(8), (4, 8, 5, 7), torch.contiguous_format),
    "images, channels last": (nn.BatchNorm2d(8), (4, 8, 5, 7), torch.channels_last),
    "features": (nn.BatchNorm1d(8), (6, 8), torch.contiguous_format),
    "without weights": (nn.BatchNorm2d(8, affine=False), (4, 8, 5, 7), torch.contiguous_format),
    "without statistics": (
        nn.BatchNorm2d(8, track_running_stats=False), (4, 8, 5, 7), torch.contiguous_format,
    ),
    "averaged statistics": (
        nn.BatchNorm2d(8, momentum=None), (4, 8, 5, 7), torch.contiguous_format,
    ),
    "one element a channel": (nn.BatchNorm2d(8).eval(), (1, 8, 1, 1), torch.contiguous_format),
}  # fmt: skip


@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
def test_batch_norm_keeps_statistics_and_gradients_as_eager(device, norm):
    module, shape, memory_format = norm

    def run(where):
        torch.manual_seed(2)
        copy = nn.Sequential(deepcopy(module), nn.ReLU()).to(where)
        made = []
        for _ in range(6):
            x = (torch.randn(shape) * 3 + 1).to(memory_format=memory_format)
            x = x.to(where).requires_grad_()
            copy.zero_grad()
            y = copy(x)
            y.square().sum().backward()
            made += [y.detach().cpu(), x.grad.cpu()]
            if where != "cpu":
                torch.lazy.wait_for_compiles()
        made += [t.detach().cpu() for t in copy.buffers()]
        return [*made, *(p.grad.cpu() for p in copy.parameters())]

    got, expected = run(device), run("cpu")

    for a, b in zip(got, expected, strict=True):
        assert a.stride() == b.stride()
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
