"""Matrix products: large ones, maybe another library's than eager's; small ones in kernels."""

import pytest
import torch
import torch.nn.functional as F
from behaviour import hot


def train(device, steps=30):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(320, 320), torch.nn.ReLU(), torch.nn.Linear(320, 320)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(320, 320, generator=torch.Generator().manual_seed(1)).to(device)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if device == "lazy":
            torch.lazy.wait_for_compiles()
    return torch.tensor(losses)


def test_training_on_large_products_follows_the_cpu():
    torch.testing.assert_close(train("lazy"), train("cpu"), rtol=1e-5, atol=1e-6)


def expect_eagers_bits():
    x = torch.randn(300, 320)
    y = x.to("lazy")
    for _ in range(100):
        product = (y @ y.t()).cpu()
        torch.lazy.wait_for_compiles()

        assert torch.equal(product, x @ x.t())


def test_without_onednn_products_are_eagers_bit_for_bit():
    with torch.backends.mkldnn.flags(enabled=False):
        expect_eagers_bits()


def test_deterministic_products_are_eagers_bit_for_bit():
    torch.use_deterministic_algorithms(True)
    try:
        expect_eagers_bits()
    finally:
        torch.use_deterministic_algorithms(False)


def on_device(function, *arguments):
    """What the function returns of lazy tensors once its window is compiled."""
    return hot(function, *[argument.to("lazy") for argument in arguments]).cpu()


SMALL = [(1, 3, 4), (4, 8, 16), (5, 40, 7), (16, 16, 16), (300, 8, 3), (2, 200, 300), (7, 300, 1)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("sizes", SMALL, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_small_products_are_eagers(sizes, transposed, dtype):
    rows, inner, columns = sizes
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(rows, inner, generator=generator).mul(3).to(dtype)
    b = torch.randn(columns, inner, generator=generator).mul(3).to(dtype)
    bias = torch.randn(columns, generator=generator).mul(3).to(dtype)
    if not transposed:
        b = b.t().contiguous().t()

    def step(a, b, bias):
        return torch.addmm(bias, a, b.t()).clamp_min(-1)

    # What is summed reaches 3 * 3 times a few.
    rounding = torch.finfo(dtype).eps * 9 if dtype.is_floating_point else 0
    torch.testing.assert_close(
        on_device(step, a, b, bias), step(a, b, bias), rtol=rounding, atol=rounding * inner
    )


def test_small_products_in_a_row_are_eagers():
    """Of equal sizes: each reads what the one before has summed, at other elements than its own."""
    x, w = torch.randn(6, 6), torch.randn(6, 6) / 3

    def step(x, w):
        for _ in range(5):
            x = torch.tanh(x @ w.t() + x)
        return x

    torch.testing.assert_close(on_device(step, x, w), step(x, w))


def test_a_factor_of_zero_ignores_what_is_not_a_number():
    a, b, bias = torch.randn(3, 4), torch.randn(4, 5), torch.full((3, 5), float("nan"))

    def step(a, b, bias):
        return torch.addmm(bias, a, b, beta=0) + 1

    torch.testing.assert_close(on_device(step, a, b, bias), step(a, b, bias))


def test_small_products_are_kernels():
    a, b = torch.randn(4, 8, device="lazy"), torch.randn(8, 16, device="lazy")

    hot(lambda: torch.relu(a @ b))
    with torch.lazy.profile() as profile:
        result = torch.relu(a @ b)
        torch.lazy.synchronize()
    steps = [step.name for step in profile.summary.steps]

    assert result.shape == (4, 16)
    assert steps == ["kernel_mul_sum_maximum"]
