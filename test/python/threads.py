"""Threads that start together, for the tests."""

from __future__ import annotations

import threading

THREADS = 4


def run_threads(work) -> list:
    """Runs `work(i)` on several threads that start together; returns the results or raises what one
    raised."""
    results: list = [None] * THREADS
    errors: list[BaseException] = []
    barrier = threading.Barrier(THREADS)

    def body(i: int) -> None:
        try:
            barrier.wait(timeout=30)
            results[i] = work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return results
