"""Kinds of tensors."""

from __future__ import annotations

import torch


def sparse_coordinates(device: str):
    """Sparse tensors in coordinate form: products, sums, gradients"""
    x = torch.eye(3).to(device).to_sparse()
    return [(x * 2).to_dense(), torch.sparse.mm(x, torch.ones(3, 2).to(device))]


def sparse_compressed(device: str):
    """Compressed sparse tensors, CSR, CSC, BSR and BSC: products, conversions, gradients"""
    x = torch.eye(4).to(device).to_sparse_csr().requires_grad_()
    y = x @ torch.ones(4, 2).to(device)
    y.sum().backward()
    others = [x.detach().to_sparse_csc(), x.detach().to_sparse_bsr((2, 2))]
    return [y.detach(), x.grad, *((other * 2).to_dense() for other in others)]


def jagged(device: str):
    """Nested tensors, jagged (`layout=torch.jagged`)"""
    nested = torch.nested.nested_tensor(
        [torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged, device=device
    )
    return [(row * 2) for row in nested.unbind()]


def nested(device: str):
    """Nested tensors, strided"""
    made = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], device=device)
    return torch.nested.to_padded_tensor(made.softmax(-1) * 2, 0.0)


def quantized(device: str):
    """Quantized tensors, and modules of `torch.ao.quantization`"""
    torch.manual_seed(0)
    x = torch.quantize_per_tensor(torch.arange(4.0).to(device), 0.1, 0, torch.qint8)
    linear = torch.nn.Sequential(torch.nn.Linear(4, 2))
    dynamic = torch.ao.quantization.quantize_dynamic(linear).to(device)
    return [x.int_repr(), dynamic(x.dequantize()[None])]


def fake_quantized(device: str):
    """Fake quantization, as quantization-aware training uses it"""
    x = torch.linspace(-1, 1, 5).to(device).requires_grad_()
    y = torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)
    y.sum().backward()
    return [y.detach(), x.grad]


def masked(device: str):
    """`torch.masked`"""
    x = torch.masked.masked_tensor(
        torch.arange(4.0).to(device), torch.tensor([True, False, True, True]).to(device)
    )
    return x.sum().get_data()


def subclass(device: str):
    """Subclasses of `torch.Tensor` and `__torch_function__`"""

    class Metric(torch.Tensor):
        pass

    x = torch.arange(3.0).to(device).as_subclass(Metric)
    y = (x * 2).sum()
    return [type(y).__name__, y.as_subclass(torch.Tensor)]


def zero_size(device: str):
    """Tensors without elements, and without dimensions"""
    x = torch.empty(0, 3).to(device)
    return [x.sum(), torch.cat([x, torch.ones(1, 3).to(device)]), torch.tensor(2.0).to(device)]


def linear_algebra(device: str):
    """`torch.linalg`: `solve`, `eigh`, `qr`, `svd`, with gradients"""
    torch.manual_seed(0)
    a = torch.randn(4, 4, dtype=torch.double)
    a = (a @ a.t() + 4 * torch.eye(4)).to(device).requires_grad_()
    values = torch.linalg.eigvalsh(a)
    solved = torch.linalg.solve(a, torch.ones(4, dtype=torch.double).to(device))
    (values.sum() + solved.sum()).backward()
    return [values.detach(), a.grad, torch.linalg.svdvals(a.detach())]


def flex_attention(device: str):
    """`flex_attention`"""
    from torch.nn.attention.flex_attention import flex_attention as attention

    torch.manual_seed(0)
    q = torch.randn(1, 2, 16, 8).to(device)
    return attention(q, q, q)


def fused_attention(device: str):
    """`scaled_dot_product_attention`, causal, with gradients"""
    torch.manual_seed(0)
    q = torch.randn(1, 2, 6, 8).to(device).requires_grad_()
    torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    return q.grad
