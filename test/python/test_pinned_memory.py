"""Pinning memory where there is nothing to pin it for: scripts for CUDA do it."""

from __future__ import annotations

import warnings

import pytest
import torch
from behaviour import same
from torch.utils.data import DataLoader, TensorDataset

from torch_lazy.integration.accelerator import machines_accelerator

pytestmark = [
    pytest.mark.recording,
    pytest.mark.skipif(
        machines_accelerator() is not None,
        reason="memory is pinned for the accelerator that this machine has, as without the plugin",
    ),
]


def test_a_pinned_tensor_is_a_copy():
    x = torch.arange(6.0).reshape(2, 3).t()

    pinned = x.pin_memory()
    pinned[0, 0] = 9

    assert pinned.device.type == "cpu"
    assert x[0, 0] == 0
    same(pinned[1:], x[1:])


def test_a_pinned_tensor_is_sent_to_the_device():
    sent = torch.arange(3).pin_memory().to("lazy", non_blocking=True)

    assert sent.tolist() == [0, 1, 2]


def test_a_tensor_of_the_device_cannot_be_pinned():
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        torch.ones(3, device="lazy").pin_memory()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_that_pins_gives_its_batches_without_a_warning(workers):
    loader = DataLoader(
        TensorDataset(torch.arange(6)), batch_size=3, pin_memory=True, num_workers=workers
    )

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batches = [batch.to("lazy", non_blocking=True) for (batch,) in loader]

    assert [batch.tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5]]
    assert loader.pin_memory


def test_a_loader_with_the_device_as_accelerator_pins_nothing():
    torch.lazy.config.accelerator = True
    try:
        loader = DataLoader(TensorDataset(torch.arange(2)), num_workers=1, pin_memory=True)
        batches = [batch.tolist() for (batch,) in loader]
    finally:
        torch.lazy.config.accelerator = False

    assert batches == [[0], [1]]


def test_tensors_of_the_device_pass_a_loader_that_pins():
    loader = DataLoader(TensorDataset(torch.arange(2, device="lazy")), pin_memory=True)

    assert [batch.tolist() for (batch,) in loader] == [[0], [1]]
