"""What stands around the step of a training loop."""

from __future__ import annotations

import torch
from torch.utils.data import DataLoader, TensorDataset


def data_loader(device: str):
    """`DataLoader` with workers and `pin_memory`"""
    dataset = TensorDataset(torch.arange(12.0).view(6, 2), torch.arange(6))
    loader = DataLoader(dataset, batch_size=4, num_workers=1, pin_memory=device != "cpu")
    return [(x.to(device, non_blocking=True).sum(), y.to(device)) for x, y in loader]


def progress(device: str):
    """`loss.item()`, `print(loss)`, `if loss < best`, `f"{loss:.3f}"` in every step"""
    x = torch.ones(3).to(device)
    best, lines = float("inf"), []
    for step in range(4):
        loss = (x * (4 - step)).sum()
        if loss < best:
            best = loss.item()
        lines.append(f"{loss:.3f} {int(loss)}")
    return [best, lines]


def early_stop(device: str):
    """Control flow that depends on data: `while`, `any()`, `nonzero`, masks"""
    x = torch.arange(6.0).to(device)
    steps = 0
    while (x > 0.5).any():
        x = x / 2
        steps += 1
    chosen = torch.arange(6).to(device)
    return [steps, chosen[chosen % 2 == 0], (chosen > 3).nonzero().flatten()]


def other_shapes(device: str):
    """Batches of changing size, the last one smaller"""
    model = torch.nn.Linear(3, 2).to(device)
    torch.nn.init.ones_(model.weight)
    torch.nn.init.zeros_(model.bias)
    return [model(torch.ones(n, 3).to(device)).detach() for n in (4, 4, 2, 3, 4, 1)]


def threads(device: str):
    """Several threads that compute"""
    import concurrent.futures

    def work(number):
        x = torch.full((4,), float(number)).to(device)
        for _ in range(3):
            x = (x * 2 + 1).relu()
        return x.sum().item()

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        return list(pool.map(work, range(6)))


def streams_and_events(device: str):
    """Streams, events with timing, `synchronize()`"""
    module = torch.get_device_module(device) if device != "cpu" else None
    x = torch.ones(4).to(device)
    if module is not None:
        start, end = (module.Event(enable_timing=True) for _ in range(2))
        with module.stream(module.Stream()):
            start.record()
            x = x * 2
            end.record()
        module.synchronize()
        assert start.elapsed_time(end) >= 0
    else:
        x = x * 2
    return x


def memory_statistics(device: str):
    """`memory_allocated`, `max_memory_allocated`, `empty_cache`, `mem_get_info`"""
    x = torch.ones(1024).to(device)
    if device == "cpu":
        return True
    module = torch.get_device_module(device)
    module.empty_cache()
    return module.memory_allocated() >= 4 * len(x) and module.mem_get_info()[1] > 0


def numbers_of_metrics(device: str):
    """Metrics kept on the device and read once an epoch"""
    right = torch.zeros((), dtype=torch.long).to(device)
    for step in range(5):
        logits = torch.eye(4).roll(step, 0).to(device)
        right += (logits.argmax(1) == torch.arange(4).to(device)).sum()
    return right.item()


def in_place_index(device: str):
    """Buffers written by index: caches, queues, `index_copy_`, `scatter_`, `masked_fill_`"""
    cache = torch.zeros(4, 3).to(device)
    for position in range(4):
        cache[position] = torch.full((3,), float(position)).to(device)
    cache[:, 1:].mul_(2)
    cache.masked_fill_(cache > 5, -1)
    cache.index_copy_(0, torch.tensor([0]).to(device), torch.ones(1, 3).to(device))
    return cache.scatter_(1, torch.tensor([[0], [1]]).to(device), 9.0)


def profiled(device: str):
    """`torch.profiler` around a step"""
    x = torch.ones(8).to(device)
    with torch.profiler.profile() as profile:
        (x * 2 + 1).sum().item()
    return len(profile.key_averages()) > 0


def deterministic(device: str):
    """`torch.use_deterministic_algorithms(True)`"""
    torch.use_deterministic_algorithms(True)
    try:
        x = torch.zeros(3).to(device)
        return x.index_add(0, torch.tensor([0, 0, 2]).to(device), torch.ones(3).to(device))
    finally:
        torch.use_deterministic_algorithms(False)
