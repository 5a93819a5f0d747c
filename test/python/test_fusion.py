"""Patterns that a fused kernel reads or writes more than once."""

from __future__ import annotations

import torch
from behaviour import same_on


def test_a_piece_that_two_cats_have_is_in_both(device):
    def program(where):
        x = torch.arange(9.0, device=where).view(3, 3)
        p, q = x.exp(), x.sin()
        a = torch.cat([p, q], 0)
        return torch.cat([a.t(), p], 1)

    same_on(device, program)


def test_halves_that_change_places_meet_in_one_tensor(device):
    def rotated(t, cos, sin):
        a, b = t.chunk(2, -1)
        return t * cos + torch.cat([-b, a], -1) * sin

    def program(where):
        heads = torch.linspace(-1, 1, 96, device=where).view(2, 3, 2, 8).transpose(1, 2)
        angles = torch.linspace(0, 3, 24, device=where).view(3, 8)
        turned = rotated(heads, angles.cos(), angles.sin())
        rows = turned.transpose(1, 2).reshape(2, 3, 16)
        return torch.cat([rows, rows.exp(), heads.transpose(1, 2).reshape(2, 3, 16)], -1)

    same_on(device, program)
