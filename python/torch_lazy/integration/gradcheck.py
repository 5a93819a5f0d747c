"""``torch.autograd.gradcheck`` and ``gradgradcheck``: functions under test run at the call.

They call a function several times and compare the gradients bit for bit: one that gives others is
"not reentrant". Deferred, the first calls would run by ATen and the later ones by kernels, which
round otherwise. So nothing is deferred on the calling thread meanwhile, and what is checked is what
``defer="never"`` computes, as on the CPU.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch.autograd  # noqa: F401  so that the module below is there

from torch_lazy.integration.at_the_call import at_the_call

# Both public functions end in it. A function has the module's name in ``torch.autograd``.
_MODULE = "torch.autograd.gradcheck"
_NAME = "_gradcheck_helper"


def _eagerly(check: Callable[..., bool]) -> Callable[..., bool]:
    @functools.wraps(check)
    def gradcheck(*args: Any, **kwargs: Any) -> bool:
        with at_the_call():
            return check(*args, **kwargs)

    return gradcheck


def install() -> None:
    """Wraps what both checks end in; call once."""
    module = sys.modules[_MODULE]
    setattr(module, _NAME, _eagerly(getattr(module, _NAME)))
