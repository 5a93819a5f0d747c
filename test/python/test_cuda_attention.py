"""scaled_dot_product_attention of lazy tensors on CUDA, by the kernels that CUDA chooses.

The device that test/fake_cuda makes has no such kernels: here they are made of the CPU's, and say
that they were called. All in child processes."""

from __future__ import annotations

import pytest
from test_cuda_scripts import printed

# By PyTorch's numbers of kinds.
_KINDS = {"flash": 1, "efficient": 2, "cudnn": 3}

_KERNELS = """
import math, sys, warnings
warnings.filterwarnings("ignore")
called = []

def weights(q, k, bias, causal, scale):
    products = q @ k.transpose(-1, -2) * scale
    if causal:
        products = products.masked_fill(torch.ones_like(products).tril() == 0, -math.inf)
    return products if bias is None else products + bias

def forward(name, q, k, v, bias=None, lse=True, dropout_p=0.0, causal=False, scale=None):
    called.append((name, dropout_p) if bias is None else (name, tuple(bias.stride())))
    products = weights(q, k, bias, causal, scale or 1 / math.sqrt(q.size(-1)))
    state = q.new_zeros(2, dtype=torch.long)
    return products.softmax(-1) @ v, products.logsumexp(-1), state, state.clone()

def backward(name, grad, q, k, v, bias, causal, scale):
    called.append(name + " backward")
    scale = scale or 1 / math.sqrt(q.size(-1))
    p = weights(q, k, bias, causal, scale).softmax(-1)
    of_weights = grad @ v.transpose(-1, -2)
    of_products = p * (of_weights - (of_weights * p).sum(-1, True)) * scale
    return of_products @ k, of_products.transpose(-1, -2) @ q, p.transpose(-1, -2) @ grad

def packed(out, lse, seed, offset, q, k):
    return out, lse, None, None, q.size(2), k.size(2), seed, offset, None

def flash(q, k, v, p=0.0, causal=False, debug=False, *, scale=None):
    return packed(*forward("flash", q, k, v, None, True, p, causal, scale), q, k)
def cudnn(q, k, v, bias, lse, p=0.0, causal=False, debug=False, *, scale=None):
    return packed(*forward("cudnn", q, k, v, bias, lse, p, causal, scale), q, k)
def efficient(q, k, v, bias, lse, p=0.0, causal=False, *, scale=None):
    return forward("efficient", q, k, v, bias, lse, p, causal, scale)
def flash_backward(g, q, k, v, o, lse, cq, ck, mq, mk, p, causal, *rng, scale=None):
    assert (mq, mk) == (q.size(2), k.size(2))
    return backward("flash", g, q, k, v, None, causal, scale)
def cudnn_backward(g, q, k, v, o, lse, s, t, bias, cq, ck, mq, mk, p, causal, *, scale=None):
    assert (mq, mk) == (q.size(2), k.size(2))
    return backward("cudnn", g, q, k, v, bias, causal, scale)
def efficient_backward(g, q, k, v, bias, o, lse, s, t, p, mask, causal=False, *, scale=None):
    return *backward("efficient", g, q, k, v, bias, causal, scale), None

library = torch.library.Library("aten", "IMPL")
library.impl("_fused_sdp_choice", lambda *a, **n: KIND, "CUDA")
for name in ("flash", "cudnn", "efficient"):
    full = f"_scaled_dot_product_{name}_attention"
    library.impl(full, globals()[name], "CUDA")
    library.impl(full + "_backward", globals()[name + "_backward"], "CUDA")

torch.manual_seed(0)
def heads(features=8):
    q, k, v = (torch.randn(2, 3, 5, features) for _ in range(3))
    return [t.to("lazy").requires_grad_() for t in (q, k, v)]

def agree(mine, theirs):
    return all(torch.allclose(a.cpu(), b, atol=1e-5) for a, b in zip(mine, theirs))

def step(inputs, **arguments):
    out = F.scaled_dot_product_attention(*inputs, **arguments)
    return out, *torch.autograd.grad(out.square().sum(), inputs)

def on_cpu(inputs, **arguments):
    arguments = {n: a.cpu() if isinstance(a, torch.Tensor) else a for n, a in arguments.items()}
    return step([t.detach().cpu().requires_grad_() for t in inputs], **arguments)

def compare(inputs, **arguments):
    hot(lambda: step(inputs, **arguments))
    called.clear()
    mine = step(inputs, **arguments)
    assert not called  # at the call
    torch.lazy.synchronize()
    print(called, torch.lazy.metrics()["eager"])
    print(agree(mine, on_cpu(inputs, **arguments)))
"""


