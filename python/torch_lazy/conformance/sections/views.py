"""Views: what they show, their strides, and who shares memory with whom."""

from __future__ import annotations

from functools import partial

import torch

from torch_lazy.conformance.as_on_the_cpu import require_as_on_the_cpu
from torch_lazy.conformance.section import Options, by_name, section_of_checks

_VIEWS = {
    "slices": lambda t: [t[1:], t[:, ::2], t[..., -1], t[1:3, 2:4], t[:0]],
    "transposes": lambda t: [t.t(), t.transpose(0, 1)[1:], t.view(2, 2, 6).permute(2, 0, 1)],
    "new-shapes": lambda t: [t.view(6, 4), t.view(2, -1, 3), t.unsqueeze(1), t[None, 0].squeeze(0)],
    "expansions": lambda t: [t[:1].expand(5, 6), t[:, :1].expand(4, 3), t[0, 0].expand(2, 2)],
    "diagonals-and-windows": lambda t: [t.diagonal(), t.unfold(1, 2, 2), t.diagonal(1)],
    "any-strides": lambda t: [t.as_strided((3, 2), (2, 5), 4), t.as_strided((4, 4), (1, 0), 2)],
    "pieces": lambda t: [*t.chunk(2, 1), *t.split([1, 3]), *t.unbind(0)],
}


def _shows(view, options: Options) -> None:
    """Of a resident tensor and of a pending one; read, and computed with."""

    def make(device: str):
        kept = torch.randn(4, 6).to(device)

        def step() -> list[torch.Tensor]:
            pending = kept * 2 - 1
            views = view(kept) + view(pending)
            return views + [v * 3 for v in views] + [v.contiguous() for v in views]

        return step

    require_as_on_the_cpu(make)


def _shares(view, options: Options) -> None:
    """A write through a view is seen through the base and its other views, and the other way."""

    def make(device: str):
        kept = torch.randn(4, 6).to(device)

        def step() -> list[torch.Tensor]:
            base = kept * 2
            views = [v for v in view(base) if v.numel()]
            base.add_(1)
            writable = [v for v in views if 0 not in v.stride()]
            for v in writable[:1]:
                v.mul_(3)
            return [base, *views]

        return step

    require_as_on_the_cpu(make)


def views_outlive_their_window(options: Options) -> None:
    """Views made in one window are written in the next, and their base is read in a third."""

    def make(device: str):
        base = torch.zeros(4, 6).to(device)
        rows = [base[i] for i in range(4)]
        run = 0

        def step() -> list[torch.Tensor]:
            nonlocal run
            run += 1
            rows[run % 4].add_(run)
            return [base.clone(), rows[2] * 2]

        return step

    require_as_on_the_cpu(make, runs=8)


def results_do_not_share_memory(options: Options) -> None:
    """Results of a window that are written afterwards leave one another alone."""

    def make(device: str):
        x = torch.randn(4, 6).to(device)

        def step() -> list[torch.Tensor]:
            a, b = x + 1, x.clone()
            c = a.t().contiguous()
            a.zero_()
            b[0] = 7
            return [a, b, c, x]

        return step

    require_as_on_the_cpu(make)


def storage_is_shared_as_on_the_cpu(options: Options) -> None:
    """Sizes of storages, offsets, and whose storage is whose."""

    def make(device: str):
        x = torch.randn(4, 6).to(device)

        def step() -> list[object]:
            y = x * 2
            views = [y[1:], y.t(), y.detach(), y.view(-1)[3:], y.contiguous()]
            same = [v.untyped_storage()._cdata == y.untyped_storage()._cdata for v in views]
            return [*same, *[v.storage_offset() for v in views], y.untyped_storage().nbytes()]

        return step

    require_as_on_the_cpu(make)


def gradients_reach_the_base(options: Options) -> None:
    def make(device: str):
        x = torch.randn(4, 6).to(device).requires_grad_()

        def step() -> list[torch.Tensor | None]:
            x.grad = None
            y = x * 2
            (y[1:].t() * y[:3].t()).sum().backward()
            return [x.grad]

        return step

    require_as_on_the_cpu(make)


SECTION = section_of_checks(
    "views",
    "views of resident and of pending tensors, and aliasing",
    {
        **{f"{name}": partial(_shows, view) for name, view in _VIEWS.items()},
        **{f"writes-through-{name}": partial(_shares, view) for name, view in _VIEWS.items()},
        **by_name(
            views_outlive_their_window,
            results_do_not_share_memory,
            storage_is_shared_as_on_the_cpu,
            gradients_reach_the_base,
        ),
    },
)
