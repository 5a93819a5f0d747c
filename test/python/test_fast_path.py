"""The fused operators that the encoder and attention of `torch.nn` call in inference."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from torch import nn

STEPS = 4

NESTED_ON_CPU = pytest.mark.on_cpu("the fake CUDA device has no nested tensors")


def padding(lengths: list[int]) -> torch.Tensor:
    """True where a sequence of the batch has ended."""
    return torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None]


def without_the_nested_tensors_warning(module: nn.Module, *arguments, **named) -> torch.Tensor:
    with warnings.catch_warnings(), torch.no_grad():
        warnings.filterwarnings("ignore", message=".*nested tensors is in prototype stage")
        return module(*arguments, **named)


@pytest.mark.parametrize(
    "lengths",
    [None, *(pytest.param(padded, marks=NESTED_ON_CPU) for padded in ([9, 9, 9], [9, 4, 1]))],
    ids=str,
)
def test_an_encoder_in_inference_makes_what_it_makes_on_the_cpu(device, lengths):
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    on_device = copy.deepcopy(encoder).to(device)
    mask = None if lengths is None else padding(lengths)

    for _ in range(STEPS):
        x = torch.randn(3, 9, 16)
        expected = without_the_nested_tensors_warning(encoder, x, src_key_padding_mask=mask)
        result = without_the_nested_tensors_warning(
            on_device, x.to(device), src_key_padding_mask=None if mask is None else mask.to(device)
        )
        torch.testing.assert_close(result.cpu(), expected)
        torch.lazy.wait_for_compiles()


def test_attention_in_inference_calls_the_operator_that_it_calls_on_the_cpu(device):
    attention = nn.MultiheadAttention(16, 4, batch_first=True).eval()
    on_device, x = copy.deepcopy(attention).to(device), torch.randn(2, 5, 16)

    with torch.profiler.profile() as profile, torch.no_grad():
        result, weights = on_device(*[x.to(device)] * 3)

    expected, expected_weights = without_the_nested_tensors_warning(attention, x, x, x)
    assert "aten::_native_multi_head_attention" in {event.name for event in profile.events()}
    torch.testing.assert_close(result.cpu(), expected)
    torch.testing.assert_close(weights.cpu(), expected_weights)


@NESTED_ON_CPU
def test_an_encoder_takes_sequences_as_a_nested_tensor(device):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    on_device = copy.deepcopy(layer).to(device)
    parts = [torch.randn(length, 8) for length in (3, 1, 4)]

    nested = torch.nested.nested_tensor(parts)
    expected = without_the_nested_tensors_warning(layer, nested).to_padded_tensor(0.0)
    result = without_the_nested_tensors_warning(on_device, nested.to(device))

    torch.testing.assert_close(result.to_padded_tensor(0.0).cpu(), expected)


def test_another_type_of_device_is_listed_as_before():
    listed = torch.utils.backend_registration._privateuse1_backend_name

    assert "privateuseone" in [listed]
    assert "mps" not in [listed]
    assert f"{listed}" == "privateuseone"
