"""DistributedDataParallel on gloo: ranks that share a batch train as one process does on all of it,
and as ranks on the CPU do."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from behaviour import wait_for_compiles
from ranks import on_cpu
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

STEPS = 20
BATCH = 8


class TinyGPT(nn.Module):
    """A block of a language model over 11 tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(11, 16), nn.Embedding(6, 16)
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.head = nn.Linear(16, 11)

    def forward(self, tokens: Tensor) -> Tensor:
        batch, length = tokens.shape
        x = self.token(tokens) + self.position.weight[:length]
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 2, 24).transpose(1, 2).chunk(3, -1)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, 16))
        return self.head(x + self.mlp(x))


def batch_of(step: int) -> Tensor:
    return torch.randint(11, (BATCH, 7), generator=torch.Generator().manual_seed(step))


def loss_of(model: nn.Module, tokens: Tensor) -> Tensor:
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def train(
    device: str, hook: str | None = None, wrap: bool = True, steps: int = STEPS, **options
) -> list:
    """Losses over the whole batch, and the weights after the last step."""
    torch.manual_seed(3)
    model = TinyGPT().to(device)
    rank, size = (dist.get_rank(), dist.get_world_size()) if wrap else (0, 1)
    if wrap:
        model = DistributedDataParallel(model, **options)
    if hook:
        HOOKS[hook](model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(steps):
        part = batch_of(step)[rank::size].to(device)
        optimizer.zero_grad()
        loss = loss_of(model, part)
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        if wrap:
            dist.all_reduce(loss)
        losses.append(loss.item() / size)
        wait_for_compiles()
    return [losses, on_cpu(list(model.parameters()))]


def quantized(model):
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)


def low_rank(model):
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=3)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)


def own_hook(model):
    def halve_later(state, bucket):
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: done.value()[0] / dist.get_world_size())

    model.register_comm_hook(None, halve_later)


HOOKS = {
    "default": lambda model: model.register_comm_hook(None, default_hooks.allreduce_hook),
    "float16": quantized,
    "low rank": low_rank,
    "own": own_hook,
}


def agree(actual: list, expected: list, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def test_two_ranks_train_as_one_process(two, device):
    alone = train("cpu", wrap=False)

    for together in two.run(train, device):
        agree(together, alone)


def train_briefly(device, wrap=True):
    return train(device, steps=STEPS // 2, wrap=wrap)


def test_four_ranks_train_as_one_process(four, device):
    alone = train_briefly("cpu", wrap=False)

    for together in four.run(train_briefly, device):
        agree(together, alone)


OPTIONS = {
    "plain": {},
    "several buckets": {"bucket_cap_mb": 0.001},
    "unused parameters": {"find_unused_parameters": True},
    "static graph": {"static_graph": True},
    "gradients are views": {"gradient_as_bucket_view": True},
    "views of several buckets": {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.001},
    **{f"hook {name}": {"hook": name} for name in HOOKS},
}


def train_with(device, name):
    return train(device, **OPTIONS[name])


@pytest.mark.parametrize("name", OPTIONS)
def test_ranks_train_as_on_the_cpu_with(two, device, name):
    expected = two.run(train_with, "cpu", name)

    agree(two.run(train_with, device, name), expected)


# ---------------------------------------------------------------- other models


class Halves(nn.Module):
    """Two layers, of which a step uses one or both; a buffer that differs between ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.register_buffer("scale", torch.full((4,), 1.0 + dist.get_rank()))

    def forward(self, x: Tensor, both: bool) -> Tensor:
        x = self.first(x) * self.scale
        return self.second(x) if both else x


def halves(device: str, **options) -> DistributedDataParallel:
    torch.manual_seed(dist.get_rank())  # rank 0's weights count
    return DistributedDataParallel(Halves().to(device), **options)


def gradients_of(model: nn.Module) -> list:
    return [None if p.grad is None else p.grad.clone() for p in model.parameters()]


def rows(device: str, step: int = 0) -> Tensor:
    return (torch.arange(8.0).view(2, 4) / 8 - dist.get_rank() + step).to(device)


def weights_and_buffers(device):
    return list(halves(device).state_dict().values())


def test_weights_and_buffers_of_rank_0_are_everyones(two, device):
    two.same_on(device, weights_and_buffers)


def sometimes_unused(device):
    model = halves(device, find_unused_parameters=True)
    results = []
    for step in range(4):
        model.zero_grad()
        model(rows(device, step), both=(step + dist.get_rank()) % 3 == 0).sum().backward()
        results.append(gradients_of(model))
    return results


def test_layers_that_some_ranks_do_not_use(two, device):
    two.same_on(device, sometimes_unused)


def accumulated(device):
    model = halves(device, gradient_as_bucket_view=True)
    with model.no_sync():
        model(rows(device), both=True).sum().backward()
    before = gradients_of(model)
    model(rows(device, 1), both=True).sum().backward()
    return [before, gradients_of(model)]


def test_no_sync_accumulates(two, device):
    two.same_on(device, accumulated)


def forgotten(device):
    model = halves(device)
    model(rows(device), both=False).sum().backward()
    with pytest.raises(RuntimeError) as raised:
        model(rows(device), both=False)
    return str(raised.value)


def test_unused_layers_without_the_option_are_the_cpus_error(two, device):
    two.same_on(device, forgotten)


def uneven(device):
    """Rank 1 has more batches than rank 0."""
    model = halves(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with model.join():
        for step in range(2 + dist.get_rank()):
            optimizer.zero_grad()
            model(rows(device, step), both=True).sum().backward()
            optimizer.step()
    return list(model.parameters())


def test_ranks_with_unequal_numbers_of_batches(two, device):
    two.same_on(device, uneven)


def moved_by_index(device, name):
    """Inputs on the CPU are moved to the device that device_ids names."""
    options = {} if device == "cpu" else {"device_ids": [name], "output_device": name}
    y = halves(device, **options)(rows("cpu"), both=True)
    assert y.device.type == torch.device(device).type
    return y


@pytest.mark.parametrize("name", [0, "lazy", "lazy:0", torch.device("lazy")], ids=repr)
def test_inputs_move_to_the_device_of_device_ids(two, device, name):
    two.same_on(device, moved_by_index, name)


def cast(device):
    """Mixed precision: products in bfloat16, weights and gradients in float32."""
    model = halves(device)
    with torch.autocast(device, dtype=torch.bfloat16):
        y = model(rows(device), both=True)
    y.float().sum().backward()
    return [y, gradients_of(model)]


def test_autocast(two, device):
    two.same_on(device, cast)
