"""Modules and optimizers."""

from __future__ import annotations

import torch
from torch import nn
from training import losses_of


def _losses(model, device: str, optimizer, steps: int = 4):
    torch.manual_seed(1)
    return losses_of(model, optimizer, (torch.randn(8, 6).to(device) for _ in range(steps)))


def _mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))


def optimizer_made_before(device: str):
    """An optimizer made before `model.to(device)`"""
    model = _mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return _losses(model.to(device), device, optimizer)


def fused_optimizer(device: str):
    """`torch.optim.AdamW(fused=True)`"""
    model = _mlp().to(device)
    return _losses(model, device, torch.optim.AdamW(model.parameters(), fused=True))


def foreach_optimizer(device: str):
    """`torch.optim.Adam(foreach=True)` and `clip_grad_norm_`"""
    model = _mlp().to(device)
    losses = _losses(model, device, torch.optim.Adam(model.parameters(), foreach=True))
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    return [losses, norm]


def schedules(device: str):
    """Learning rates that change: `OneCycleLR`, and a tensor as learning rate"""
    model = _mlp().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=8)
    losses = []
    for _ in range(6):
        losses += _losses(model, device, optimizer, 1)
        schedule.step()
    other = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.01))
    return losses + _losses(model, device, other)


def lbfgs(device: str):
    """`torch.optim.LBFGS` with a closure"""
    torch.manual_seed(0)
    x = torch.randn(4).to(device).requires_grad_()
    optimizer = torch.optim.LBFGS([x], max_iter=5)

    def closure():
        optimizer.zero_grad()
        loss = (x - 1).pow(4).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return x.detach()


def recurrent(device: str):
    """`nn.LSTM` and `nn.GRU`, with packed sequences"""
    torch.manual_seed(0)
    lstm, gru = nn.LSTM(4, 5, batch_first=True).to(device), nn.GRU(5, 3).to(device)
    x = torch.randn(2, 6, 4).to(device)
    packed = nn.utils.rnn.pack_padded_sequence(x, [6, 3], batch_first=True)
    out, _ = nn.utils.rnn.pad_packed_sequence(lstm(packed)[0])
    return gru(out)[0].detach()


def convolutional(device: str):
    """Convolutions, batch norm, pooling; training, then `eval()`"""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    model.to(device)
    x = torch.randn(2, 1, 8, 8).to(device)
    model(x).sum().backward()
    gradient = model[0].weight.grad
    return [gradient, model.eval()(x).detach()]


def transformer(device: str):
    """`nn.TransformerEncoder`, training and `eval()`, with a mask"""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(device)
    x = torch.randn(2, 5, 8).to(device)
    mask = nn.Transformer.generate_square_subsequent_mask(5).to(device)
    trained = model(x, mask=mask)
    with torch.no_grad():
        return [trained.detach(), model.eval()(x, mask=mask)]


def padded_transformer(device: str):
    """`nn.TransformerEncoder` in `eval()`, sequences that are padded"""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).to(device).eval()
    padding = torch.tensor([[False] * 5, [False, False, True, True, True]]).to(device)
    with torch.no_grad():
        return model(torch.randn(2, 5, 8).to(device), src_key_padding_mask=padding)


def lazy_modules(device: str):
    """`nn.LazyLinear`, whose sizes come with the first batch"""
    torch.manual_seed(0)
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2)).to(device)
    return model(torch.ones(3, 5).to(device)).detach()


def meta_to_device(device: str):
    """A module made on `meta`, `to_empty`, and `load_state_dict(assign=True)`"""
    state = _mlp().to(device).state_dict()
    with torch.device("meta"):
        model = _mlp()
    model.to_empty(device=device)
    model.load_state_dict(state, assign=True)
    return model(torch.ones(2, 6).to(device)).detach()


def parametrized(device: str):
    """`torch.nn.utils.parametrizations`: weight norm, spectral norm; hooks"""
    torch.manual_seed(0)
    model = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)).to(device)
    other = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)).to(device)
    seen = []
    model.register_forward_hook(lambda *arguments: seen.append(arguments[2].sum().item()))
    other(model(torch.ones(2, 4).to(device))).sum().backward()
    return [seen, model.parametrizations.weight.original0.grad]


def averaged(device: str):
    """`torch.optim.swa_utils.AveragedModel`"""
    model = _mlp().to(device)
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        _losses(model, device, optimizer, 1)
        average.update_parameters(model)
    return average.module[0].weight.detach()


def pruned(device: str):
    """`torch.nn.utils.prune`"""
    from torch.nn.utils import prune

    torch.manual_seed(0)
    module = nn.Linear(6, 4).to(device)
    prune.l1_unstructured(module, "weight", amount=0.5)
    return module(torch.ones(1, 6).to(device)).detach()


def embeddings(device: str):
    """`nn.Embedding` with sparse gradients and `SparseAdam`; `nn.EmbeddingBag`"""
    torch.manual_seed(0)
    table = nn.Embedding(10, 4, sparse=True).to(device)
    bag = nn.EmbeddingBag(10, 4).to(device)
    optimizer = torch.optim.SparseAdam(table.parameters())
    rows = torch.tensor([[1, 2], [3, 1]]).to(device)
    (table(rows).sum() + bag(rows).sum()).backward()
    optimizer.step()
    return [table.weight.detach(), bag.weight.grad]
