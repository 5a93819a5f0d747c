"""Sparse tensors of the device, in coordinate form: what gradients of embeddings are."""

from __future__ import annotations

import pytest
import torch
from behaviour import run_script, same, wait_for_compiles
from torch import nn

pytestmark = [
    pytest.mark.recording,
    # PyTorch says once that it does not look at the indices of sparse tensors.
    pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning"),
]

INDICES = [[0, 1, 1, 1], [2, 0, 2, 2]]  # the last two are one element


def make(device: str) -> torch.Tensor:
    values = torch.tensor([3.0, 4.0, 5.0, 6.0], device=device)
    return torch.sparse_coo_tensor(torch.tensor(INDICES, device=device), values, (2, 3))


def plain(tensor: torch.Tensor) -> object:
    """What an observer sees of a sparse or strided tensor, on the CPU."""
    if tensor.layout == torch.strided:
        return tensor.detach().cpu()
    parts = [part.detach().cpu().contiguous() for part in (tensor._indices(), tensor._values())]
    return (*parts, tensor.shape, tensor.is_coalesced(), tensor.sparse_dim(), tensor.dense_dim())


OPERATORS = {
    "to_dense": lambda s, d: s.to_dense(),
    "coalesce": lambda s, d: s.coalesce(),
    "clone": lambda s, d: s.clone(),
    "double": lambda s, d: s.double(),
    "transpose": lambda s, d: s.t(),
    "permute": lambda s, d: s.permute(1, 0),
    "unsqueeze": lambda s, d: s.unsqueeze(0),
    "stack": lambda s, d: torch.stack([s, s]),
    "times a number": lambda s, d: s * 2,
    "times a number in place": lambda s, d: s.mul_(3),
    "zeroed": lambda s, d: s.zero_(),
    "plus itself": lambda s, d: s + s,
    "plus itself in place": lambda s, d: s.add_(s),
    "plus a strided one": lambda s, d: d + s,
    "added to a strided one": lambda s, d: d.add_(s, alpha=2),
    "product": lambda s, d: torch.sparse.mm(s, d.t()),
    "sum over a dimension": lambda s, d: torch.sparse.sum(s, 0),
    "mask": lambda s, d: d.sparse_mask(s.coalesce()),
    "zeros_like": lambda s, d: torch.zeros_like(s),
    "to_sparse": lambda s, d: d.to_sparse(),
    "to_sparse with dense dimensions": lambda s, d: d.to_sparse(1),
    "new, empty": lambda s, d: s.new(),
    "new of a size": lambda s, d: s.new(torch.Size([4])),
    "new of sizes": lambda s, d: s.new(4, 2),
    "new of parts": lambda s, d: s.new(s._indices(), s._values(), (4, 4)),
}


@pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS.keys())
def test_an_operator_computes_what_the_cpus_does(operator):
    def run(device):
        # Pending on the device when the operator reads it.
        sparse, dense = make(device), torch.ones(2, 3, device=device) * 2
        result = operator(sparse, dense)
        assert result.device.type == device
        return [plain(tensor) for tensor in (result, sparse, dense)]

    for _ in range(4):
        same(run("lazy"), run("cpu"))
        wait_for_compiles()


def test_a_sparse_tensor_moves_to_the_device_and_back():
    there = make("cpu").to("lazy")

    assert there.is_lazy
    assert there.is_sparse
    same(plain(there.cpu()), plain(make("cpu")))


@pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
@pytest.mark.parametrize("derive", [torch.Tensor.coalesce, torch.Tensor.detach])
def test_a_result_shares_its_values_where_the_cpus_does(derive):
    def run(device):
        sparse = make(device).coalesce()
        derived = derive(sparse)
        sparse._values().mul_(10)
        return derived._values().tolist()

    assert run("lazy") == run("cpu") == [30, 40, 110]


OPTIMIZERS = {
    "SparseAdam": lambda p: torch.optim.SparseAdam(p, lr=0.1),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
}


@pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
@pytest.mark.parametrize("make_optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
@pytest.mark.parametrize("set_to_none", [True, False])
def test_an_embedding_trains_with_sparse_gradients(make_optimizer, set_to_none):
    def train(device):
        torch.manual_seed(0)
        embedding = nn.Embedding(10, 3, sparse=True).to(device)
        optimizer = make_optimizer(list(embedding.parameters()))
        for step in range(6):
            optimizer.zero_grad(set_to_none=set_to_none)
            embedding(torch.tensor([1, 2, 1, step], device=device)).square().sum().backward()
            optimizer.step()
            wait_for_compiles()
        assert embedding.weight.grad.is_sparse
        return embedding.weight.detach().cpu()

    torch.testing.assert_close(train("lazy"), train("cpu"))


@pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_the_gradient_of_a_bag_of_embeddings(mode, sparse):
    def gradient(device):
        torch.manual_seed(0)
        bag = nn.EmbeddingBag(10, 3, sparse=sparse, mode=mode).to(device)
        bag(torch.tensor([[1, 2], [1, 4]], device=device)).square().sum().backward()
        assert bag.weight.grad.is_sparse == sparse
        return bag.weight.grad.to_dense().cpu()

    for _ in range(4):
        torch.testing.assert_close(gradient("lazy"), gradient("cpu"))
        wait_for_compiles()


@pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
def test_the_gradient_of_a_sparse_product():
    def gradients(device):
        sparse = make(device).coalesce().requires_grad_()
        dense = torch.ones(3, 2, device=device, requires_grad=True)
        torch.sparse.mm(sparse, dense).square().sum().backward()
        return sparse.grad.to_dense().cpu(), dense.grad.cpu()

    for _ in range(4):
        torch.testing.assert_close(gradients("lazy"), gradients("cpu"))
        wait_for_compiles()


@pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
def test_it_has_no_address(device):
    with pytest.raises(
        RuntimeError, match="Cannot access data pointer of Tensor that doesn't have"
    ):
        torch.eye(3, device=device).to_sparse().data_ptr()


@pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
def test_sparse_adam_warns_of_nothing():
    script = """
import warnings
import torch
warnings.simplefilter("error")
embedding = torch.nn.Embedding(5, 2, sparse=True).to("lazy")
optimizer = torch.optim.SparseAdam(embedding.parameters())
embedding(torch.tensor([1]).to("lazy")).sum().backward()
optimizer.step()
print("stepped")
"""

    assert run_script(script).stdout == "stepped\n"
