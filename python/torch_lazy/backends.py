"""Who compiles windows: our own backends, and those that other packages bring.

A package names its backend by an entry point of the group ``torch_lazy.backends``, whose function
returns the path of a shared library. None is called, and no library opened, before the backend is
selected or :func:`backends` asks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from torch_lazy.config import config

_GROUP = "torch_lazy.backends"


@dataclass(frozen=True)
class Backend:
    """What :func:`backends` tells of one."""

    name: str
    """As :func:`set_backend` and ``TORCH_LAZY_BACKEND`` take it."""
    distribution: str | None
    """The installed package that brings it, with its version; ``None`` for a built-in backend."""
    file: str | None
    """Its library; ``None`` for a built-in backend, and where the package does not say."""
    error: str | None
    """Why it cannot be used; ``None`` where it can."""
    libraries: str | None = None
    """What a built-in backend has to open, with versions and files; ``None`` for nothing."""

    @property
    def available(self) -> bool:
        """Whether it can be selected. It is made when it is: that may still fail."""
        return self.error is None

    def __str__(self) -> str:
        source = self.distribution or "built in"
        source += f", {self.file}" if self.file else ""
        available = f"available, by {self.libraries}" if self.libraries else "available"
        return f"{self.name} ({source}): {self.error or available}"


def set_backend(name: str) -> None:
    """Lets the backend of that name compile windows: the same as ``config.backend = name``.

    Loads its library first. What other backends have compiled is not used any more. Raises
    ``ValueError`` for a name that :func:`backends` does not list, and ``RuntimeError`` where the
    backend cannot be loaded or made; the one before stays selected then.
    """
    config.backend = name


def backends() -> list[Backend]:
    """Every backend there is: built in, or brought by an installed package.

    Libraries are opened, to see whether they fit; no backend is made.
    """
    found = [
        Backend(name, None, None, error or None, libraries or None)
        for name, file, error, libraries in _library().registered_backends()
        if not file
    ]
    return found + [_inspected(entry) for entry in _entry_points()]


def _library() -> Any:
    from torch_lazy import _C

    return _C


def _entry_points() -> Iterator[EntryPoint]:
    yield from sorted(entry_points(group=_GROUP), key=lambda entry: entry.name)


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unnamed package"


def _inspected(entry: EntryPoint) -> Backend:
    file = error = None
    try:
        _refuse_ambiguous(entry)
        file = _file_of(entry)
        _library().load_backend_library(entry.name, file)
        error = next(e for name, _, e, _ in _library().registered_backends() if name == entry.name)
    except RuntimeError as failure:
        error = str(failure)
    return Backend(entry.name, _distribution(entry), file, error or None)


def _library_of(name: str) -> str:
    """The path of the library with that backend; called by the core, which then opens it."""
    entries = list(_entry_points())
    for entry in entries:
        if entry.name == name:
            _refuse_ambiguous(entry)
            return _file_of(entry)
    registered = [known for known, *_ in _library().registered_backends()]
    names = list(dict.fromkeys(registered + [entry.name for entry in entries]))
    raise ValueError(
        f"no backend is named {name!r}: there are {', '.join(map(repr, names))}; another one comes "
        f"with a package that has an entry point {name!r} in the group {_GROUP!r}"
    )


def _refuse_ambiguous(entry: EntryPoint) -> None:
    same = [_distribution(other) for other in _entry_points() if other.name == entry.name]
    if len(same) > 1:
        raise RuntimeError(
            f"backend {entry.name!r} comes with {' and '.join(same)}: uninstall all but one"
        )


def _file_of(entry: EntryPoint) -> str:
    """What the entry point's function returns. It may import what registers the device."""
    try:
        file = entry.load()()
    except Exception as error:
        raise RuntimeError(
            f"backend {entry.name!r} cannot be loaded: its entry point {entry.value!r} "
            f"({_distribution(entry)}) raised {type(error).__name__}: {error}"
        ) from error
    if not isinstance(file, (str, os.PathLike)):
        raise RuntimeError(
            f"backend {entry.name!r} cannot be loaded: its entry point {entry.value!r} "
            f"({_distribution(entry)}) must return the path of its library, not {file!r}"
        )
    return os.path.abspath(file)
