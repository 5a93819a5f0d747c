"""A process that answers for items of one section: names on standard input, results on standard
output.

    python -X faulthandler -m torch_lazy.conformance.worker SECTION OPTIONS
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import IO, Any

import torch

import torch_lazy
from torch_lazy.conformance.fork_server import ForkServer, Worker
from torch_lazy.conformance.isolated import serve, show_where_it_hangs
from torch_lazy.conformance.section import Options, Section, answer
from torch_lazy.conformance.sections import SECTIONS


def environment(options: Options) -> dict[str, str]:
    """Of processes in which the backend is tried."""
    chosen = {"TORCH_LAZY_BACKEND": options.backend, "TORCH_LAZY_RNG": "eager"}
    return {**os.environ, **chosen, "TORCH_LAZY": "0" if options.without_backend else "1"}


def start(server: ForkServer, section: Section, options: Options, errors: IO[str] | None) -> Worker:
    """A worker of the server's."""
    module = ["-m", "torch_lazy.conformance.worker"]
    arguments = [section.name, json.dumps(asdict(options))]
    return server.start([*module, *arguments], environment(options), errors)


def prepare(options: Options) -> None:
    """Makes this process one in which the backend is tried; raises where it cannot be selected."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # several workers run at once
    torch_lazy.set_backend(options.backend)


def work_of(section: Section, options: Options) -> Callable[[str], dict[str, Any]]:
    """What a worker does for an item; the backend is selected before the first."""
    prepare(options)
    show_where_it_hangs()
    if not section.missing:
        section.items(options)  # imports what checks need, before their time runs

    def work(item: str) -> dict[str, Any]:
        torch.manual_seed(options.seed)  # the same numbers when an item is tried again
        result = answer(lambda: section.check(item, options))
        with contextlib.suppress(Exception):  # this item's, and no next one's
            torch_lazy.synchronize()
        return asdict(result)

    return work


if __name__ == "__main__":
    name, given = sys.argv[1:]
    serve(work_of(SECTIONS[name], Options(**json.loads(given))))
