"""Composite operators that ask for the device do what they do for the CPU's tensors."""

from __future__ import annotations

import pytest
import torch
from behaviour import hot, same, same_on
from torch import nn
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence

import torch_lazy


@pytest.mark.parametrize("bidirectional", [False, True], ids=["one way", "both ways"])
@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_recurrent_modules_take_packed_sequences(device, kind, bidirectional):
    def run(where):
        torch.manual_seed(1)
        module = kind(5, 7, num_layers=2, bidirectional=bidirectional).to(where)
        batch = torch.randn(6, 4, 5).to(where)
        packed = pack_padded_sequence(batch, torch.tensor([6, 3, 5, 1]), enforce_sorted=False)
        output, lengths = pad_packed_sequence(module(packed)[0])
        output.square().sum().backward()
        return output.detach().cpu(), lengths, *[p.grad.cpu() for p in module.parameters()]

    torch.testing.assert_close(hot(lambda: run(device)), run("cpu"), rtol=1e-4, atol=1e-5)


@pytest.mark.on_cpu("cuDNN's kernels on CUDA")
def test_a_packed_module_refuses_sizes_that_are_not_its_datas(device):
    module = nn.RNN(5, 7)
    data, states = torch.randn(5, 5), torch.zeros(1, 2, 7)

    def message(where, sizes):
        parameters = [p.to(where) for p in module.parameters()]
        with pytest.raises(RuntimeError) as error:
            torch.rnn_tanh(
                data.to(where), torch.tensor(sizes), states.to(where),
                parameters, True, 1, 0.0, False, False,
            )  # fmt: skip
        return str(error.value)

    for sizes in ([2, 1, 2], [2, 2, 2], [3, 1, 1]):
        assert message(device, sizes) == message("cpu", sizes)


RECURRENT = {
    "rnn": (nn.RNN, {}),
    "relu without biases": (nn.RNN, {"nonlinearity": "relu", "bias": False}),
    "gru both ways": (nn.GRU, {"bidirectional": True}),
    "gru of batches first": (nn.GRU, {"batch_first": True, "num_layers": 2}),
    "lstm both ways": (nn.LSTM, {"bidirectional": True, "num_layers": 2}),
    "lstm without biases": (nn.LSTM, {"bias": False, "batch_first": True}),
    "lstm with projections": (nn.LSTM, {"proj_size": 3, "bidirectional": True}),
    "lstm of doubles": (nn.LSTM, {"dtype": torch.float64, "num_layers": 2}),
    "lstm of bfloat16": (nn.LSTM, {"dtype": torch.bfloat16}),
}


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_modules_are_the_cpus(device, name):
    kind, options = RECURRENT[name]
    dtype = options.get("dtype", torch.float32)

    def run(where):
        torch.manual_seed(1)
        module = kind(5, 7, **options).to(where)
        batch = torch.randn(6, 4, 5, dtype=dtype).to(where)
        output, last = module(batch)
        output.square().sum().backward()
        last = last if isinstance(last, tuple) else (last,)
        results = [output, *last, *(p.grad for p in module.parameters())]
        return [(t.detach().cpu(), t.stride()) for t in results]

    found, expected = hot(lambda: run(device)), run("cpu")

    close = (
        {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {"rtol": 1e-4, "atol": 1e-5}
    )
    for (value, strides), (expected_value, expected_strides) in zip(found, expected, strict=True):
        torch.testing.assert_close(value, expected_value, **close)
        assert strides == expected_strides


def test_an_lstm_that_runs_where_gradients_are_off_keeps_what_backward_needs(device):
    def run(where):
        torch.manual_seed(1)
        module = nn.LSTM(5, 7).to(where)
        output = module(torch.randn(6, 4, 5).to(where))[0]
        with torch.no_grad():
            total = output.sum().item()  # what is pending runs here
        output.square().sum().backward()
        return total, *[p.grad.cpu() for p in module.parameters()]

    torch.testing.assert_close(hot(lambda: run(device)), run("cpu"), rtol=1e-4, atol=1e-5)


@pytest.mark.on_cpu("CUDA's recurrent modules under autocast are cuDNN's")
@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_a_recurrent_module_under_autocast_takes_what_a_linear_layer_makes(device, kind):
    def run(where):
        torch.manual_seed(1)
        linear, module = nn.Linear(5, 5).to(where), kind(5, 7).to(where)
        with torch.autocast(where, dtype=torch.bfloat16):
            output = module(linear(torch.randn(6, 4, 5).to(where)))[0]
        output.float().square().sum().backward()
        return output.detach().cpu(), *[p.grad.cpu() for p in module.parameters()]

    torch.testing.assert_close(hot(lambda: run(device)), run("cpu"), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("run", [torch.gru, torch.lstm])
def test_a_recurrent_module_without_layers_is_refused(device, run):
    states = torch.zeros(0, 2, 4, device=device)
    hx = (states, states) if run is torch.lstm else states

    with pytest.raises(RuntimeError, match="non-empty TensorList"):
        run(torch.randn(5, 2, 3, device=device), hx, [], True, 0, 0.0, False, False, False)


def test_a_packed_sequence_moves_with_its_sizes_left_on_the_cpu(device):
    packed = pack_sequence([torch.ones(3, 2), torch.zeros(2, 2)]).to(device)

    assert packed.data.device.type == torch.device(device).type
    assert packed.batch_sizes.device.type == "cpu"
    same(packed.cpu().data, pack_sequence([torch.ones(3, 2), torch.zeros(2, 2)]).data)


@pytest.mark.on_cpu("PyTorch keeps channels_last of the CPU's tensors only")
@pytest.mark.parametrize("count", [1, 2])
def test_group_norm_and_its_gradient_keep_channels_last(device, count):
    def run(where):
        torch.manual_seed(1)
        norm = nn.GroupNorm(2, 4).to(where)
        images = torch.randn(count, 4, 3, 5).to(where).contiguous(memory_format=torch.channels_last)
        images.requires_grad_()
        normal = norm(images)
        gradients = torch.autograd.grad(normal.square().sum(), (images, norm.weight))
        return normal.detach().cpu(), *(gradient.cpu() for gradient in gradients)

    torch.func.grad(torch.sin)(torch.tensor(1.0))  # a transform that is over changes nothing
    found, expected = hot(lambda: run(device)), run("cpu")

    torch.testing.assert_close(found, expected)
    assert [t.stride() for t in found] == [t.stride() for t in expected]


@pytest.mark.on_cpu("PyTorch keeps channels_last of the CPU's tensors only")
def test_group_norm_of_channels_last_may_have_no_gradient(device):
    class WithoutGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return None

    images = torch.randn(2, 4, 3, 5).to(device).contiguous(memory_format=torch.channels_last)
    images.requires_grad_()

    WithoutGradient.apply(nn.functional.group_norm(images, 2)).sum().backward()

    assert images.grad is None


@pytest.mark.recording
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8])
def test_integers_are_counted_as_on_cuda(device, dtype):
    values = torch.tensor([0, 1, 1, 3, 4, 4, 4, 9], device=device).to(dtype)

    counts = hot(lambda: torch.histc(values, bins=5, min=0, max=4) + 0)

    assert counts.dtype == dtype
    assert counts.tolist() == [1, 2, 0, 1, 3]


