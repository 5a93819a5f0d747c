"""What is done to a module when a script imports it, and not before."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def when_imported(name: str, change: Callable[[ModuleType], None]) -> None:
    """Calls ``change`` on the module of that name: now, or once it has been imported."""
    if name in sys.modules:
        change(sys.modules[name])
    else:
        sys.meta_path.insert(0, _AtImport(name, change))


def when_imported_wrap(
    name: str, function: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> None:
    """Puts ``wrap(f)`` in the place of a function of that module: now, or once it is imported.

    Where another version of the library has no such function nothing is changed.
    """

    def change(module: ModuleType) -> None:
        original = getattr(module, function, None)
        if original is not None:
            setattr(module, function, wrap(original))

    when_imported(name, change)


class _AtImport(MetaPathFinder):
    """Finds one module as others do, and has it changed once it has run.

    It stays until then: scripts also look for a module only to see whether it is installed.
    """

    def __init__(self, name: str, change: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._change = change
        self._searching = threading.local()

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != self._name or getattr(self._searching, "now", False):
            return None
        self._searching.now = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searching.now = False
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._change(module)

        spec.loader.exec_module = exec_module
        return spec
