"""`torch.lazy.config`: made from the table of settings, as the README's table is."""

from __future__ import annotations

from pathlib import Path

import pytest
from behaviour import run_script

import torch_lazy
from torch_lazy.config import markdown_table

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_has_the_table_of_settings():
    assert markdown_table() in README.read_text()


def test_the_documentation_of_config_has_every_setting():
    documentation = type(torch_lazy.config).__doc__

    assert all(f"`{name}`" in documentation for name in dir(torch_lazy.config))


def test_config_lists_its_settings():
    assert "defer" in dir(torch_lazy.config)
    assert f"defer = {torch_lazy.config.defer!r}" in repr(torch_lazy.config).splitlines()


def test_a_setting_is_read_back():
    before = torch_lazy.config.window_operations
    try:
        torch_lazy.config.window_operations = 77
        assert torch_lazy.config.window_operations == 77
    finally:
        torch_lazy.config.window_operations = before


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("debug", 9, "debug must be an integer from 0 to 5"),
        ("verify", "yes", "verify must be True or False"),
        ("rng", "mersenne", "rng must be 'philox' or 'eager'"),
        ("backend", "abacus", "no backend is named 'abacus': there are 'cpu', 'cuda', 'reference'"),
    ],
)
def test_a_value_that_a_setting_does_not_have_is_refused(name, value, message):
    with pytest.raises(ValueError, match=message):
        setattr(torch_lazy.config, name, value)


def test_an_unknown_setting_is_an_error_that_names_the_others():
    with pytest.raises(AttributeError, match="no setting 'speed'; there are: defer, backend"):
        torch_lazy.config.speed = 3
    with pytest.raises(AttributeError, match="no setting 'speed'"):
        _ = torch_lazy.config.speed


def test_an_old_name_works_with_a_warning():
    with pytest.warns(UserWarning, match="recompute_bytes is called rematerialize_bytes now"):
        assert torch_lazy.config.recompute_bytes == torch_lazy.config.rematerialize_bytes


def test_an_old_variable_works_with_a_warning():
    done = run_script(
        "import torch; print(torch.lazy.config.rematerialize_bytes)",
        TORCH_LAZY_RECOMPUTE_BYTES="4096",
        TORCH_LAZY_REMATERIALIZE_BYTES="",
    )

    assert done.stdout.strip() == "4096", done.stderr
    assert "TORCH_LAZY_RECOMPUTE_BYTES is called TORCH_LAZY_REMATERIALIZE_BYTES now" in done.stderr


@pytest.mark.parametrize("value", [1e9, 2**70, None])
def test_a_value_of_another_type_is_refused(value):
    before = torch_lazy.config.window_bytes

    with pytest.raises((TypeError, ValueError, OverflowError)):
        torch_lazy.config.window_bytes = value

    assert torch_lazy.config.window_bytes == before
