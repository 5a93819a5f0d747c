"""Random objects with tensors, views and modules of two devices go through every way to copy, save
or send an object, and come out as on the CPU."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.multiprocessing as mp
from behaviour import RUNS_UNTIL_HOT, synchronize, wait_for_compiles
from object_graph import ObjectGraph, compare, tensors_of
from saving import reloaded

SEEDS = range(12)


def through_a_queue(thing: Any) -> Any:
    queue = mp.get_context("fork").Queue()
    queue.put(thing)
    return queue.get(timeout=60)


WAYS: dict[str, Callable[[Any], Any]] = {
    "zip": lambda thing: reloaded(thing, "zip", weights_only=False),
    "legacy": lambda thing: reloaded(thing, "legacy", weights_only=False),
    "zip, weights only": lambda thing: reloaded(thing, "zip"),
    "legacy, weights only": lambda thing: reloaded(thing, "legacy"),
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "deepcopy": copy.deepcopy,
    "queue": through_a_queue,
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, marks=pytest.mark.on_cpu("memory of the host is shared with processes"))
        if way == "queue"
        else way
        for way in WAYS
    ],
)
def test_objects_are_the_same_afterwards(device, way, seed):
    modules = "weights only" not in way
    expected = WAYS[way](ObjectGraph(seed, "cpu", modules).make())

    for _ in range(RUNS_UNTIL_HOT):
        thing = ObjectGraph(seed, device, modules).make()
        devices = [tensor.device.type for tensor in tensors_of(thing)]
        compare(WAYS[way](thing), expected, devices)
        del thing
        synchronize()
        wait_for_compiles()


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_are_independent(device, seed):
    thing = ObjectGraph(seed, device, modules=True).make()
    before = [tensor.detach().cpu().clone() for tensor in tensors_of(thing)]

    for way in ("zip", "deepcopy", "pickle"):
        for tensor in tensors_of(WAYS[way](thing)):
            tensor.untyped_storage().fill_(0)

    for tensor, value in zip(tensors_of(thing), before, strict=True):
        assert torch.equal(tensor.detach().cpu(), value)


def test_the_objects_have_what_they_are_for(device):
    """Without aliases, or on one device, the tests above would say little."""
    tensors = [list(tensors_of(ObjectGraph(seed, device, modules=True).make())) for seed in SEEDS]
    of_all = [tensor for of_one in tensors for tensor in of_one]

    assert len({tensor.untyped_storage()._cdata for tensor in of_all}) < len(of_all) * 0.7
    assert sum(tensor.device.type == "cpu" for tensor in of_all) > len(of_all) * 0.1
    assert any(tensor.storage_offset() for tensor in of_all)
    assert any(tensor.is_conj() for tensor in of_all)
    assert any(not tensor.is_contiguous() for tensor in of_all)
