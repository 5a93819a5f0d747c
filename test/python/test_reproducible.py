"""Under deterministic algorithms the bits of a run depend on the script and the seed alone, and
gradcheck finds functions on the device reentrant."""

from __future__ import annotations

import threading
import time
from itertools import islice

import pytest
import torch
from behaviour import run_script, synchronize, wait_for_compiles
from torch.nn import functional as F

import torch_lazy
from torch_lazy.conformance import opinfo

pytestmark = pytest.mark.recording

# Dropout, normalisation, reductions of rows, columns and to one point, gathers and scatters with
# indices that repeat, a product and a bias, a number that changes each step, a branch that is taken
# now and then.
TRAINING = """
import hashlib, sys, threading, torch
from torch import nn
from torch.nn import functional as F

torch.use_deterministic_algorithms(True)
torch.set_num_threads(int(sys.argv[1]))

def train(seed):
    generator = torch.Generator().manual_seed(seed)
    def normal(*sizes):
        return torch.randn(*sizes, generator=generator).to("lazy")
    words = normal(50, 96).requires_grad_()
    weight, bias = normal(96, 96).requires_grad_(), normal(96).requires_grad_()
    norm = nn.LayerNorm(96).to("lazy")
    parameters = [words, weight, bias, *norm.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    seen = []
    for step in range(20):
        tokens = torch.randint(50, (800,), generator=generator).to("lazy")
        x = norm(F.embedding(tokens, words))
        if "dropout" in sys.argv:
            x = F.dropout(x, 0.1)
        x = F.gelu(x @ weight + bias)
        if step % 7 == 5:
            x = x * x.softmax(-1)
        sums = torch.zeros(50, 96, device="lazy").scatter_add(0, tokens[:, None].expand_as(x), x)
        columns = x.var(0).sqrt()
        loss = (sums**2).mean() + columns.sum() + x.logsumexp(-1).mean() + (x * x).sum() * 1e-4
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 3 == 0:
            seen.append(loss.item())
    digest = hashlib.sha256(repr(seen).encode())
    for parameter in parameters:
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return digest.hexdigest()

torch.manual_seed(0)
digests = {}
if "several" in sys.argv:
    def work(seed):
        digests[seed] = train(seed)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
else:
    digests[0] = train(0)
windows = torch.lazy.metrics()["windows"]
assert windows.get("hot", 0) > 5, windows
print(sorted(digests.items()), windows, torch.lazy.compile_count())
"""


def digest(threads: int, *words: str, anew: bool = False, **environment: str) -> str:
    """What the training script came to in a process of its own, whose compiles end at random."""
    arguments = ["-", str(threads), *words]
    done = run_script(
        f"import sys; sys.argv = {arguments!r}\n{TRAINING}",
        anew=anew,
        TORCH_LAZY_COMPILE_DELAY="60",
        TORCH_LAZY_RNG="philox",
        TORCH_LAZY_VERIFY_PASSES="0",
        **environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("threads", [1, 2])
def test_a_training_run_has_equal_bits_however_long_compiles_take(threads, tmp_path):
    compiling = [
        digest(threads, "dropout", TORCH_LAZY_CACHE_DIR=str(tmp_path / str(run)))
        for run in range(5)
    ]
    finding = [
        digest(threads, "dropout", anew=run == 0, TORCH_LAZY_CACHE_DIR=str(tmp_path / "0"))
        for run in range(5)
    ]

    assert len({*compiling, *finding}) == 1


def test_threads_that_train_at_once_have_each_the_bits_of_its_own(tmp_path):
    runs = [
        digest(1, "several", TORCH_LAZY_CACHE_DIR=str(tmp_path / str(run % 2))) for run in range(4)
    ]

    assert len(set(runs)) == 1


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def hot_windows() -> int:
    synchronize()
    return torch_lazy.metrics()["windows"].get("hot", 0)


def test_a_window_waits_for_the_compile_of_the_one_before(device, deterministic):
    x = torch.randn(7, 5, device=device)
    before = hot_windows()

    for _ in range(3):  # cold, warm, hot: nothing else waits
        (x * 3).tanh().sum(0).cpu()

    assert hot_windows() == before + 1


def test_a_new_thread_does_what_the_first_one_did(device, deterministic):
    """It begins with nothing, whatever threads before it have learnt and whenever they ended."""
    x = torch.randn(64, 700, device=device)

    def hot_after_three_windows() -> int:
        before = hot_windows()
        for _ in range(3):
            (x * 3).softmax(1).sum().cpu()
        return hot_windows() - before

    counts = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: counts.append(hot_after_three_windows()))
        thread.start()
        thread.join()

    assert counts == [1, 1, 1]


def test_a_new_thread_has_kernels_for_its_own_results_only(device, deterministic):
    x = torch.randn(11, 3, device=device)
    kept = []

    def work(keep: bool) -> None:
        for _ in range(3):
            between = x.sin()
            result = between.atan2(x)
            if keep:
                kept.append(between)
            del between
            synchronize()
            del result

    for keep in (True, False):
        thread = threading.Thread(target=work, args=(keep,))
        thread.start()
        thread.join()
        time.sleep(0.1)  # the thread gives its recorder back after it has been joined

    texts = [graph.text for graph in torch_lazy.graphs() if "aten::atan2" in graph.text]
    assert any(text.rpartition("return (")[2].count(",") == 0 for text in texts)


# Operators that kernels compute otherwise than ATen in the last bits: sums, products of terms,
# elementary functions; and some that write to parts of a tensor.
CHECKED = [
    "addmm",
    "cumsum",
    "gather",
    "index_add",
    "linalg.norm",
    "log_softmax",
    "logsumexp",
    "mean",
    "nn.functional.gelu",
    "nn.functional.layer_norm",
    "nn.functional.mse_loss",
    "nn.functional.silu",
    "prod",
    "scatter_add",
    "sigmoid",
    "softmax",
    "sum",
    "tanh",
    "var",
]


def check_often(check, function, inputs) -> None:
    """Until the windows of a check would be known, and some of them hot."""
    for _ in range(4):
        assert check(function, inputs, fast_mode=True)
        wait_for_compiles()


@pytest.mark.parametrize("name", CHECKED)
def test_gradcheck_finds_operators_reentrant(name, device):
    op = opinfo.operators()[name]
    samples = op.sample_inputs(device, torch.float64, requires_grad=True)

    for sample in islice(samples, 3):
        check_often(
            torch.autograd.gradcheck,
            lambda *inputs, kwargs=sample.kwargs: op(*inputs, **kwargs),
            (sample.input, *sample.args),
        )


def test_gradgradcheck_finds_a_function_reentrant(device):
    x = torch.randn(9, 3, dtype=torch.float64, device=device, requires_grad=True)

    check_often(torch.autograd.gradgradcheck, lambda x: F.layer_norm(x.tanh(), (3,)), (x,))


def test_after_gradcheck_operations_are_deferred_again(device, deterministic):
    x = torch.randn(9, 5, dtype=torch.float64, device=device, requires_grad=True)
    before = hot_windows()

    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(lambda x: x * x.detach(), (x,))
    assert hot_windows() == before
    for _ in range(3):
        (x.detach() * 5).tanh().sum(0).cpu()

    assert hot_windows() == before + 1
