"""Settings, each also read from an environment variable when the plugin is loaded."""

from __future__ import annotations

from typing import Any


def _library() -> Any:
    from torch_lazy import _C

    return _C


def markdown_table() -> str:
    """The table of settings as the documentation has it."""
    rows = ["| `torch.lazy.config.` | environment | default | meaning |", "|---|---|---|---|"]
    for setting in _library().settings():
        variable = f"`{setting['variable']}`"
        for spelling, word in setting["spellings"]:
            if word not in setting["default"]:
                variable = f'`{setting["variable"]}={spelling}` sets `"{word}"`'
        meaning = setting["meaning"]
        if setting["read_only"]:
            meaning += ". Read only: chosen when the process starts"
        rows.append(f"| `{setting['name']}` | {variable} | {setting['default']} | {meaning} |")
    return "\n".join(rows)


class _Documentation:
    """Makes the text when it is read: the table belongs to the C++ library."""

    def __get__(self, instance: object, owner: type) -> str:
        return f"The settings of the process; assign to change one.\n\n{markdown_table()}\n"


class _Config:
    __doc__ = _Documentation()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python asks for what objects may have
            raise AttributeError(name)
        return _library().get_setting(name)

    def __setattr__(self, name: str, value: Any) -> None:
        _library().set_setting(name, value)

    def __dir__(self) -> list[str]:
        return sorted(setting["name"] for setting in _library().settings())

    def __repr__(self) -> str:
        names = [setting["name"] for setting in _library().settings()]
        return "\n".join(f"{name} = {getattr(self, name)!r}" for name in names)


config = _Config()
