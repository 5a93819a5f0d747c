"""Compressed sparse tensors of the device: in rows, in columns, and in blocks of either."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from behaviour import same, wait_for_compiles

pytestmark = [
    pytest.mark.recording,
    pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning"),
    # PyTorch says once for each layout that it is in beta state.
    pytest.mark.filterwarnings("ignore:Sparse ... tensor support is in beta:UserWarning"),
]

LAYOUTS = [torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc]
MATRIX = [[1.0, 0, 2, 0], [0, 0, 0, 3], [4, 5, 0, 0], [0, 0, 0, 6]]


def make(device: str, layout: torch.layout) -> torch.Tensor:
    """Its members are pending on the device when the first operator reads them."""
    blocks = layout in (torch.sparse_bsr, torch.sparse_bsc)
    dense = torch.tensor(MATRIX, device=device)
    sparse = dense.to_sparse(layout=layout, blocksize=(2, 2) if blocks else None)
    compressed, plain = indices(sparse)
    return torch.sparse_compressed_tensor(
        compressed * 1, plain * 1, sparse.values() * 1, sparse.shape, layout=layout
    )


def indices(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices()
    return tensor.ccol_indices(), tensor.row_indices()


def observed(tensor: torch.Tensor) -> object:
    """What an observer sees of a tensor of any layout, on the CPU."""
    if tensor.layout == torch.strided:
        return tensor.detach().cpu().clone()
    members = (
        (tensor._indices(), tensor._values())
        if tensor.layout == torch.sparse_coo
        else (*indices(tensor), tensor.values())
    )
    return (
        *(member.detach().cpu().clone() for member in members),
        *(str(tensor.layout), tensor.shape, tensor.dtype, tensor.requires_grad),
    )


OPERATORS = {
    "to_dense": lambda s, d: s.to_dense(),
    "to_sparse": lambda s, d: s.to_sparse(),
    "to rows": lambda s, d: s.to_sparse_csr(),
    "to blocks": lambda s, d: s.to_sparse_bsr((2, 2)),
    "clone": lambda s, d: s.clone(),
    "double": lambda s, d: s.double(),
    "detach": lambda s, d: s.detach(),
    "transpose": lambda s, d: s.transpose(0, 1),
    "select": lambda s, d: s[1],
    "times a number": lambda s, d: s * 2,
    "times a number in place": lambda s, d: s.mul_(3),
    "negative": lambda s, d: -s,
    "sine": lambda s, d: s.sin(),
    "zeroed": lambda s, d: s.zero_(),
    "zeros_like": lambda s, d: torch.zeros_like(s),
    "copied into": lambda s, d: torch.zeros_like(s).copy_(s),
    "sum": lambda s, d: s.sum(),
    "added to a strided one": lambda s, d: d + s,
    "product": lambda s, d: s @ d,
    "product with a vector": lambda s, d: s @ d[0],
    "addmm": lambda s, d: torch.addmm(d, s, d, beta=0.5, alpha=2),
    "pickled": lambda s, d: pickle.loads(pickle.dumps(s)),
}
OF_ROWS = {
    "plus itself": lambda s, d: s + s,
    "plus itself in place": lambda s, d: s.add_(s),
    "plus itself, out=": lambda s, d: torch.add(s, s, out=s.clone()),
    "product of two": lambda s, d: s @ s,
    "sampled_addmm": lambda s, d: torch.sparse.sampled_addmm(s, d, d, alpha=2, beta=0.5),
    "product and mean": lambda s, d: torch.sparse.mm(s, d, "mean"),
    "mask": lambda s, d: d.sparse_mask(s),
    "sum over a dimension": lambda s, d: s.sum(0, keepdim=True),
    "empty": lambda s, d: torch.zeros(3, 4, layout=s.layout, device=s.device),
    "of rows, columns and values": lambda s, d: torch.sparse_csr_tensor(
        torch.tensor([0, 1, 2], device=d.device), torch.tensor([1, 0], device=d.device), d[0, :2]
    ),
}
CASES = [
    *(
        pytest.param(layout, operator, id=f"{layout} {name}".removeprefix("torch."))
        for layout in LAYOUTS
        for name, operator in OPERATORS.items()
    ),
    *(
        pytest.param(torch.sparse_csr, operator, id=f"sparse_csr {name}")
        for name, operator in OF_ROWS.items()
    ),
]


def outcome(operator, device, layout):
    """What an operator returns and what becomes of its arguments, or the class of its error."""
    sparse, dense = make(device, layout), torch.arange(16.0, device=device).view(4, 4) * 2
    try:
        result = operator(sparse, dense)
    except (RuntimeError, NotImplementedError) as error:
        return type(error)
    assert result.device.type == device
    return [observed(tensor) for tensor in (result, sparse, dense)]


@pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
@pytest.mark.parametrize(("layout", "operator"), CASES)
def test_an_operator_computes_what_the_cpus_does(layout, operator):
    for _ in range(3):
        same(outcome(operator, "lazy", layout), outcome(operator, "cpu", layout))
        wait_for_compiles()


GRADIENTS = {
    "product": lambda s, d: s @ d,
    "addmm": lambda s, d: torch.addmm(d, s, d),
    "to_dense": lambda s, d: s.to_dense() * d,
    "values": lambda s, d: s.values(),
    "sampled_addmm": lambda s, d: torch.sparse.sampled_addmm(s, d, d).to_dense(),
    "product and mean": lambda s, d: torch.sparse.mm(s, d, "mean"),
    # Whose kernel keeps what backward needs where an argument asks for gradients.
    "product and largest": lambda s, d: torch.sparse.mm(s, d, "amax"),
    "to_sparse": lambda s, d: d.to_sparse_csr().to_dense(),
    "times a number": lambda s, d: (s * 3).to_dense(),
    "of rows, columns and values": lambda s, d: torch.sparse_csr_tensor(
        *indices(s.detach()), d.flatten()[:6], s.shape
    ).to_dense(),
}


@pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
@pytest.mark.parametrize("function", GRADIENTS.values(), ids=GRADIENTS)
def test_gradients_are_the_cpus(function):
    def run(device):
        sparse = make(device, torch.sparse_csr).requires_grad_()
        dense = torch.arange(16.0, device=device).view(4, 4).requires_grad_()
        function(sparse, dense).square().sum().backward()
        return [observed(leaf.grad) for leaf in (sparse, dense) if leaf.grad is not None]

    for _ in range(3):
        same(run("lazy"), run("cpu"))
        wait_for_compiles()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_one_moves_to_the_device_and_back(layout):
    there = make("cpu", layout).to("lazy")

    assert there.is_lazy
    same(observed(there.cpu()), observed(make("cpu", layout)))


@pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
def test_what_shares_memory_on_the_cpu_does_so_here():
    def run(device):
        batch = torch.stack([torch.tensor(MATRIX, device=device)] * 2).to_sparse_csr()
        first, transposed = batch[0], batch[1].transpose(0, 1)
        batch.values().mul_(10)
        return first.values().tolist(), transposed.values().tolist()

    assert run("lazy") == run("cpu")


@pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
def test_a_deep_copy_has_memory_of_its_own():
    sparse = make("lazy", torch.sparse_csr)

    copied = copy.deepcopy(sparse)
    sparse.values().mul_(10)

    same(observed(copied), observed(make("cpu", torch.sparse_csr)))


@pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
def test_members_that_are_no_sparse_tensor_are_refused_where_that_is_asked():
    columns = torch.tensor([0, 7], device="lazy")
    rows, values = torch.tensor([0, 1, 2], device="lazy"), torch.ones(2, device="lazy")

    with (
        torch.sparse.check_sparse_tensor_invariants(),
        pytest.raises(RuntimeError, match="0 <= col_indices < ncols"),
    ):
        torch.sparse_csr_tensor(rows, columns, values, (2, 2))


@pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
def test_threads_multiply_by_one_sparse_tensor():
    sparse = make("lazy", torch.sparse_csr)
    expected = make("cpu", torch.sparse_csr) @ torch.ones(4, 2)

    def multiply(_):
        return [(sparse @ torch.ones(4, 2, device="lazy")).cpu() for _ in range(10)]

    with ThreadPoolExecutor(4) as pool:
        products = [product for several in pool.map(multiply, range(4)) for product in several]

    same(products, [expected] * 40)


@pytest.mark.on_cpu("the fake CUDA device has no sparse tensors")
def test_a_result_for_another_device_is_there():
    sparse = make("lazy", torch.sparse_csr)

    assert torch.zeros_like(sparse, device="cpu").device.type == "cpu"
    assert torch.empty_like(sparse, device="cpu").device.type == "cpu"
