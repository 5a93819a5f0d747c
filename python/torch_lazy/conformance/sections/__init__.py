"""The sections of the kit in the order of the page. A new one is a module here and a line below."""

from torch_lazy.conformance.sections import (
    copies,
    device,
    failures,
    forks,
    memory,
    modules,
    operators,
    programs,
    reproducibility,
    threads,
    training,
    views,
    writes,
)

_MODULES = [
    device,
    copies,
    views,
    writes,
    programs,
    operators,
    modules,
    training,
    failures,
    threads,
]
_MODULES += [forks, memory, reproducibility]

SECTIONS = {module.SECTION.name: module.SECTION for module in _MODULES}
