"""Writes in place: to results, to inputs of a window, through overlaps and repeated indices."""

from __future__ import annotations

from functools import partial

import torch

from torch_lazy.conformance.as_on_the_cpu import require_as_on_the_cpu
from torch_lazy.conformance.section import Options, by_name, section_of_checks

_I = torch.tensor([2, 0, 2])

_WRITES = {
    "add_": lambda t, o: t.add_(o, alpha=2),
    "mul_-by-itself": lambda t, o: t.mul_(t),
    "div_-by-a-row": lambda t, o: t.div_(o[0] + 10),
    "copy_-of-its-transpose": lambda t, o: t.copy_(t.t().clone()),
    "fill_": lambda t, o: t.fill_(3),
    "zero_-of-a-part": lambda t, o: t[1:, ::2].zero_(),
    "a-part-from-another": lambda t, o: t[0].copy_(t[1] * 2),
    "masked_fill_": lambda t, o: t.masked_fill_(o > 0, -1),
    "clamp_": lambda t, o: t.clamp_(-0.5, 0.5),
    "index_put_": lambda t, o: t.__setitem__(_I.to(t.device)[:2], o[:2]),
    "index_put_-adding": lambda t, o: t.index_put_((_I.to(t.device),), o[:3], accumulate=True),
    "index_add_": lambda t, o: t.index_add_(0, _I.to(t.device), o[:3]),
    "scatter_add_": lambda t, o: t.scatter_add_(1, (o > 0).long(), o),
    "addmm_": lambda t, o: t.addmm_(o, o),
    "out=": lambda t, o: torch.add(t, o, out=t),
    "tril_": lambda t, o: t.tril_(),
    "t_": lambda t, o: t.t_().add_(1),
    "cumsum_": lambda t, o: t.cumsum_(0),
}


def _writes_results(write, options: Options) -> None:
    def make(device: str):
        x, other = torch.randn(4, 4).to(device), torch.randn(4, 4).to(device)

        def step() -> list[torch.Tensor]:
            y = x * 2
            before = y + 1
            write(y, other)
            return [y, before, y * 2, x]

        return step

    require_as_on_the_cpu(make)


def _writes_inputs(write, options: Options) -> None:
    """What is written lives on from run to run, and a view of it as well."""

    def make(device: str):
        kept, other = torch.randn(4, 4).to(device), torch.randn(4, 4).to(device)
        row = kept[1]

        def step() -> list[torch.Tensor]:
            write(kept, other)
            kept.mul_(0.5)
            return [row * 1, kept.clone()]

        return step

    require_as_on_the_cpu(make, runs=6)


def an_input_may_be_given_twice(options: Options) -> None:
    """Under two names, as itself and as a view, and by turns."""

    def make(device: str):
        a, b = torch.randn(4, 4).to(device), torch.randn(4, 4).to(device)
        turns = [(a, b), (b, a), (a, a), (a, a.t())]
        run = 0

        def step() -> list[torch.Tensor]:
            nonlocal run
            x, y = turns[run // 3 % 4]
            run += 1
            x.mul_(0.5)
            made = x + y
            y.add_(1)
            return [made + x, a.clone(), b.clone()]

        return step

    require_as_on_the_cpu(make, runs=14)


def what_was_read_before_a_write_stays(options: Options) -> None:
    def make(device: str):
        kept = torch.randn(4, 4).to(device)

        def step() -> list[torch.Tensor]:
            before = kept * 1
            transposed = kept.t() + 0
            kept.add_(1)
            after = kept * 1
            kept.neg_()
            return [before, transposed, after, kept.clone()]

        return step

    require_as_on_the_cpu(make, runs=6)


def versions_are_counted(options: Options) -> None:
    def make(device: str):
        def step() -> list[int]:
            x = torch.ones(3, device=device)
            view = x[1:]
            x.add_(1)
            view.mul_(2)
            return [x._version, view._version]

        return step

    require_as_on_the_cpu(make)


def changing_numbers_change_results(options: Options) -> None:
    """A learning rate that differs at every step."""

    def make(device: str):
        weight, gradient = torch.randn(4, 4).to(device), torch.randn(4, 4).to(device)
        rate = 1.0

        def step() -> list[torch.Tensor]:
            nonlocal rate
            rate *= 0.7
            weight.add_(gradient, alpha=-rate)
            weight.mul_(1 - rate / 10)
            return [weight.clone(), gradient * rate]

        return step

    require_as_on_the_cpu(make, runs=10)


SECTION = section_of_checks(
    "writes",
    "writes in place to results and to inputs of windows",
    {
        **{f"{name}-of-a-result": partial(_writes_results, w) for name, w in _WRITES.items()},
        **{f"{name}-of-an-input": partial(_writes_inputs, w) for name, w in _WRITES.items()},
        **by_name(
            an_input_may_be_given_twice,
            what_was_read_before_a_write_stays,
            versions_are_counted,
            changing_numbers_change_results,
        ),
    },
)
