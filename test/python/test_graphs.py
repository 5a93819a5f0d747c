"""Graphs of compiled windows: their lines, hashes and pictures."""

from __future__ import annotations

import pytest
import torch
from behaviour import hot, torch_lazy, wait_for_compiles

pytestmark = pytest.mark.recording


def step(x: torch.Tensor) -> torch.Tensor:
    return ((x * 2).tanh() + x).sum(0)


@pytest.fixture
def x(device):
    # A shape of its own: a window that another test made known has the lines of that test.
    return torch.randn(3, 9).to(device)


def test_graphs_name_the_line_that_recorded(x):
    hot(step, x)

    texts = [graph.text for graph in torch_lazy.graphs()]

    assert any("aten::tanh" in text and "test_graphs.py:" in text for text in texts)


def test_code_that_is_made_anew_for_each_step_has_lines_too(x):
    lines = "\n".join(f"x = (x * {i}.5).tanh()" for i in range(1, 60))
    for count in range(2):
        exec(compile(f"{lines}\n", f"<made anew {count}>", "exec"), {"x": x})
        torch_lazy.synchronize()
        wait_for_compiles()

    texts = [graph.text for graph in torch_lazy.graphs() if "<made anew" in graph.text]

    assert any("aten::tanh" in text and ">:59:" in text for text in texts)


def test_graphs_have_hashes_and_pictures(x):
    hot(step, x)

    graphs = torch_lazy.graphs()

    assert len({graph.hash for graph in graphs}) == len(graphs)
    assert all(len(graph.hash) == 32 and int(graph.hash, 16) >= 0 for graph in graphs)
