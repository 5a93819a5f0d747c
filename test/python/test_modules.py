"""PyTorch's own samples of modules and optimizers behave on the device as on the CPU: a few here;
`python -m torch_lazy.conformance.modules` tries all."""

from __future__ import annotations

import pytest
import torch

from torch_lazy.conformance import modules, opinfo

_SUBJECTS = modules.subjects()
_SPARSE = pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
SLICE = [
    "nn.BatchNorm2d.eval",
    "nn.BatchNorm2d.train",
    "nn.Conv2d.train",
    "nn.CrossEntropyLoss.train",
    "nn.Embedding.train",
    "nn.LSTM.train",
    "nn.LazyConv2d.train",
    "nn.MultiheadAttention.eval",
    "nn.ReLU.train",
    "nn.TransformerEncoderLayer.train",
    *(name for name in _SUBJECTS if name.startswith("optim.") and name != "optim.SparseAdam"),
    pytest.param("optim.SparseAdam", marks=_SPARSE),
]
SAMPLES = 3


@pytest.mark.parametrize("name", SLICE)
def test_module_or_optimizer_behaves_as_on_the_cpu(name, device):
    subject, mode = _SUBJECTS[name]

    verdict = opinfo.judge(subject, device, SAMPLES, mode=mode)

    assert verdict.samples > 0
    assert not verdict.failures, verdict.failures


def test_the_harness_sees_a_buffer_that_is_not_kept(monkeypatch):
    subject, mode = _SUBJECTS["nn.BatchNorm2d.train"]
    whole, calls = subject.op, iter(range(100))

    def without_buffers(state, *rest):
        is_the_references = next(calls) == 0
        copies = {k: t if t.requires_grad else t.clone() for k, t in state.items()}
        return whole(state if is_the_references else copies, *rest)

    monkeypatch.setattr(subject, "op", without_buffers)

    failures = opinfo.judge(subject, "cpu", 1, mode=mode).failures

    assert "input afterwards" in failures[0].reason


def test_the_harness_sees_an_optimizer_that_forgets_its_state(monkeypatch):
    subject, mode = _SUBJECTS["optim.Adam"]
    calls = iter(range(100))
    load = torch.optim.Adam.load_state_dict
    forget = lambda self, state: load(self, state) if next(calls) == 0 else None  # noqa: E731
    monkeypatch.setattr(torch.optim.Adam, "load_state_dict", forget)

    failures = opinfo.judge(subject, "cpu", 1, mode=mode).failures

    assert failures
