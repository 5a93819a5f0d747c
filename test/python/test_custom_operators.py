"""Operators that a script registers are checked by PyTorch's own tools on the device."""

from __future__ import annotations

import pytest
import torch

LIBRARY = "torch_lazy_test_custom_operators"


@torch.library.custom_op(f"{LIBRARY}::scaled", mutates_args=())
def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


@scaled.register_fake
def _(x: torch.Tensor, factor: float) -> torch.Tensor:
    return torch.empty_like(x)


def _keep_factor(ctx, inputs, output):
    ctx.factor = inputs[1]


scaled.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=_keep_factor)


@torch.library.custom_op(f"{LIBRARY}::add_to", mutates_args=("x",))
def add_to(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(y)


@pytest.fixture
def library():
    with torch.library._scoped_library(LIBRARY, "FRAGMENT") as library:
        yield library


def test_opcheck_passes_an_operator_with_a_gradient(device):
    results = torch.library.opcheck(scaled, (torch.ones(3, device=device, requires_grad=True), 2.0))

    assert set(results.values()) == {"SUCCESS"}


def test_opcheck_passes_an_operator_that_writes(device):
    torch.library.opcheck(add_to, (torch.zeros(3, device=device), torch.ones(3, device=device)))


def test_opcheck_runs_the_operator_on_the_device(device, library):
    library.define("seen(Tensor x) -> Tensor")
    seen = set()

    def run(x):
        seen.add(x.device.type)
        return x.detach() + 1

    library.impl("seen", run, "CompositeExplicitAutograd")
    operator = torch.ops.torch_lazy_test_custom_operators.seen.default

    torch.library.opcheck(
        operator,
        (torch.ones(3, device=device, requires_grad=True),),
        test_utils="test_autograd_registration",
    )

    assert seen == {device}


def test_opcheck_finds_a_gradient_below_autograd(device, library):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    library.define("doubled(Tensor x) -> Tensor")
    library.impl("doubled", Doubled.apply, "CompositeExplicitAutograd")
    operator = torch.ops.torch_lazy_test_custom_operators.doubled.default

    with pytest.raises(torch.testing._internal.optests.OpCheckError, match="requires_grad=True"):
        torch.library.opcheck(
            operator,
            (torch.ones(3, device=device, requires_grad=True),),
            test_utils="test_autograd_registration",
        )


def test_opcheck_passes_an_operator_that_returns_its_argument(device, library):
    library.define("same(Tensor x) -> Tensor")
    library.impl("same", lambda x: x, "CompositeExplicitAutograd")
    operator = torch.ops.torch_lazy_test_custom_operators.same.default

    torch.library.opcheck(
        operator,
        (torch.ones(3, device=device, requires_grad=True),),
        test_utils="test_autograd_registration",
    )


LIBRARIES = []  # what an operator is registered in ends with its library


def _defined_by_schema() -> torch._ops.OpOverload:
    LIBRARIES.append(torch.library.Library(LIBRARY, "FRAGMENT"))
    LIBRARIES[-1].define("halved(Tensor x) -> Tensor")
    LIBRARIES[-1].impl("halved", lambda x: x / 2, "CompositeExplicitAutograd")
    torch.library.register_autocast(f"{LIBRARY}::halved", "lazy", torch.bfloat16)
    return torch.ops.torch_lazy_test_custom_operators.halved.default


def _defined_by_function(name: str) -> torch._library.custom_ops.CustomOpDef:
    return torch.library.custom_op(
        f"{LIBRARY}::{name}", lambda x: x / 2, mutates_args=(), schema="(Tensor x) -> Tensor"
    )


def _registered_by_name() -> torch._library.custom_ops.CustomOpDef:
    operator = _defined_by_function("halved_by_name")
    torch.library.register_autocast(f"{LIBRARY}::halved_by_name", "lazy", torch.bfloat16)
    return operator


def _registered_by_its_method() -> torch._library.custom_ops.CustomOpDef:
    operator = _defined_by_function("halved_by_method")
    operator.register_autocast("lazy", torch.bfloat16)
    return operator


@pytest.mark.parametrize(
    "define", [_defined_by_schema, _registered_by_name, _registered_by_its_method]
)
def test_an_operator_is_cast_under_autocast_where_that_is_registered(device, define):
    halved = define()

    with torch.autocast(device, dtype=torch.bfloat16):
        assert halved(torch.ones(2).to(device)).dtype == torch.bfloat16
        assert halved(torch.ones(2)).dtype == torch.float32
    assert halved(torch.ones(2).to(device)).dtype == torch.float32


@pytest.mark.on_cpu("its kernel is none for another device")
@pytest.mark.parametrize("key", ["CompositeExplicitAutograd", "CompositeImplicitAutograd"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.filterwarnings("ignore:torch_lazy does not know what")
def test_an_operator_with_a_kernel_for_the_cpu_runs_that_beside_a_composite_one(
    device, library, key, late
):
    ran = []
    name = f"faster_than_{key}_{late}"
    x = torch.ones(3, device=device)
    library.define(f"{name}(Tensor x) -> Tensor")
    library.impl(name, lambda x: ran.append("composite") or x + 1, key)
    if late:
        torch.ones(3, device=device)
    library.impl(name, lambda x: ran.append(x.device.type) or x + 1, "CPU")

    result = getattr(getattr(torch.ops, LIBRARY), name)(x)

    assert ran == ["cpu"]
    assert result.device == x.device
    assert result.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.filterwarnings("ignore:torch_lazy does not know what")
def test_an_operator_that_is_defined_anew_is_what_it_is_now(device):
    x = torch.ones(3, device=device, requires_grad=True)
    with torch.library._scoped_library(LIBRARY, "FRAGMENT") as library:
        library.define("anew(Tensor x) -> Tensor")
        library.impl("anew", lambda x: x * 2, "CompositeImplicitAutograd")
        library.impl("anew", lambda x: x * 2, "CPU")
        getattr(torch.ops, LIBRARY).anew(x.detach())
    with torch.library._scoped_library(LIBRARY, "FRAGMENT") as library:
        library.define("anew(Tensor x) -> Tensor")
        library.impl("anew", lambda x: x * 3, "CompositeImplicitAutograd")

        getattr(torch.ops, LIBRARY).anew(x).sum().backward()

    assert x.grad.tolist() == [3.0, 3.0, 3.0]


def test_the_parts_of_an_operator_without_a_kernel_of_its_own_are_recorded(device, library):
    ran = []
    library.define("composed(Tensor x) -> Tensor")
    library.impl(
        "composed", lambda x: ran.append(x.device.type) or x + 1, "CompositeExplicitAutograd"
    )
    x = torch.ones(3, device=device)

    result = getattr(torch.ops, LIBRARY).composed(x)

    assert ran == [x.device.type]
    assert result.tolist() == [2.0, 2.0, 2.0]
