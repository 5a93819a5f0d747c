"""Operators have unboxed kernels, by their signatures in PyTorch's headers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch
from behaviour import each_run, same_on

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generator", ROOT / "cmake/typed_operators.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_header(folder: Path, base: str, operators: dict[str, str], **kinds: str) -> None:
    """PyTorch's headers of some overloads, by name and schema, and of what has which kernel."""
    ops = folder / "ATen" / "ops"
    ops.mkdir(parents=True, exist_ok=True)
    text = ""
    for name, schema in operators.items():
        base_name, _, overload = name.partition(".")
        text += (
            f"struct TORCH_API x {{\n  using schema = {schema};\n"
            f'  static constexpr const char* name = "aten::{base_name}";\n'
            f'  static constexpr const char* overload_name = "{overload}";\n}};\n'
        )
    (ops / f"{base}_ops.h").write_text(text)
    for kind, declared in kinds.items():
        (ops / f"{base}_{kind}_dispatch.h").write_text(declared)


UNARY = "at::Tensor (const at::Tensor &)"


def test_operators_of_a_signature_stand_together(generator, tmp_path):
    write_header(tmp_path, "sin", {"sin": UNARY}, cpu="TORCH_API at::Tensor sin(...);")
    write_header(tmp_path, "cos", {"cos": UNARY}, cpu="TORCH_API at::Tensor cos(...);")

    found = generator.operators_by_signature(tmp_path)

    assert found == {("add", UNARY): ["aten::cos", "aten::sin"]}


def test_operators_without_a_kernel_for_the_cpu_are_left_out(generator, tmp_path):
    write_header(
        tmp_path, "mean", {"mean": UNARY, "mean.names": UNARY}, compositeimplicitautograd="mean("
    )
    write_header(tmp_path, "flip", {"flip": UNARY}, cpu="at::Tensor & flip_out(...);")

    assert generator.operators_by_signature(tmp_path) == {}


def test_signatures_of_few_operators_with_out_arguments_are_left_out(generator, tmp_path):
    out = "at::Tensor & (const at::Tensor &, at::Tensor &)"
    for i in range(generator.LEAST_OUT):
        assert generator.operators_by_signature(tmp_path) == {}
        name = f"f{i}.grad_input"
        write_header(tmp_path, f"f{i}", {name: out}, cpu=f"at::Tensor & f{i}_out(...);")

    ((method, schema),) = generator.operators_by_signature(tmp_path)
    assert (method, schema) == ("add", out)


def test_composites_are_told_apart(generator, tmp_path):
    composite = {"compositeexplicitautogradnonfunctional": "at::Tensor t_copy(...);"}
    write_header(tmp_path, "t_copy", {"t_copy": UNARY}, **composite)

    found = generator.operators_by_signature(tmp_path)

    assert found == {("add_composites", UNARY): ["aten::t_copy"]}


@pytest.mark.parametrize(
    "schema",
    [
        "at::Scalar (const at::Tensor &)",
        "void (at::TensorList)",
        "at::Tensor (const at::Tensor &, at::Storage)",
        "at::Tensor (const at::Tensor &, at::DimnameList)",
        "at::Tensor & (const at::Tensor &, at::Tensor &, at::Tensor &)",
    ],
)
def test_what_has_no_unboxed_form_is_left_out(generator, schema):
    assert not generator.is_supported(schema)


def test_sources_that_are_equal_are_not_written_again(generator, tmp_path):
    write_header(tmp_path, "sin", {"sin": UNARY}, cpu="TORCH_API at::Tensor sin(...);")
    generator.main(tmp_path, tmp_path / "made", 2)
    times = [path.stat().st_mtime_ns for path in sorted((tmp_path / "made").iterdir())]

    generator.main(tmp_path, tmp_path / "made", 2)

    assert [path.stat().st_mtime_ns for path in sorted((tmp_path / "made").iterdir())] == times


# Of an operator with symbolic sizes the dispatcher does not say it.
@pytest.mark.parametrize(
    "name", ["index_add", "_linalg_solve_ex", "logical_xor", "add.out", "sort.stable", "diag_embed"]
)
def test_kernels_are_unboxed(name):
    registered = torch._C._dispatch_dump(f"aten::{name}")

    for key in ("Lazy", "AutogradLazy"):
        (kernel,) = (line for line in registered.splitlines() if line.startswith(f"{key}: "))
        assert "[ boxed unboxed ]" in kernel


def test_parts_of_composites_are_cast(device):
    def program(where):
        x, y = torch.randn(3, 4).to(where), torch.randn(4, 3).to(where)
        with torch.autocast(where.partition(":")[0], torch.bfloat16):
            return torch.linalg.pinv(x), torch.diag_embed(x), x @ y

    torch.manual_seed(0)
    same_on(device, program)


def test_conjugate_arguments_mean_what_they_do_in_eager(device):
    def program(where):
        x = torch.tensor([1 + 2j, 3 - 1j]).to(where)
        index = torch.tensor([1, 0]).to(where)
        return [
            y.resolve_conj()
            for y in (
                x.index_add(0, index, x.conj()),
                torch.vdot(x, x.conj()).reshape(1),
                x.conj().index_select(0, index),
                x.conj().imag.cumsum(0),
            )
        ]

    same_on(device, program)


def test_numbers_in_a_tensor_on_the_cpu_are_taken_by_lists(device):
    def program(where):
        tensors = [torch.ones(2).to(where), torch.full((3,), 2.0).to(where)]
        return torch._foreach_addcdiv(tensors, tensors, tensors, torch.tensor([3.0, 4.0]))

    assert [[t.tolist() for t in run] for run in each_run(program, device)] == [
        [t.tolist() for t in program("cpu")]
    ] * 4


def test_another_device_is_named_with_the_operator(device):
    x, index = torch.ones(4).to(device), torch.tensor([0]).to(device)

    with pytest.raises(RuntimeError, match=r"on the same device.*in aten::index_add"):
        x.index_add(0, index, torch.ones(1))
