"""The cells of recurrent networks, which PyTorch expects to be one kernel each on an accelerator.

Here they are composed as PyTorch composes them for the CPU, for which they exist no other way.
"""

from __future__ import annotations

import torch
from torch import Tensor


def _biased(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias


def _lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cell: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The next hidden state and cell, and what a kernel of its own would keep for backward."""
    gates = _biased(input_gates, input_bias) + _biased(hidden_gates, hidden_bias)
    let_in, keep, candidate, let_out = gates.chunk(4, 1)
    cell = keep.sigmoid() * cell + let_in.sigmoid() * candidate.tanh()
    return let_out.sigmoid() * cell.tanh(), cell, gates.new_empty(0)


def _gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hidden: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The next hidden state, and what a kernel of its own would keep for backward."""
    reset, update, candidate = _biased(input_gates, input_bias).chunk(3, 1)
    hidden_reset, hidden_update, hidden_candidate = _biased(hidden_gates, hidden_bias).chunk(3, 1)
    reset = (hidden_reset + reset).sigmoid()
    update = (hidden_update + update).sigmoid()
    candidate = (candidate + hidden_candidate * reset).tanh()
    return (hidden - candidate) * update + candidate, hidden.new_empty(0)


# The registration lasts as long as the library does.
_library = torch.library.Library("aten", "IMPL")
for _key in ("PrivateUse1", "AutogradPrivateUse1"):
    _library.impl("_thnn_fused_lstm_cell", _lstm_cell, _key)
    _library.impl("_thnn_fused_gru_cell", _gru_cell, _key)
