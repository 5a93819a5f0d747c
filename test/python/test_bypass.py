"""Operations that do not pay to record run at the call, and compute the same."""

from __future__ import annotations

import pytest
import torch
from behaviour import torch_lazy

pytestmark = pytest.mark.recording


@pytest.fixture(autouse=True)
def bypass():
    torch_lazy.synchronize()
    torch_lazy.reset_metrics()
    torch_lazy.config.bypass = True
    yield
    torch_lazy.config.bypass = False
    torch_lazy.synchronize()


def bypassed() -> int:
    return torch_lazy.metrics()["bypassed"]


def never_repeat(device: str, programs: int, seed: int) -> list[float]:
    """Sums of chains of random operators, each chain another one, and others for each seed."""
    generator = torch.Generator().manual_seed(seed)
    results = []
    for _ in range(programs):
        x = torch.arange(6.0).view(2, 3).to(device)
        for choice in torch.randint(0, 6, (40,), generator=generator).tolist():
            x = [
                lambda x: x.t() * 1.5,
                lambda x: x.sigmoid(),
                lambda x: x + x.mean(),
                lambda x: x.view(3, 2) if x.is_contiguous() else x.contiguous(),
                lambda x: x.clone().mul_(0.5),
                lambda x: torch.where(x > 1, x, 1 - x),
            ][choice](x)
        results.append(x.sum().item())
    return results


def test_a_program_that_never_repeats_is_recorded_now_and_then(device):
    expected = never_repeat("cpu", 200, seed=1)

    results = never_repeat(device, 200, seed=1)

    assert results == pytest.approx(expected)
    metrics = torch_lazy.metrics()
    assert metrics["bypassed"] > metrics["recorded"] / 4


def test_a_training_loop_that_never_repeats_needs_no_sync_point_for_that(device):
    def train(where):
        generator = torch.Generator().manual_seed(7)
        weight = torch.ones(4, device=where, requires_grad=True)
        for _ in range(200):
            y = weight
            for choice in torch.randint(0, 3, (20,), generator=generator).tolist():
                y = [lambda y: y * 0.5, lambda y: y.tanh(), lambda y: y + 0.1][choice](y)
            y.sum().backward()
            with torch.no_grad():
                weight -= 0.1 * weight.grad
            weight.grad = None
        return weight.detach().cpu()

    expected = train("cpu")

    trained = train(device)

    torch.testing.assert_close(trained, expected)
    assert bypassed() > torch_lazy.metrics()["recorded"] / 4


def test_what_repeats_again_is_deferred_after_that(device):
    never_repeat(device, 200, seed=2)
    x = torch.arange(64.0).to(device)

    def program():
        y = x
        for _ in range(50):
            y = y * 0.5 + 1
        return y.sum().item()

    for _ in range(64):
        program()
    torch_lazy.wait_for_compiles()
    for _ in range(8):
        program()

    assert torch_lazy.metrics()["windows"].get("hot", 0) >= 8


def test_a_training_step_that_repeats_bypasses_nothing(device):
    model = torch.nn.Linear(4, 4).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for _ in range(20):
        model(torch.ones(2, 4).to(device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch_lazy.synchronize()

    assert bypassed() == 0


def test_nothing_is_bypassed_under_deterministic_algorithms(device):
    torch.use_deterministic_algorithms(True)
    try:
        never_repeat(device, 200, seed=3)
    finally:
        torch.use_deterministic_algorithms(False)

    assert bypassed() == 0


def test_nothing_is_bypassed_where_windows_are_profiled(device):
    never_repeat(device, 200, seed=4)
    torch_lazy.reset_metrics()

    with torch_lazy.profile():
        never_repeat(device, 20, seed=5)

    assert bypassed() == 0


def test_an_error_of_a_bypassed_operation_is_eagers(device):
    never_repeat(device, 200, seed=6)
    x, y = torch.ones(3).to(device), torch.ones(4).to(device)
    torch_lazy.reset_metrics()

    errors = set()
    for _ in range(20):  # most bypass the tape
        torch_lazy.synchronize()
        with pytest.raises(RuntimeError) as raised:
            x @ y
        errors.add(str(raised.value))

    with pytest.raises(RuntimeError) as expected:
        torch.ones(3) @ torch.ones(4)
    assert errors == {str(expected.value)}
    assert bypassed() > 0


def test_a_loop_of_small_windows_computes_the_same_whichever_way_wins(device):
    x = torch.zeros(3).to(device)
    view, read = x[1:], []

    for step in range(3000):
        x.add_(1)
        view.mul_(step % 3)
        read.append(x.max().item())

    x = torch.zeros(3)
    view, expected = x[1:], []
    for step in range(3000):
        x.add_(1)
        view.mul_(step % 3)
        expected.append(x.max().item())
    assert read == expected
