"""Attention to sequences of different lengths, packed in jagged nested tensors."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from behaviour import same, same_on

LENGTHS = (2, 5, 3)


def sequences(device: str, lengths=LENGTHS, width: int = 4, heads: int = 2):
    """Tokens, a leaf, and the sequences that they make, `(batch, heads, length, width)`."""
    tokens = torch.randn(sum(lengths), heads, width).to(device).requires_grad_()
    offsets = torch.tensor([0, *lengths]).cumsum(0).to(device)
    return tokens, torch.nested.nested_tensor_from_jagged(tokens, offsets).transpose(1, 2)


def attended(*arguments: torch.Tensor, **options):
    """Attention by token, and the gradients of the leaves."""
    leaves, nested = arguments[::2], arguments[1::2]
    result = F.scaled_dot_product_attention(*nested, **options).transpose(1, 2)
    values = result.contiguous().values()
    values.sin().sum().backward()
    return values.detach(), [leaf.grad for leaf in leaves]


def test_self_attention_is_the_cpus(device):
    def run(device):
        leaf, x = sequences(device)
        return attended(leaf, x, leaf, x, leaf, x, scale=0.3)

    same_on(device, run)


def test_keys_may_be_of_other_lengths_than_queries(device):
    def run(device):
        query_leaf, query = sequences(device)
        key_leaf, key = sequences(device, lengths=(1, 4, 6))
        value_leaf, value = sequences(device, lengths=(1, 4, 6))
        value = torch.nested.nested_tensor_from_jagged(value_leaf, key.offsets()).transpose(1, 2)
        return attended(query_leaf, query, key_leaf, key, value_leaf, value)

    same_on(device, run)


def test_a_sequence_may_be_empty(device):
    def run(device):
        leaf, x = sequences(device, lengths=(3, 0, 2))
        return attended(leaf, x, leaf, x, leaf, x)

    same_on(device, run)


def test_the_result_has_the_lengths_of_the_query(device):
    _, x = sequences(device)

    result = F.scaled_dot_product_attention(x, x, x)

    assert result.shape == x.shape
    assert (result + x).shape == x.shape


@pytest.mark.recording  # the CPU's path has no is_causal
def test_causal_attention_is_that_of_each_sequence(device):
    _, x = sequences(device)

    result = F.scaled_dot_product_attention(x, x, x, is_causal=True)

    for actual, sequence in zip(result.unbind(), x.detach().unbind(), strict=True):
        alone = sequence.cpu()[None]
        expected = F.scaled_dot_product_attention(alone, alone, alone, is_causal=True)[0]
        torch.testing.assert_close(actual.detach().cpu(), expected)


@pytest.mark.recording  # the CPU's path takes what is contiguous
def test_queries_keys_and_values_may_be_chunks_of_one_projection(device):
    x = torch.nested.nested_tensor(
        [torch.randn(length, 24) for length in LENGTHS], layout=torch.jagged
    )

    def attention(x):
        query, key, value = (
            part.unflatten(-1, [2, 4]).transpose(1, 2) for part in x.chunk(3, dim=-1)
        )
        return F.scaled_dot_product_attention(query, key, value)

    result = attention(x.to(device))

    for actual, sequence in zip(result.unbind(), x.unbind(), strict=True):
        torch.testing.assert_close(actual.cpu(), attention(sequence[None])[0])


def test_autocast_casts_attention(device):
    _, x = sequences(device)

    with torch.autocast(device, dtype=torch.bfloat16):
        result = F.scaled_dot_product_attention(x, x, x)

    assert result.dtype == torch.bfloat16


def test_a_mask_is_refused_as_on_the_cpu(device):
    _, x = sequences(device)

    with pytest.raises(ValueError, match="Masks are not yet supported"):
        F.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(1, device=device))


def test_sequences_of_sequences_are_attended_as_they_are(device):
    def run(device):
        offsets = torch.tensor([0, 2, 5], device=device)
        x = torch.nested.nested_tensor_from_jagged(torch.randn(5, 2, 3, 4).to(device), offsets)
        return F.scaled_dot_product_attention(x, x, x).values()

    same_on(device, run)
    same(run(device).shape, (5, 2, 3, 4))
