"""Writes the sources that give ATen's operators their unboxed kernels, a signature at a time.

    python typed_operators.py INCLUDE FOLDER COUNT

INCLUDE holds PyTorch's headers, whose ATen/ops/*_ops.h say the signature of each operator, and of
which other headers there show what kernels it has. The sources, FOLDER/typed_operators_0.cpp and so
on, COUNT of them, are alike in size; what is equal keeps its time. See device/typed_operators.h.
"""

import re
import sys
from pathlib import Path

OPERATOR = re.compile(
    r"using schema = (?P<schema>[^;]+);.*?"
    r' name = "(?P<name>[^"]+)";.*?'
    r' overload_name = "(?P<overload>[^"]*)";',
    re.DOTALL,
)
# The kernels of operators that are one on the CPU, and not taken apart above autograd.
WHOLE = ("cpu", "compositeexplicitautograd")
# Those that are nothing but a composite where autocast is active (composite_kernel).
COMPOSITE = "compositeexplicitautogradnonfunctional"
# What device/unboxed.h has results of.
RESULT = re.compile(
    r"at::Tensor( &)?|::std::vector<at::Tensor>|::std::tuple<at::Tensor(,at::Tensor)+>"
)
# Arguments that it takes: operators with others are boxed.
ARGUMENT = re.compile(
    r"(const )?at::Tensor &|const ::std::optional<at::Tensor> &|at::TensorList"
    r"|const at::ITensorListRef &|const c10::List<::std::optional<at::Tensor>> &"
    r"|const at::Scalar &|const ::std::optional<at::Scalar> &|at::ArrayRef<at::Scalar>"
    r"|bool|int64_t|double|c10::SymInt|c10::SymIntArrayRef|at::IntArrayRef|at::ArrayRef<double>"
    r"|at::ScalarType|at::MemoryFormat|c10::string_view|::std::array<bool,\d+>"
    r"|at::OptionalIntArrayRef|at::OptionalSymIntArrayRef"
    r"|::std::optional<(bool|int64_t|double|c10::SymInt|c10::string_view|at::ArrayRef<double>"
    r"|at::ScalarType|at::Layout|at::Device|at::MemoryFormat|at::Generator)>"
)
# Of tensors of other kinds and of other libraries: these are boxed.
ELSEWHERE = re.compile(
    "sparse|nested|jagged|quant|mkldnn|cudnn|miopen|fbgemm|cuda|vulkan|int4|int8"
)
# Operators with an out= argument are called less: a signature that only so few have is not worth
# the time that compiling it takes.
LEAST_OUT = 4


def split_arguments(text: str) -> list[str]:
    """Of a parameter list, at the commas that are in no angle brackets."""
    arguments, depth, begin = [], 0, 0
    for i, character in enumerate(text):
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "," and depth == 0:
            arguments.append(text[begin:i].strip())
            begin = i + 1
    return [*arguments, text[begin:].strip()] if text.strip() else []


def parts_of(schema: str) -> tuple[str, list[str]]:
    """Result and arguments of a signature."""
    result, arguments = schema.removesuffix(")").split(" (", 1)
    return result, split_arguments(arguments)


def is_supported(schema: str) -> bool:
    """Whether device/unboxed.h takes such arguments and makes such results.

    Of tensors that are written it returns the only one.
    """
    result, arguments = parts_of(schema)
    if result == "at::Tensor &" and arguments.count("at::Tensor &") != 1:
        return False
    return bool(RESULT.fullmatch(result)) and all(map(ARGUMENT.fullmatch, arguments))


def is_out(name: str, schema: str) -> bool:
    """Whether an operator has an out= argument, by which its C++ function has another name."""
    result, arguments = parts_of(schema)
    in_place = name.partition(".")[0].endswith("_")
    return result == "at::Tensor &" and arguments[-1] == result and not in_place


def kinds_of(function: str, headers: dict[str, str]) -> list[str]:
    """The kinds of kernels that a C++ function of ATen has, by the text of its headers."""
    declared = re.compile(rf"\b{function}(_symint)?\(")
    return [kind for kind, text in headers.items() if declared.search(text)]


def operators_by_signature(include: Path) -> dict[tuple[str, str], list[str]]:
    """Qualified names of operators, "aten::add.Tensor".

    By the method of TypedOperators that takes them, and their C++ signature.
    """
    folder = include / "ATen" / "ops"
    found: dict[tuple[str, str], list[str]] = {}
    for header in sorted(folder.glob("*_ops.h")):
        base = header.name.removesuffix("_ops.h")
        headers = {
            kind: path.read_text()
            for kind in (*WHOLE, COMPOSITE)
            if (path := folder / f"{base}_{kind}_dispatch.h").exists()
        }
        for match in OPERATOR.finditer(header.read_text() if headers else ""):
            schema, overload = match["schema"], match["overload"]
            name = match["name"] + ("." + overload if overload else "")
            if not is_supported(schema) or ELSEWHERE.search(name):
                continue
            function = match["name"].removeprefix("aten::") + (
                "_out" if is_out(name, schema) else ""
            )
            kinds = kinds_of(function, headers)
            if kinds:
                method = "add_composites" if kinds == [COMPOSITE] else "add"
                found.setdefault((method, schema), []).append(name)
    return {
        key: names
        for key, names in found.items()
        if len(names) >= LEAST_OUT or not all(is_out(name, key[1]) for name in names)
    }


def source(part: int, count: int, found: dict[tuple[str, str], list[str]]) -> str:
    """The source number `part` of `count`; the first one calls the others."""
    name = "add_typed_operators"
    others = [f"{name}_{i}" for i in range(1, count)]
    lines = []
    for method, signature in sorted(found)[part::count]:
        names = ", ".join(f'"{operator}"' for operator in found[method, signature])
        lines.append(f"operators.{method}<{signature}>({{{names}}});")
    if part == 0:
        declared = others
        lines += [f"{other}(operators);" for other in others]
    else:
        name = others[part - 1]
        declared = [name]
    declarations = "".join(f"void {each}(TypedOperators& operators);\n" for each in declared)
    body = "".join(f"  {line}\n" for line in lines)
    return (
        "// Made by cmake/typed_operators.py of PyTorch's headers.\n"
        '#include "device/typed_operators.h"\n\n'
        f"namespace torch_lazy {{\n\n{declarations}\n"
        f"void {name}(TypedOperators& operators) {{\n{body}}}\n\n"
        "}  // namespace torch_lazy\n"
    )


def main(include: Path, folder: Path, count: int) -> None:
    """Writes all sources."""
    found = operators_by_signature(include)
    if not found:
        sys.exit(f"typed_operators.py: no operators in {include / 'ATen' / 'ops'}")
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(count):
        path = folder / f"typed_operators_{part}.cpp"
        text = source(part, count, found)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