def test_channels_of_no_images_are_shuffled(device):
    shuffled = torch.native_channel_shuffle(torch.ones(0, 4, 2, 2, device=device), 2)

    assert shuffled.shape == (0, 4, 2, 2)


def test_flex_attention_attends_and_has_gradients(device):
    """The CPU's has no gradients: what is expected comes from attention with the bias as mask."""
    if device == "cpu":
        pytest.skip("the CPU's has no gradients")
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 8, 4) for _ in range(3))

    def flex(where):
        inputs = [t.to(where).requires_grad_() for t in (q, k, v)]
        bias = lambda score, b, h, i, j: score + 0.1 * (i - j)  # noqa: E731
        result = flex_attention(*inputs, score_mod=bias)
        result.sum().backward()
        return [result.detach(), *(t.grad for t in inputs)]

    inputs = [t.clone().requires_grad_() for t in (q, k, v)]
    places = torch.arange(8.0)
    mask = 0.1 * (places[:, None] - places)
    expected = torch.nn.functional.scaled_dot_product_attention(*inputs, attn_mask=mask)
    expected.sum().backward()

    actual = hot(lambda: flex(device))

    for a, e in zip(actual, [expected.detach(), *(t.grad for t in inputs)], strict=True):
        torch.testing.assert_close(a.cpu(), e)


@pytest.mark.parametrize("places", [2, [1, 3]])
def test_a_tensor_of_the_device_says_where_to_split(device, places):
    def program(where):
        x = torch.arange(5.0, device=where).requires_grad_()
        parts = torch.tensor_split(x, torch.tensor(places, device=where))
        (parts[0].sum() + parts[1].pow(2).sum()).backward()
        return *parts, x.grad

    same_on(device, program)


QUANTILES = {
    "quantile": torch.quantile,
    "nanquantile": torch.nanquantile,
    "quantile into": lambda x, q: torch.quantile(x, q, out=torch.empty(2, device=x.device)),
    "nanquantile into": lambda x, q: torch.nanquantile(x, q, out=torch.empty(2, device=x.device)),
}


@pytest.mark.on_cpu("PyTorch looks at the levels on the CPU alone")
@pytest.mark.parametrize("name", QUANTILES)
@pytest.mark.parametrize("level", [-0.1, 1.5, float("nan")])
def test_a_quantile_of_a_level_out_of_range_raises_as_in_eager(device, name, level):
    def message(where):
        with pytest.raises(RuntimeError) as error:
            QUANTILES[name](
                torch.arange(4.0, device=where), torch.tensor([0.5, level], device=where)
            )
        return str(error.value)

    assert message(device) == message("cpu")


@pytest.mark.on_cpu("PyTorch looks at the levels on the CPU alone")
def test_the_levels_of_a_quantile_are_those_that_a_hot_window_has_written(device):
    x, levels = torch.arange(4.0, device=device), torch.zeros(2, device=device)

    def run(level):
        levels.fill_(level).mul_(0.5).add_(level / 2)
        return torch.quantile(x, levels).tolist()

    for _ in range(20):
        run(0.5)
    torch_lazy.wait_for_compiles()
    run(0.5)

    with pytest.raises(RuntimeError, match="q values must be in the range"):
        run(3.0)
    assert run(1.0) == [3.0, 3.0]
