"""Train the model of char_gpt.py in several processes, which share each batch.

    torchrun --nproc-per-node=2 examples/char_gpt_ddp.py --device lazy

An ordinary DistributedDataParallel script: the device string is the only thing that differs between
``--device cpu`` and ``--device lazy``, and the losses are those of one process on the whole batch.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from char_gpt import BATCH, CharGPT, load_data, sample
from torch.nn.parallel import DistributedDataParallel


def train(device: str, steps: int) -> dict:
    """Train for `steps` batches; the losses over the whole batch, and the seconds of each step."""
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    batches = torch.Generator().manual_seed(1)
    train_ids, _, characters = load_data()
    model = DistributedDataParallel(CharGPT(characters).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)

    losses: list[float] = []
    seconds: list[float] = []
    for _ in range(steps):
        start = time.perf_counter()
        x, y = sample(train_ids, BATCH, batches)
        x, y = x[rank::world].to(device), y[rank::world].to(device)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss = loss.detach()
        dist.all_reduce(loss)
        losses.append(loss.item() / world)
        seconds.append(time.perf_counter() - start)
    return {"losses": losses, "step_seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="lazy", help="cpu or lazy (default: lazy)")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--json", type=Path, help="where rank 0 writes losses and times")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    result = train(args.device, args.steps)
    if dist.get_rank() == 0:
        if args.json:
            args.json.write_text(json.dumps(result))
        late = sorted(result["step_seconds"][args.steps // 2 :])
        print(f"loss {result['losses'][-1]:.6f}  {1000 * late[len(late) // 2]:.1f} ms a step")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
