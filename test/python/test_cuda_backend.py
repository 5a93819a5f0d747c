"""The backend cuda on the device that test/fake_cuda makes: kernels run in the emulator."""

from __future__ import annotations

from test_fake_cuda import run_on_device


def test_windows_run_by_kernels_and_agree_with_the_cpu():
    script = """
import torch_lazy

x, w = torch.randn(64, 100), torch.randn(100)
on_lazy = x.to("lazy"), w.to("lazy")
def program(x, w, scale):
    y = torch.nn.functional.gelu(x * w + 1.5) * scale
    return torch.softmax(y, -1).sum(0)
for step in range(24):
    result = program(*on_lazy, 0.5 + step).cpu()
    torch_lazy._C.wait_for_compiles(60.0)
torch.testing.assert_close(result, program(x, w, 23.5))
metrics = torch.lazy.metrics()
print(torch.lazy.config.backend, metrics["windows"]["hot"] > 0, metrics["fallbacks"])
"""

    assert run_on_device(script) == ["cuda True {}"]


def test_an_index_out_of_range_raises_where_the_host_waits_and_the_device_lives_on():
    script = """
import torch_lazy

rows = torch.randn(10, 8)
table = rows.to("lazy")
def program(indices):
    return torch.nn.functional.embedding(indices.to("lazy"), table) * 2
good = torch.tensor([1, 2, 9])
for _ in range(12):
    program(good).cpu()
    torch_lazy._C.wait_for_compiles(60.0)
late = program(torch.tensor([1, 20, 9]))
try:
    late.cpu()
except IndexError as error:
    print(error)
print(torch.equal(program(good).cpu(), rows[good] * 2), torch.lazy.metrics()["fallbacks"])
"""

    message, operation, line, after = run_on_device(script)

    assert message == "index out of range in self"
    assert operation.strip() == "raised by the operation aten::embedding"
    assert "recorded at" in line
    assert after == "True {}"


def test_kernels_of_an_earlier_process_are_found_on_disk(tmp_path):
    script = """
import torch_lazy

x = torch.randn(100, device="lazy")
for _ in range(12):
    (x.sin() * 2 + 1).exp().sum().item()
    torch_lazy._C.wait_for_compiles(60.0)
times = torch.lazy.metrics()["compile_ns"]
print("nvrtc" in times, "load" in times)
"""

    first = run_on_device(script, TORCH_LAZY_CACHE_DIR=str(tmp_path))
    second = run_on_device(script, TORCH_LAZY_CACHE_DIR=str(tmp_path))

    assert (first, second) == (["True False"], ["False True"])


def test_threads_beyond_the_last_element_report_no_index():
    script = """
import torch_lazy

table = torch.randn(131, device="lazy")
indices = torch.arange(1, 132, device="lazy")
def program():
    return table.index_select(0, indices - 1) + table[torch.arange(131, device="lazy")]
for _ in range(12):
    result = program().cpu()
    torch_lazy._C.wait_for_compiles(60.0)
print(torch.equal(result, table.cpu() * 2), torch.lazy.metrics()["fallbacks"])
"""

    assert run_on_device(script) == ["True {}"]


def test_rows_that_want_more_shared_memory_than_usual_are_given_it():
    script = """
import torch_lazy

x = torch.randn(16, 20000)
on_lazy = x.to("lazy")
for _ in range(3):
    result = torch.softmax(on_lazy, -1).cpu()
    torch_lazy._C.wait_for_compiles(60.0)
torch.testing.assert_close(result, torch.softmax(x, -1))
metrics = torch.lazy.metrics()
print(metrics["windows"]["hot"] > 0, metrics["fallbacks"])
"""

    assert run_on_device(script) == ["True {}"]


def test_what_a_kernel_declares_counts_among_the_shared_memory_that_is_usual():
    script = """
import torch_lazy

x = torch.randn(17, 32768)  # of which 48 KiB are held in shared memory, beside the folds
target = torch.randint(32768, (17,))
def gradient(where):
    scores = x.to(where).requires_grad_()
    torch.nn.functional.cross_entropy(scores, target.to(where)).backward()
    return scores.grad.cpu()
for _ in range(3):
    result = gradient("lazy")
    torch_lazy._C.wait_for_compiles(60.0)
torch.testing.assert_close(result, gradient("cpu"))
print(torch.lazy.metrics()["windows"]["hot"] > 0, torch.lazy.metrics()["fallbacks"])
"""

    assert run_on_device(script) == ["True {}"]


