"""``torch.save`` and ``torch.load`` of lazy tensors.

A file says of each storage where it was, its *location*: ``"lazy:0"``, as ``"cuda:0"`` for CUDA.
PyTorch without this plugin cannot restore such a location, and a lazy tensor's bytes are CPU bytes
anyway. So in a zip file, what ``torch.save`` writes unless told otherwise, the location of a lazy
storage is ``"cpu"``, and the record ``.lazy_storages`` beside the bytes says which were lazy, and
where: any PyTorch reads the file, and with the plugin they come back lazy. Nothing else sees that:
``map_location`` is asked about ``"lazy:0"``.
"""

from __future__ import annotations

import functools
import json
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import serialization

_RECORD = ".lazy_storages"

# What PyTorch's picklers and unpicklers pass for a storage:
# ("storage", class, key, location, number of elements)
_StorageId = tuple[Any, ...]


def _at(storage_id: _StorageId, location: str) -> _StorageId:
    return (*storage_id[:3], location, *storage_id[4:])


def _is_lazy(location: str) -> bool:
    return location.partition(":")[0] == "lazy"


def _saving_as_cpu(pickle_module: Any, locations: dict[str, str]) -> Any:
    """The pickle module with a pickler that writes lazy storages as the CPU's.

    It notes where they were, by their keys.

    ``torch.save`` derives its pickler from that one and gives it the method ``persistent_id``,
    which knows the storages' keys.
    """

    class Pickler(pickle_module.Pickler):
        def __init_subclass__(cls, **kwargs: Any) -> None:
            super().__init_subclass__(**kwargs)
            identify = cls.persistent_id

            def persistent_id(self: Any, thing: Any) -> _StorageId | None:
                storage_id = identify(self, thing)
                if storage_id is None or not _is_lazy(storage_id[3]):
                    return storage_id
                locations[storage_id[2]] = storage_id[3]
                return _at(storage_id, "cpu")

            cls.persistent_id = persistent_id

    return types.SimpleNamespace(__name__=pickle_module.__name__, Pickler=Pickler)


def _loading_as_lazy(pickle_module: Any, locations: dict[str, str]) -> Any:
    """The pickle module with an unpickler to which the storages of those keys are where they were.

    ``torch.load`` derives its unpickler from that one and assigns its method ``persistent_load``.
    """

    def as_lazy(load: Callable[[_StorageId], Any]) -> Callable[[_StorageId], Any]:
        return lambda storage_id: load(_at(storage_id, locations.get(storage_id[2], storage_id[3])))

    class Unpickler(pickle_module.Unpickler):
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, as_lazy(value) if name == "persistent_load" else value)

    return types.SimpleNamespace(__name__=pickle_module.__name__, Unpickler=Unpickler)


def _save(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def save(thing: Any, zip_file: Any, pickle_module: Any, *args: Any, **kwargs: Any) -> None:
        locations: dict[str, str] = {}
        original(thing, zip_file, _saving_as_cpu(pickle_module, locations), *args, **kwargs)
        if locations:
            record = json.dumps(locations)
            zip_file.write_record(_RECORD, record, len(record))

    return save


def _load(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def load(
        zip_file: Any, map_location: Any, pickle_module: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if zip_file.has_record(_RECORD):
            locations = json.loads(zip_file.get_record(_RECORD))
            pickle_module = _loading_as_lazy(pickle_module, locations)
        return original(zip_file, map_location, pickle_module, *args, **kwargs)

    return load


def _tag(storage: Any) -> str | None:
    return str(storage.device) if storage.device.type == "lazy" else None


def _restore(storage: Any, location: str) -> Any:
    if not _is_lazy(location):
        return None
    return storage.to(device=torch.device(location))


def install() -> None:
    """Registers the device's locations and wraps the readers and writers of zip files."""
    # After the CPU's, 10, and before CUDA's, 20.
    serialization.register_package(15, _tag, _restore)
    serialization._save = _save(serialization._save)
    serialization._load = _load(serialization._load)
