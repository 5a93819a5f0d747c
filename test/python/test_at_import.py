"""What a shim does to a module is done when a script imports it."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

from torch_lazy.integration.at_import import when_imported


@pytest.fixture
def module(tmp_path, monkeypatch) -> str:
    """The name of a module that can be imported and has not been."""
    name = "module_with_a_shim"
    (tmp_path / f"{name}.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)


def test_a_module_is_changed_once_it_is_imported(module):
    changed = []
    when_imported(module, changed.append)
    assert changed == []

    imported = importlib.import_module(module)
    importlib.reload(imported)

    assert changed == [imported]


def test_a_module_that_is_imported_already_is_changed_at_once(module):
    imported, changed = importlib.import_module(module), []

    when_imported(module, changed.append)

    assert changed == [imported]


def test_a_look_whether_it_is_installed_does_not_use_up_the_change(module):
    changed = []
    when_imported(module, changed.append)

    assert importlib.util.find_spec(module) is not None
    imported = importlib.import_module(module)

    assert changed == [imported]
