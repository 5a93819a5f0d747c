"""Operations whose replay is easily different from their first run: each is compared in every run
until it is hot, and after."""

from __future__ import annotations

import math

import pytest
import torch
from behaviour import each_run, hot, same, same_on, synchronize

import torch_lazy


def test_a_gradient_of_zeros_without_memory(device):
    def program(where):
        x = torch.arange(4.0, device=where).requires_grad_()
        torch.sgn(x).sum().backward()
        return (x.grad + 0).tolist()

    assert each_run(program, device) == [program("cpu")] * 4


def test_a_list_of_outputs_that_is_resized(device):
    def program(where):
        x = torch.arange(6.0, device=where)
        outputs = [torch.empty(0, device=where) for _ in range(3)]
        torch.unbind_copy(x.view(3, 2), out=outputs)
        return [(tuple(o.shape), o.tolist()) for o in outputs]

    assert each_run(program, device) == [program("cpu")] * 4


def test_a_tensor_that_is_input_and_resized_output(device):
    def program(where):
        x = torch.ones(4, device=where) + 1
        torch.sum(x, 0, out=x)
        return tuple(x.shape), x.tolist()

    assert each_run(program, device) == [program("cpu")] * 4


@pytest.mark.on_cpu("the fake CUDA device resizes outputs of operators that succeed")
def test_an_output_that_was_resized_by_a_failing_operation(device):
    def program(where):
        x, out = torch.ones(4, device=where), torch.empty(0, device=where)
        with pytest.raises(IndexError):
            torch.index_select(x, 0, torch.tensor([0, 1, 9], device=where), out=out)
        return tuple(out.shape), tuple((out + 1).shape)

    assert each_run(program, device) == [program("cpu")] * 4


@pytest.mark.recording
def test_an_operation_that_raises_leaves_nothing_in_the_window(device):
    x = torch.arange(4.0).to(device)
    hot(lambda t: t * 3 + t, x)

    with pytest.raises(RuntimeError):
        x.view(3)
    product = x * 3
    rest = product - 1

    assert product.tolist() == [0, 3, 6, 9]
    assert rest.tolist() == [-1, 2, 5, 8]


@pytest.mark.on_cpu("which of two zeros is greater is each device's own matter")
@pytest.mark.parametrize(
    "bounded",
    [
        torch.relu,
        torch.nn.functional.relu6,
        lambda x: x.clamp(min=0.0),
        lambda x: x.clamp(max=-0.0),
        lambda x: x.clamp(-0.0, 1.0),
        lambda x: x.clamp(torch.zeros_like(x), torch.ones_like(x)),
    ],
)
def test_zeros_keep_their_sign_at_a_bound_of_zero(device, bounded):
    host = torch.tensor([-0.0, 0.0, -1.0, 2.0, float("nan")]).repeat(16 * 8)

    results = each_run(lambda: 1 / bounded(host.to(device) * 1), runs=4)

    for result in results:
        same(result.cpu(), 1 / bounded(host * 1))


def test_shifts_in_place_are_compiled(device):
    def shifted():
        x = torch.arange(20, device=device)
        x <<= 3
        x >>= torch.arange(20, device=device) % 3
        return x

    not_compiled = torch_lazy.metrics()["fallbacks"].get("window not compiled", 0)

    result = hot(shifted)

    assert result.tolist() == [(i << 3) >> (i % 3) for i in range(20)]
    assert torch_lazy.metrics()["fallbacks"].get("window not compiled", 0) == not_compiled


def test_steps_that_read_a_row_and_a_column_of_the_step_before_are_compiled(device):
    """As one kernel they would be computed anew for each row and column."""
    distances = torch.rand(24, 24)

    def shortest_paths(d):
        for k in range(24):
            d = torch.minimum(d, d[:, k : k + 1] + d[k : k + 1])
        return d

    on_device = distances.to(device)
    not_compiled = torch_lazy.metrics()["fallbacks"].get("window not compiled", 0)

    result = hot(shortest_paths, on_device)

    same(result.cpu(), shortest_paths(distances))
    assert torch_lazy.metrics()["fallbacks"].get("window not compiled", 0) == not_compiled


