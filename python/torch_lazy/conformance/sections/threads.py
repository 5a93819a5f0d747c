"""Several threads that record at once, and tensors that go from one to another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

import torch_lazy
from torch_lazy.conformance.as_on_the_cpu import require_same
from torch_lazy.conformance.section import Options, by_name, section_of_checks
from torch_lazy.conformance.small_training import TASKS, require_agreement, train

_THREADS = 2
_STEPS = 40


def _in_threads(work: Callable[[int], Any]) -> list[Any]:
    """What `work` returned in each thread, all of which run at once; raises what one raised."""
    results: list[Any] = [None] * _THREADS
    errors: list[BaseException] = []
    start = threading.Barrier(_THREADS)

    def run(thread: int) -> None:
        try:
            start.wait()
            results[thread] = work(thread)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(thread,)) for thread in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def _work(x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    kept.add_((x @ x.t()).relu().sum(1))
    return (x * 2 + kept).softmax(-1)


def threads_record_at_once(options: Options) -> None:
    """Each on its own tensors; both follow the same traces."""
    # Of many steps the sums are small enough that a softmax does not show their rounding.
    x = [torch.randn(4, 4) / 8 for _ in range(_THREADS)]

    def run(thread: int, device: str = "lazy") -> list[torch.Tensor]:
        there, kept = x[thread].to(device), torch.zeros(4, device=device)
        results = [_work(there, kept).cpu() for _ in range(_STEPS)]
        return [*results, kept.cpu()]

    for _ in range(3):
        results = _in_threads(run)
        torch_lazy.wait_for_compiles()
        for thread in range(_THREADS):
            require_same(results[thread], run(thread, "cpu"), f"thread {thread}: ")


def threads_read_what_is_shared(options: Options) -> None:
    """One tensor, pending when the threads start, which all read."""
    x = torch.randn(4, 4)
    expected = (x * 2 + 1) @ x
    for _ in range(4):
        pending = x.to("lazy") * 2 + 1
        results = _in_threads(
            lambda thread, p=pending: [(p @ x.to("lazy")).cpu() for _ in range(5)]
        )
        for result in results:
            require_same(result, [expected] * 5)
        torch_lazy.wait_for_compiles()


def pending_results_pass_to_another_thread(options: Options) -> None:
    x = torch.randn(3, 4)
    for _ in range(4):
        made = _in_threads(lambda thread: (x.to("lazy") + thread) * 2)
        require_same(made, [(x + thread) * 2 for thread in range(_THREADS)])
        torch_lazy.wait_for_compiles()


def threads_train_at_once(options: Options) -> None:
    task = TASKS["layers-with-adam"]
    weights = task.weights()
    expected = train(task, weights, "cpu")
    for actual in _in_threads(lambda thread: train(task, weights, "lazy")):
        require_agreement(actual, expected)


SECTION = section_of_checks(
    "threads",
    "threads that record at once, share tensors and train",
    by_name(
        threads_record_at_once,
        threads_read_what_is_shared,
        pending_results_pass_to_another_thread,
        threads_train_at_once,
    ),
)
