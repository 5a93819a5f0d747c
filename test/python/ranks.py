"""Processes that communicate: a world of ranks that lives as long as a module of tests, so that
each test costs milliseconds and not the start of its processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch.distributed as dist
from behaviour import RUNS_UNTIL_HOT, same, synchronize, wait_for_compiles

SECONDS = 60.0  # for one function on all ranks; what takes longer hangs


def _serve(rank: int, size: int, path: str, connection: Connection) -> None:
    """What a rank does: joins the world, then calls the functions that come."""
    torch.set_num_threads(1)
    store = dist.FileStore(path, size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    while True:
        try:
            function, arguments = pickle.loads(connection.recv_bytes())
        except EOFError:
            os._exit(0)  # the tests are over; nobody would answer a farewell
        try:
            answer = (function(*arguments), None)
        except BaseException:
            answer = (None, traceback.format_exc())
        # Pickled here, by value: a connection's own way shares the memory of tensors, which would
        # have to outlive this process.
        connection.send_bytes(pickle.dumps(answer))


class Ranks:
    """`size` processes with a process group of backend gloo."""

    def __init__(self, size: int):
        self.size = size
        self._processes: list[Any] = []
        self._connections: list[Connection] = []

    def run(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Results of `function(*arguments)`, called on all ranks at once, by rank. The function is
        one of a module; it asks torch.distributed for its rank."""
        if not self._processes:
            self._start()
        for connection in self._connections:
            connection.send_bytes(pickle.dumps((function, arguments)))
        answers = [self._answer(rank) for rank in range(self.size)]
        failures = [f"rank {i}: {failure}" for i, (_, failure) in enumerate(answers) if failure]
        if failures:
            self.close()  # the others may wait for the one that raised
            raise AssertionError("\n".join(failures))
        return [result for result, _ in answers]

    def _answer(self, rank: int) -> tuple[Any, str | None]:
        connection = self._connections[rank]
        try:
            if connection.poll(SECONDS):
                return pickle.loads(connection.recv_bytes())
        except EOFError:
            return None, "died"
        return None, f"did not answer within {SECONDS:.0f} s"

    def same_on(self, device: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Asserts that `function(device, *arguments)` gives on each rank, in every pass from cold
        to hot, what it gives with "cpu"."""
        expected = self.run(repeatedly, function, "cpu", 1, *arguments)
        actual = self.run(repeatedly, function, device, RUNS_UNTIL_HOT, *arguments)
        for rank in range(self.size):
            for i, result in enumerate(actual[rank]):
                try:
                    same(result, expected[rank][0])
                except AssertionError as error:
                    raise AssertionError(f"rank {rank}, run {i + 1}: {error}") from None

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        path = os.path.join(tempfile.mkdtemp(prefix="torch_lazy_ranks_"), "store")
        for rank in range(self.size):
            here, there = spawn.Pipe()
            process = spawn.Process(target=_serve, args=(rank, self.size, path, there), daemon=True)
            process.start()
            there.close()
            self._processes.append(process)
            self._connections.append(here)

    def close(self) -> None:
        """Ends the processes; the next `run` starts others."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        for connection in self._connections:
            connection.close()
        self._processes, self._connections = [], []


def repeatedly(function: Callable[..., Any], device: str, runs: int, *arguments: Any) -> list[Any]:
    """Results of every run, each of which starts with equal random numbers."""
    results = []
    for _ in range(runs):
        torch.manual_seed(dist.get_rank())
        results.append(on_cpu(function(device, *arguments)))
        synchronize()
        wait_for_compiles()
    return results


def on_cpu(value: Any) -> Any:
    """The value with tensors on the CPU, which can be sent."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, (list, tuple)):
        return [on_cpu(v) for v in value]
    return value


def pending(device: str, rows: int = 4) -> torch.Tensor:
    """On a rank: a value of this rank that is deferred once its operations are known."""
    x = torch.arange(rows * 3.0).to(device).reshape(rows, 3)
    return (x + dist.get_rank() + 1) * 0.5
