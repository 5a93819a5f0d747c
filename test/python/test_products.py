"""Matrix products: large ones, maybe another library's than eager's; small ones in kernels."""

import pytest
import torch
from behaviour import hot, losses_of_training


def train(device, steps=30):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(320, 320), torch.nn.ReLU(), torch.nn.Linear(320, 320)
    )
    x = torch.randn(320, 320, generator=torch.Generator().manual_seed(1))
    return losses_of_training(device, model, x, lr=0.1, steps=steps)


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
SMALL += [(64, 128, 10), (33, 70, 50)]  # of which a kernel computes several rows together


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


FLOATING = {
    "baddbmm": lambda a, b, c: torch.baddbmm(c, a, b, beta=0.5, alpha=2),
    "mv": lambda a, b, c: torch.mv(a[0], b[1, :, 0]).exp(),
}
PRODUCTS = {
    "bmm": lambda a, b, c: torch.bmm(a, b) * 2,
    "dot": lambda a, b, c: torch.dot(a[0, 0], b[1, :, 0]) + c,
    "addmm": lambda a, b, c: torch.addmm(c[0], a[0], b[0], beta=3, alpha=-1),
    "twice": lambda a, b, c: torch.mm(a[0], a[0].t()) - a[0].t().mm(a[0])[0, 0],
}


CASES = [
    (name, dtype)
    for dtype in (torch.float32, torch.float16, torch.int8, torch.int32)
    for name in (FLOATING | PRODUCTS if dtype.is_floating_point else PRODUCTS)
]


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_batches_and_vectors_are_eagers(name, dtype):
    function = (FLOATING | PRODUCTS)[name]
    generator = torch.Generator().manual_seed(0)
    shapes = (5, 6, 20), (5, 20, 7), (5, 6, 7)
    a, b, c = (torch.randn(*shape, generator=generator).mul(2).to(dtype) for shape in shapes)

    actual, expected = on_device(function, a, b, c), function(a, b, c)

    rounding = torch.finfo(dtype).eps * 8 if dtype.is_floating_point else 0
    torch.testing.assert_close(actual, expected, rtol=rounding, atol=rounding * 20)


def test_a_product_may_be_written_over_what_it_reads():
    x, w = torch.randn(6, 6), torch.randn(6, 6) / 3

    def step(x, w):
        y = x.clone()
        y.copy_(y @ w)
        return y

    torch.testing.assert_close(on_device(step, x, w), step(x, w))


def steps_of(function, *arguments):
    """The steps of the function's hot window."""
    lazy = [argument.to("lazy") for argument in arguments]
    hot(function, *lazy)
    with torch.lazy.profile() as profile:
        result = function(*lazy)
        torch.lazy.synchronize()
    assert result.device.type == "lazy"
    return {step.name: step.runs for step in profile.summary.steps}


@pytest.mark.on_cpu("products are cuBLAS's on CUDA")
def test_each_of_many_products_in_a_row_is_a_kernel():
    """Of equal sizes: each reads what the one before has summed, at other elements than its own."""
    x, w = torch.randn(6, 6), torch.randn(6, 6) / 3

    def step(x, w):
        for _ in range(9):
            x = x @ w.t() + 1
        return x

    torch.testing.assert_close(on_device(step, x, w), step(x, w))
    # All of them read one copy of the weight, with its columns side by side.
    assert steps_of(step, x, w) == {"kernel_clone": 1, "kernel_mul_sum_add": 9}


@pytest.mark.on_cpu("products are cuBLAS's on CUDA")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_small_product_is_one_kernel_with_what_reads_it(dtype):
    a, b = torch.randn(4, 8).to(dtype), torch.randn(8, 16).to(dtype)

    assert len(steps_of(lambda a, b: torch.relu(a @ b), a, b)) == 1


def test_a_factor_of_zero_ignores_what_is_not_a_number():
    a, b, bias = torch.randn(3, 4), torch.randn(4, 5), torch.full((3, 5), float("nan"))

    def step(a, b, bias):
        return torch.addmm(bias, a, b, beta=0) + 1

    torch.testing.assert_close(on_device(step, a, b, bias), step(a, b, bias))