def said(script: str, kind: str) -> list[str]:
    return printed(_KERNELS.replace("KIND", str(_KINDS[kind])) + script)


@pytest.mark.parametrize("kind", _KINDS)
def test_a_fused_kernel_and_its_gradient_are_part_of_a_window(kind):
    assert said("compare(heads(), is_causal=True)", kind) == [
        f"[('{kind}', 0.0), '{kind} backward'] 0",
        "True",
    ]


def test_flash_attention_gets_features_in_multiples_of_eight():
    assert said("compare(heads(features=5))", "flash") == [
        "[('flash', 0.0), 'flash backward'] 0",
        "True",
    ]


@pytest.mark.parametrize(("kind", "strides"), [("cudnn", "(5, 1)"), ("efficient", "(0, 0, 8, 1)")])
def test_a_boolean_mask_is_added_as_numbers_that_the_kernel_takes(kind, strides):
    script = "compare(heads(), attn_mask=torch.ones(5, 5).tril().bool().to('lazy'))"

    assert said(script, kind) == [f"[('{kind}', {strides}), '{kind} backward'] 0", "True"]


@pytest.mark.parametrize("kind", _KINDS)
def test_attention_that_drops_out_runs_at_the_call_and_its_gradient_in_a_window(kind):
    script = """
inputs = heads()
hot(lambda: step(inputs, dropout_p=0.5), runs=8)
called.clear()
out, *gradients = step(inputs, dropout_p=0.5)
print(called)
torch.lazy.synchronize()
print(called[1:], agree([out, *gradients], on_cpu(inputs)))  # these kernels drop nothing
"""

    assert said(script, kind) == [f"[('{kind}', 0.5)]", f"['{kind} backward'] True"]


def test_a_seed_that_a_kernel_left_on_the_host_is_given_to_its_gradient():
    script = """
seeds = []
def efficient(q, k, v, bias, lse, p=0.0, *rest, **scale):
    out, sums, *_ = forward("efficient", q, k, v, bias, lse, p, *rest, **scale)
    return out, sums, torch.tensor(len(seeds)), torch.tensor(4)
def efficient_backward(g, q, k, v, bias, o, lse, s, t, p, *rest, **scale):
    seeds.append((s.device.type, s.item(), t.item()))
    return *backward("efficient", g, q, k, v, bias, False, None), None
"""
    kernels = _KERNELS.replace("library = torch", script + "\nlibrary = torch", 1)
    kernels = kernels.replace("KIND", "2")
    run = """
inputs = heads()
for _ in range(6):
    step(inputs, dropout_p=0.5)
    torch.lazy.synchronize()
    torch.lazy.wait_for_compiles()
print(seeds)
"""

    assert printed(kernels + run) == [str([("cpu", i, 4) for i in range(6)])]


def test_a_mask_of_another_dtype_is_refused_as_by_pytorch():
    script = """
mask = torch.ones(5, 5, dtype=torch.long)
for inputs, mask in ((heads(), mask.to("lazy")), ([t.detach().cpu() for t in heads()], mask)):
    try:
        F.scaled_dot_product_attention(*inputs, attn_mask=mask)
    except RuntimeError as error:
        print(str(error).splitlines()[0])
"""

    lines = said(script, "efficient")

    assert lines[0] == lines[1]
    assert lines[0].startswith("Expected attn_mask dtype to be bool or float")


def test_without_gradients_no_logarithms_of_sums_are_asked_for():
    script = """
asked = []
def efficient(q, k, v, bias, lse, *rest, **scale):
    asked.append(lse)
    return forward("efficient", q, k, v, bias, lse, *rest, **scale)
"""
    kernels = _KERNELS.replace("library = torch", script + "\nlibrary = torch", 1)
    kernels = kernels.replace("KIND", "2")
    run = (
        "F.scaled_dot_product_attention(*(t.detach() for t in heads())).sum().item(); print(asked)"
    )

    assert printed(kernels + run) == ["[False]"]