def test_integers_beyond_int64(device):
    filled = torch.full((2,), 2**63 + 5, dtype=torch.uint64, device=device)

    assert filled.tolist() == [2**63 + 5] * 2


@pytest.mark.recording
def test_slices_of_a_shuffled_cpu_index_become_one_trace(device):
    x, order = torch.arange(32.0).to(device), torch.randperm(32)
    for i in range(4):
        result = x[order[i * 8 : (i + 1) * 8]].sum()
        synchronize()
        torch_lazy.wait_for_compiles()
    torch_lazy.reset_metrics()

    result = x[order[:8]].sum()
    synchronize()

    assert torch_lazy.metrics()["windows"] == {"hot": 1}
    same(result.cpu(), torch.arange(32.0)[order[:8]].sum())


@pytest.mark.recording
def test_another_thread_that_synchronizes_does_not_disturb_a_recording(device):
    import threading

    stop = threading.Event()

    def flush():
        while not stop.is_set():
            torch_lazy.synchronize()

    other = threading.Thread(target=flush)
    other.start()
    try:
        x = torch.ones(64, 64).to(device) / 64
        for _ in range(300):
            y = (x @ x).cos().sin().sum()
        assert torch.isfinite(y).item()
    finally:
        stop.set()
        other.join()


def test_a_bool_tensor_filled_with_a_fraction_is_true(device):
    def program(where):
        flags = torch.tensor([False, True, False], device=where)
        flags[:2] = -0.75
        return flags.tolist(), torch.full((2,), 0.25, dtype=torch.bool, device=where).tolist()

    assert each_run(program, device) == [program("cpu")] * 4


def test_a_limit_beyond_int64(device):
    def program(where):
        return torch.ones(3, device=where).clamp_(max=2**63).tolist()

    assert each_run(program, device) == [program("cpu")] * 4


def test_a_foreach_operator_whose_numbers_are_a_tensor_of_the_cpu(device):
    def program(where):
        tensors = [torch.ones(3, device=where), torch.ones(2, device=where)]
        torch._foreach_addcmul_(tensors, tensors, tensors, torch.tensor([2.0, 3.0]))
        return [t.tolist() for t in tensors]

    assert each_run(program, device) == [program("cpu")] * 4


def test_a_loss_that_overflows_in_half_precision(device):
    def program(where):
        x = torch.tensor([12.0, 0.5], dtype=torch.float16, device=where)
        target = torch.tensor([-1.0, 1.0], dtype=torch.float16, device=where)
        return torch.nn.functional.soft_margin_loss(x, target, reduction="none").tolist()

    assert program("cpu")[0] == float("inf")
    assert each_run(program, device) == [program("cpu")] * 4


@pytest.mark.parametrize(
    ("dtype", "at", "towards"), [(torch.float16, -5.0, 2.1), (torch.bfloat16, -0.09, 100.0)]
)
def test_a_gradient_that_rounds_after_each_step(device, dtype, at, towards):
    def program(where):
        x = torch.tensor([at, 0.5], dtype=dtype, device=where, requires_grad=True)
        target = torch.tensor([towards, 1.0], dtype=dtype, device=where)
        torch.nn.functional.soft_margin_loss(x, target).backward()
        return x.grad.tolist()

    assert each_run(program, device) == [program("cpu")] * 4


def test_results_beside_a_list_that_nothing_reads_stay_in_their_places(device):
    def unscale(on):
        gradient, found = torch.full((), 3.0, device=on), torch.zeros((), device=on)
        torch._amp_foreach_non_finite_check_and_unscale_([gradient], found, found + 0.5)
        gradient.fill_(torch.inf)
        return gradient + 0, found + 0

    same_on(device, unscale)


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8])
def test_any_and_all_over_no_dimensions_reduce_nothing(device, name, dtype):
    x = torch.tensor([3, 0, 1]).to(dtype)

    def act(x):
        return getattr(torch, name)(x, dim=[])

    same(hot(act, x.to(device)), act(x))


