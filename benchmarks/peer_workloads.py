"""What peers.py times: steps of training and of inference that any device of PyTorch can take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

Tensors = tuple[torch.Tensor, ...]


@dataclass
class Parts:
    """Of one workload: made on the CPU, so that every device begins with the same numbers."""

    loss: Callable[..., torch.Tensor]  # of the inputs
    inputs: Tensors
    model: nn.Module | None = None  # whose parameters are trained
    optimizer: Callable[[list[nn.Parameter]], torch.optim.Optimizer] | None = None
    inference: bool = False  # `loss` is the result, and has no gradient
    bf16: bool = False  # under autocast
    comparable: bool = True  # whether devices agree: they draw other random numbers


@dataclass(frozen=True)
class Workload:
    name: str
    what: str
    make: Callable[[bool], Parts]  # whether sizes are shrunken


def _chain(x: torch.Tensor) -> torch.Tensor:
    """Twenty pointwise operations."""
    x = torch.relu(x * 1.01 + 0.5)
    x = torch.sigmoid(x * x - 0.25) * 2 - 1
    x = torch.exp(-(torch.sqrt(torch.tanh(x).abs() + 0.1) * 0.7)) + 1
    return torch.clamp(1 / x, 0.1, 0.9) * 3 - 0.5


def _pointwise(elements: int, few: int) -> Callable[[bool], Parts]:
    def make(small: bool) -> Parts:
        return Parts(_chain, (torch.randn(few if small else elements),), inference=True)

    return make


class _NormBlock(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.bias, self.norm = nn.Parameter(torch.randn(width)), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return self.norm(F.dropout(F.gelu(x + self.bias), 0.1) + residual)


def _norm_block(small: bool) -> Parts:
    rows, width = (64, 64) if small else (16384, 1024)
    model = _NormBlock(width)
    inputs = tuple(torch.randn(rows, width) for _ in range(3))
    return Parts(lambda x, r, w: (model(x, r) * w).mean(), inputs, model=model, comparable=False)


class _Logits(nn.Module):
    def __init__(self, rows: int, classes: int):
        super().__init__()
        self.logits = nn.Parameter(torch.randn(rows, classes))


def _cross_entropy(small: bool) -> Parts:
    rows, classes = (32, 128) if small else (4096, 32768)
    model = _Logits(rows, classes)
    return Parts(
        lambda y: F.cross_entropy(model.logits, y), (torch.randint(classes, (rows,)),), model=model
    )


class _RmsNorm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class _LlamaBlock(nn.Module):
    """RMSNorm, rotary embeddings and SwiGLU, written out."""

    def __init__(self, width: int, heads: int, hidden: int, length: int):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(_RmsNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, False)
        self.gate, self.up = nn.Linear(width, hidden, False), nn.Linear(width, hidden, False)
        self.down = nn.Linear(hidden, width, bias=False)
        size = width // heads
        angles = torch.outer(
            torch.arange(float(length)), 1e4 ** (-torch.arange(0, size, 2) / size)
        ).repeat(1, 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).chunk(3, -1)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in parts)
        y = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        z = self.norms[1](x)
        return x + self.down(F.silu(self.gate(z)) * self.up(z))


def _llama_block(bf16: bool) -> Callable[[bool], Parts]:
    def make(small: bool) -> Parts:
        batch, length, width = (2, 16, 32) if small else (8, 512, 1024)
        model = _LlamaBlock(width, width // 16 if small else width // 64, 3 * width, length)
        return Parts(
            lambda x: model(x).square().mean(),
            (torch.randn(batch, length, width),),
            model=model,
            bf16=bf16,
        )

    return make


def _mlp(small: bool) -> Parts:
    model = nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )
    return Parts(
        lambda x, y: F.cross_entropy(model(x), y),
        (torch.randn(64, 784), torch.randint(10, (64,))),
        model=model,
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=1e-4),
    )


class Gpt(nn.Module):
    """A decoder of the usual kind, without dropout."""

    def __init__(self, words: int, length: int, width: int, heads: int, layers: int):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(_GptBlock(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.register_buffer("place", torch.arange(length))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(self.place)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class _GptBlock(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).chunk(3, -1)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


def gpt(bf16: bool) -> Callable[[bool], Parts]:
    def make(small: bool) -> Parts:
        words, length, width, heads, layers = (
            (61, 16, 32, 2, 2) if small else (8192, 256, 512, 8, 6)
        )
        model = Gpt(words, length, width, heads, layers)
        batch = 2 if small else 16
        tokens = torch.randint(words, (batch, length + 1))
        return Parts(
            lambda x, y: F.cross_entropy(model(x).flatten(0, 1), y.flatten()),
            (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()),
            model=model,
            optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=3e-4),
            bf16=bf16,
        )

    return make


# The quickest to compile first: time may be short.
WORKLOADS = [
    Workload("mlp", "MLP 784-256-128-10, batch 64, Adam", _mlp),
    Workload("chain_4k", "20 pointwise operations on 4,096 elements", _pointwise(4096, 512)),
    Workload("chain_32m", "the same on 33,554,432 elements", _pointwise(1 << 25, 4096)),
    Workload("norm_block", "GELU, dropout, residual, layer norm, 16384 x 1024", _norm_block),
    Workload("cross_entropy", "cross entropy, 4096 x 32768", _cross_entropy),
    Workload("llama_block", "Llama block of 1024, 8 x 512 tokens", _llama_block(bf16=False)),
    Workload("llama_bf16", "the same under autocast to bf16", _llama_block(bf16=True)),
    Workload("gpt", "GPT, 6 layers of 512, 16 x 256 tokens, AdamW", gpt(bf16=False)),
    Workload("gpt_bf16", "the same under autocast to bf16", gpt(bf16=True)),
]


def make_step(parts: Parts, device: str, wrap: Callable[[Callable], Callable]) -> Callable:
    """One step on the device; `wrap` may compile the forward pass."""
    if parts.model:
        parts.model.to(device)
    inputs = tuple(value.to(device) for value in parts.inputs)
    forward = wrap(parts.loss)
    kind = torch.device(device).type
    if parts.inference:

        def infer() -> torch.Tensor:
            with torch.no_grad():
                return forward(*inputs)

        return infer
    parameters = list(parts.model.parameters())
    optimizer = parts.optimizer(parameters) if parts.optimizer else None

    def train() -> torch.Tensor:
        for parameter in parameters:
            parameter.grad = None
        with torch.autocast(kind, torch.bfloat16, enabled=parts.bf16):
            loss = forward(*inputs)
        loss.backward()
        if optimizer:
            optimizer.step()
        return loss.detach()

    return train
