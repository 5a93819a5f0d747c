"""Attention on the CPU: where it is large, computed by products and a softmax."""

import pytest
import torch
import torch.nn.functional as F
from behaviour import hot, losses_of_training, same_on

BATCH, HEADS, FEATURES = 2, 4, 32


def matrices(rows, seed):
    """[batch, heads, rows, features], heads inside rows as a projection leaves them."""
    drawn = torch.randn(BATCH, rows, HEADS, FEATURES, generator=torch.Generator().manual_seed(seed))
    return drawn.transpose(1, 2)


def masked_query(queries, keys):
    """Nothing is kept for one of the queries."""
    mask = torch.ones(queries, keys, dtype=torch.bool).tril()
    mask[3] = False
    return mask


ARGUMENTS = {
    "plain": {},
    "causal": {"is_causal": True},
    "scaled": {"scale": 0.3},
    "masked": {"attn_mask": masked_query(64, 64)},
    "causal and masked": {"is_causal": True, "attn_mask": masked_query(64, 64)},
    "added": {"attn_mask": torch.linspace(-3, 3, 64 * 64).view(64, 64)},
}


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_attention_and_its_gradients_are_eagers(arguments):
    def step(query, key, value, mask):
        query, key, value = (x.detach().requires_grad_() for x in (query, key, value))
        given = arguments if mask is None else {**arguments, "attn_mask": mask}
        result = F.scaled_dot_product_attention(query, key, value, **given)
        gradients = torch.autograd.grad(result.square().sum(), (query, key, value))
        return torch.stack([result.detach(), *gradients])

    tensors = [matrices(64, seed) for seed in range(3)]
    mask = arguments.get("attn_mask")
    on_lazy = [x if x is None else x.to("lazy") for x in (*tensors, mask)]

    result = hot(step, *on_lazy).cpu()

    torch.testing.assert_close(result, step(*tensors, mask), rtol=1e-4, atol=1e-5)


def test_attention_to_more_keys_than_queries_is_eagers():
    def step(query, key, value):
        return F.scaled_dot_product_attention(query, key, value).transpose(1, 2).contiguous()

    tensors = [matrices(rows, rows) for rows in (40, 96, 96)]

    result = hot(step, *[x.to("lazy") for x in tensors]).cpu()

    torch.testing.assert_close(result, step(*tensors), rtol=1e-4, atol=1e-5)


def test_attention_trained_for_some_steps_follows_the_cpu():
    x = torch.randn(8, 64, 64, generator=torch.Generator().manual_seed(1))

    def train(device):
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        return losses_of_training(device, layer, x, lr=0.05, steps=12)

    torch.testing.assert_close(train("lazy"), train("cpu"), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("queries", "keys"),
    [
        ((0, 4, 5, 8), (0, 4, 5, 8)),
        ((1, 0, 5, 8), (1, 0, 5, 8)),
        ((0, 5, 8), (0, 5, 8)),
        ((2, 4, 0, 8), (2, 4, 3, 8)),
        ((2, 4, 3, 8), (2, 4, 0, 8)),
        ((2, 4, 3, 0), (2, 4, 3, 0)),
    ],
    ids=["batches", "heads", "batches of 3 dimensions", "queries", "keys", "features"],
)
def test_attention_without_elements_is_the_cpus(device, queries, keys):
    def program(where):
        query = torch.ones(queries, device=where, requires_grad=True)
        key = torch.ones(keys, device=where)
        result = F.scaled_dot_product_attention(query, key, key)
        return result.detach(), *torch.autograd.grad(result.sum(), query)

    same_on(device, program)


def test_attention_of_three_dimensions_is_the_cpus(device):
    def program(where):
        query, key, mask = (
            torch.linspace(-1, 1, 4 * rows * columns).view(4, rows, columns).to(where)
            for rows, columns in ((3, 8), (6, 8), (3, 6))
        )
        query.requires_grad_()
        result = F.scaled_dot_product_attention(query, key, key, attn_mask=mask[0] > 0)
        return result.detach(), *torch.autograd.grad(result.square().sum(), query)

    same_on(device, program)