@pytest.mark.parametrize("eps", [0.75, math.nan])
def test_logit_by_bounds_in_the_wrong_order(device, eps):
    x = torch.tensor([0.1, 0.5, 0.9])

    result = hot(torch.logit, x.to(device), eps).cpu()

    torch.testing.assert_close(result, torch.logit(x, eps))


@pytest.mark.on_cpu("ATen's kernels for CUDA pass the gradient on")
def test_no_gradient_passes_hardtanh_where_the_input_is_no_number():
    def gradient(device):
        x = torch.full((64,), math.nan, device=device).requires_grad_()
        torch.nn.functional.hardtanh(x).sum().backward()
        return x.grad

    same(hot(gradient, "lazy"), gradient("cpu"))


@pytest.mark.on_cpu("CUDA's kernels compute it in float")
@pytest.mark.parametrize("x", [torch.tensor([1e20, -1e20] * 40), 1e5 + torch.arange(99.0) % 3])
def test_a_variance_is_computed_in_double(x):
    torch.testing.assert_close(hot(torch.std, x.to("lazy")).cpu(), x.std(), rtol=3e-7, atol=0)


def test_a_sum_over_one_element_of_negative_zeros_is_positive(device):
    x = torch.full((1, 7), -0.0)

    assert not hot(lambda x: x.sum(0), x.to(device)).signbit().any()


@pytest.mark.on_cpu("ATen's kernels for CUDA pass the gradient on")
@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_the_gradient_of_an_elu_is_no_number_where_the_input_is_none(name):
    def gradient(device):
        x = torch.tensor([math.nan, 1, -1, 2] * 16, device=device).requires_grad_()
        getattr(torch.nn.functional, name)(x).sum().backward()
        return x.grad

    same(hot(gradient, "lazy"), gradient("cpu"))


@pytest.mark.parametrize("numbers", [{"beta": False}, {"alpha": False}])
def test_a_factor_of_false_ignores_what_it_would_multiply(device, numbers):
    def product(ignored, of_ones):
        other = torch.ones_like(ignored)
        added, left = (ignored, other) if "beta" in numbers else (other, ignored)
        return torch.addmm(added, left, of_ones, **numbers)

    ignored, ones = torch.full((2, 2), math.nan), torch.ones(2, 2)

    result = hot(product, ignored.to(device), ones.to(device))

    same(result, product(ignored, ones))


@pytest.mark.parametrize("between", [torch.uint16, torch.uint32, torch.uint64])
@pytest.mark.parametrize("to", [torch.int64, torch.float64])
def test_negative_numbers_wrap_in_a_cast_between_two_others(device, between, to):
    x = torch.tensor([-1, 2, -128], dtype=torch.int8)

    result = hot(lambda x: x.to(between).to(to), x.to(device))

    same(result, x.to(between).to(to))


@pytest.mark.parametrize("act", [lambda x: (x + x) * 1, lambda x: torch.cat([x, x]) / 1])
def test_one_is_no_neutral_factor_of_complex_infinities(device, act):
    x = torch.tensor([complex(0, math.inf), 1 + 2j])

    result = hot(act, x.to(device)).cpu()

    torch.testing.assert_close(result, act(x), equal_nan=True, rtol=0, atol=0)


def test_what_softshrink_makes_zero_is_positive(device):
    x = torch.linspace(-0.4, -0.1, 64)

    assert not hot(torch.nn.functional.softshrink, x.to(device)).signbit().any()


@pytest.mark.parametrize("exponent", [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
def test_powers_of_special_values(device, exponent):
    inf, nan, tiny = float("inf"), float("nan"), 1e-45  # the last has no normal reciprocal
    values = torch.tensor([0.0, -0.0, inf, -inf, nan, tiny, -tiny, 1e-40, -1e-40, -1.0, 4.0])

    same_on(device, lambda where: values.to(where) ** exponent)
