"""The fused operators that ``torch.nn``'s encoder and attention call in inference, on ``lazy``.

They list the types of devices on which they do, as ``torch.norm`` does; an encoder then also makes
zero what is at padded positions. The lists end with the name that a plugin has given PyTorch's one
type of device for plugins. Device ``lazy`` is of another type, so the entry is made to equal both
names. A plugin that names that type afterwards puts its own name there; then ``lazy`` takes the
ordinary path.
"""

from __future__ import annotations

from torch.utils import backend_registration


class _ListedDevice(str):
    """A name of a type of device that stands for ``lazy``, too, in lists, which compare by ``==``.

    Its hash is that of its own name: no set of PyTorch's holds it.
    """

    def __eq__(self, other: object) -> bool:
        return other == "lazy" or str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def install() -> None:
    """Puts ``lazy`` beside the last entry of the lists; call once."""
    listed = backend_registration._privateuse1_backend_name
    backend_registration._privateuse1_backend_name = _ListedDevice(listed)
