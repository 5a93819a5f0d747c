"""The backends that come with the package, on a machine that has only one of them."""

from __future__ import annotations

import pytest
from behaviour import run_script

pytestmark = pytest.mark.recording

# `cpu` is what is not chosen by anybody.
WITHOUT_COMPILER = {
    "TORCH_LAZY_COMPILER_LIBRARY": "/nowhere/libtorch_lazy_compiler.so",
    "TORCH_LAZY_BACKEND": "cpu",
}


def test_without_its_compiler_the_cpu_backend_is_listed_with_the_reason():
    done = run_script(
        "import torch\n"
        "cpu, cuda, reference = torch.lazy.backends()[:3]\n"
        "print(cpu.name, cpu.available, cpu.error)\n"
        "print(reference)",
        **WITHOUT_COMPILER,
    )

    cpu, reference = done.stdout.splitlines()
    assert cpu.startswith("cpu False its compiler /nowhere/libtorch_lazy_compiler.so is not there")
    assert "libclang-19-dev" in cpu
    assert reference == "reference (built in): available"


def test_without_the_compiler_windows_run_by_the_reference_backend_and_one_warning_says_so():
    done = run_script(
        """
import torch
x = torch.ones(2, device="lazy")
for _ in range(4):
    torch.lazy.synchronize()
    y = (x * 2 + 1).relu()
    torch.lazy.synchronize()
    torch.lazy.wait_for_compiles()
print(y.tolist(), torch.lazy.config.backend)
metrics = torch.lazy.metrics()
print(metrics["windows"]["hot"] > 0, metrics["fallbacks"])
""",
        **WITHOUT_COMPILER,
    )

    assert done.stdout.splitlines() == ["[3.0, 3.0] reference", "True {}"]
    assert done.stderr.count("no kernels are compiled, backend 'reference' runs windows") == 1
    assert "libclang-19-dev" in done.stderr


def test_without_the_compiler_the_reference_backend_also_stands_in_for_an_unknown_one():
    done = run_script(
        "import torch\nprint(torch.ones(2, device='lazy').tolist(), torch.lazy.config.backend)",
        **{**WITHOUT_COMPILER, "TORCH_LAZY_BACKEND": "abacus"},
    )

    assert done.stdout.splitlines() == ["[1.0, 1.0] reference"]
    assert "no backend is named 'abacus'" in done.stderr


def test_without_its_compiler_the_cpu_backend_cannot_be_selected():
    done = run_script(
        """
import torch
torch.lazy.set_backend("reference")
try:
    torch.lazy.set_backend("cpu")
except RuntimeError as error:
    print(error)
print(torch.lazy.config.backend)
""",
        **WITHOUT_COMPILER,
    )

    error, backend = done.stdout.splitlines()
    assert error.startswith("backend 'cpu' cannot be made: its compiler /nowhere/")
    assert backend == "reference"