def test_kernels_ask_for_shared_memory_for_as_many_blocks_as_a_multiprocessor_has():
    script = """
tall, wide = torch.randn(3000, 40).to("lazy"), torch.randn(2, 9000).to("lazy")
def step():
    return (tall.t() * 2).contiguous(), tall.sum(0), wide.softmax(-1), wide.sum()
for _ in range(4):
    results = step()
    torch.lazy.synchronize()
    torch.lazy.wait_for_compiles()
print(torch.lazy.metrics()["windows_run"] > 0, fake_cuda.launches_short_of_shared_memory())
"""

    assert run_on_device(script) == ["True 0"]


def test_a_step_of_an_optimizer_over_many_tensors_is_few_launches():
    script = """
import torch_lazy

def train(device, steps):
    torch.manual_seed(0)
    on_cpu = [torch.randn(200 + 4 * (i % 5)) for i in range(40)]
    parameters = [p.to(device).requires_grad_() for p in on_cpu]
    optimizer = torch.optim.Adam(parameters, lr=0.1)
    for p in parameters:
        p.grad = torch.ones_like(p)
    for _ in range(steps):
        optimizer.step()
        torch.lazy.synchronize()
        torch_lazy._C.wait_for_compiles(60.0)
    with torch.lazy.profile() as profile:
        optimizer.step()
        torch.lazy.synchronize()
    launches = sum(event.kind == "kernel" for event in profile.events)
    return [p.detach().cpu() for p in parameters], launches
on_device, launches = train("lazy", 8)
on_cpu, _ = train("cpu", 8)
for a, b in zip(on_device, on_cpu):
    torch.testing.assert_close(a, b)
print(0 < launches <= 10, torch.lazy.metrics()["fallbacks"])
if launches > 10:
    print(launches)
"""

    assert run_on_device(script) == ["True {}"]


def test_copies_from_the_host_into_what_a_window_makes_leave_its_kernels():
    script = """
import torch_lazy

def program(device, rows, one):
    padded = torch.zeros(4, 64, device=device)
    padded[:, :48] = rows
    padded[0, 0] = one
    padded[2].copy_(rows[0].double().repeat(2)[:64])
    padded[3].fill_(one)
    return (padded.tanh() * 2 + 1).sum(1)
for step in range(12):
    rows, one = torch.randn(4, 48), torch.tensor(0.5 + step)
    result = program("lazy", rows, one).cpu()
    torch.lazy.wait_for_compiles()
torch.testing.assert_close(result, program("cpu", rows, one))
metrics = torch.lazy.metrics()
print(metrics["windows"]["hot"] > 0, metrics["fallbacks"])
"""

    assert run_on_device(script) == ["True {}"]


def test_a_kernel_that_the_device_refuses_is_replaced_by_the_operations():
    script = """
import warnings
import torch_lazy

warnings.simplefilter("ignore")
for step in range(12):
    x = torch.randn(8, 64)
    on_lazy = x.to("lazy")
    torch.lazy.synchronize()
    if step >= 4:
        fake_cuda.fail(launches=0)
    result = (torch.softmax(on_lazy * 2, 1) + 1).cpu()
    fake_cuda.fail()
    torch.testing.assert_close(result, torch.softmax(x * 2, 1) + 1)
    torch.lazy.wait_for_compiles()
print(torch.lazy.metrics()["fallbacks"])
"""

    assert run_on_device(script) == ["{'window run again': 8}"]


def test_an_index_of_the_greatest_of_many_among_few_is_the_librarys():
    script = """
import torch_lazy

few, many = torch.randn(40000, 8), torch.randn(64, 3000)
on_lazy = few.to("lazy"), many.to("lazy")
def program(few, many):
    return few.argmax(0), few.argmin(), many.argmax(1)
for _ in range(6):
    result = [value.cpu() for value in program(*on_lazy)]
    torch.lazy.wait_for_compiles()
print(all(map(torch.equal, result, program(few, many))))
with torch.lazy.profile() as profile:
    program(*on_lazy)
    torch.lazy.synchronize()
print(*sorted({step.name.split("_")[0] for step in profile.summary.steps}))
"""

    same, steps = run_on_device(script)

    assert same == "True"
    assert steps == "aten::argmax aten::argmin kernel"
