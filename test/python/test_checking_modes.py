"""The modes that check the device itself: verify, check_effects, debug output."""

from __future__ import annotations

import itertools
import re
import warnings

import pytest
import torch
from behaviour import EXECUTION_DEVICE, hot, run_script, synchronize

import torch_lazy


@pytest.fixture
def setting():
    """Sets a setting for one test: setting("verify", True)."""
    changed: dict[str, object] = {}

    def change(name: str, value: object) -> None:
        changed.setdefault(name, getattr(torch_lazy.config, name))
        setattr(torch_lazy.config, name, value)

    yield change
    for name, value in changed.items():
        setattr(torch_lazy.config, name, value)


@pytest.mark.recording
def test_a_verified_window_gives_the_same_results(device, setting):
    setting("verify", True)
    x = torch.randn(4, 4).to(device)

    def step(x):
        y = x * 2
        y.t().add_(x)
        return y.sum(0)

    result = hot(step, x)

    assert torch_lazy.metrics()["windows"].get("hot", 0) > 0
    assert result.tolist() == step(x.cpu()).tolist()


@pytest.mark.recording
def test_verify_names_the_operation_and_the_element_that_differ(device, setting):
    calls = itertools.count()
    library = torch.library.Library("aten", "FRAGMENT")
    library.define("torch_lazy_test_count(Tensor x) -> Tensor")
    for key in ("CPU", "Meta"):
        library.impl(
            "torch_lazy_test_count",
            lambda x: x + torch.tensor([0.0, next(calls)]).to(x.device),
            key,
        )
    setting("verify", True)
    x = torch.zeros(2).to(device)

    expected = r"element 1 of 2 is (?s:.*)aten::mul(?s:.*)test_checking_modes"
    with pytest.raises(RuntimeError, match=expected):
        hot(lambda x: torch.ops.aten.torch_lazy_test_count(x * 2) * 1, x)


@pytest.mark.recording
def test_an_operator_that_writes_what_its_schema_does_not_say_is_named(device, setting):
    library = torch.library.Library("aten", "FRAGMENT")
    library.define("torch_lazy_test_liar(Tensor x) -> Tensor")
    library.impl("torch_lazy_test_liar", lambda x: x.add_(1).clone(), "CPU")
    x = torch.zeros(3).to(device)
    setting("check_effects", True)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.ops.aten.torch_lazy_test_liar(x)
        synchronize()

    assert any("torch_lazy_test_liar" in str(w.message) for w in caught)


@pytest.mark.recording
def test_an_operator_of_pytorchs_that_writes_what_it_should_not_is_named(device, setting):
    def liar(x, p, dim, most):
        return x.add_(1).clone()

    setting("check_effects", True)
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("renorm", liar, EXECUTION_DEVICE.upper())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.renorm(torch.zeros(3, 3).to(device), 2, 0, 1.0)
            synchronize()

    assert any("aten::renorm" in str(w.message) for w in caught)


LOOP = """
import torch, torch_lazy
x = torch.ones(3).to("lazy")
for _ in range(4):
    y = (x * 2).exp()
    torch_lazy.synchronize()
    torch_lazy.wait_for_compiles()
"""


@pytest.mark.recording
@pytest.mark.parametrize(
    ("level", "shown", "hidden"),
    [
        ("0", "", "window"),
        ("1", "hot window: 2 operations", "graph("),
        ("2", "aten::exp", "deferred aten::mul"),
        ("5", "deferred aten::mul", "nothing hidden here"),
    ],
)
def test_each_debug_level_shows_a_layer_more(level, shown, hidden):
    done = run_script(LOOP, TORCH_LAZY_DEBUG=level)

    assert shown in done.stderr
    assert hidden not in done.stderr


# The name of a row, how often it ran, its milliseconds; bytes and GB/s where bytes are known.
COST = re.compile(
    r"^  (\S+) +(\d+) runs?  ([\d.]+) ms(?:  (\d+) bytes  ([\d.]+) GB/s)?$", re.MULTILINE
)


@pytest.mark.recording
@pytest.mark.skipif(torch_lazy.config.backend != "cpu", reason="only the CPU's has kernels")
def test_the_cost_of_each_kernel_and_call_is_printed(device, setting, capfd):
    setting("debug", 2)
    x, weight = torch.ones(3, 20).to(device), torch.ones(20, 8000).to(device)

    hot(lambda: (x * 2).exp() @ weight)

    rows = {row[0]: row[1:] for row in COST.findall(capfd.readouterr().err)}
    runs, _, moved, rate = rows["kernel_mul_exp"]
    assert (runs, moved) == ("1", str(2 * 4 * 3 * 20))
    assert float(rate) > 0
    assert rows["aten::mm"][0] == "1"


@pytest.mark.kernels
@pytest.mark.recording
def test_the_old_name_of_a_backend_is_accepted_with_a_warning(device, setting):
    setting("backend", "cpu")

    with pytest.warns(UserWarning, match="'interpreter' is called 'reference' now"):
        torch_lazy.config.backend = "interpreter"

    assert torch_lazy.config.backend == "reference"


@pytest.mark.recording
def test_the_environment_may_say_the_old_name_of_a_backend(device):
    done = run_script(
        "import torch_lazy; print(torch_lazy.config.backend)", TORCH_LAZY_BACKEND="interpreter"
    )

    assert done.stdout == "reference\n"
    assert done.stderr.count("'interpreter' is called 'reference' now") == 1


@pytest.mark.on_cpu("another device is named too")
@pytest.mark.recording
def test_the_devices_name_says_the_backend_and_the_processor(device, setting):
    setting("backend", "reference")

    name = torch_lazy.get_device_name()

    assert re.fullmatch(r"reference \(.+\)", name)
    assert "interpreter" not in name


BRANCH = """
import torch, torch_lazy
x = torch.ones(3).to("lazy")
def step(flag):
    y = x * 2
    if flag:
        y = y.exp()
    else:
        y = y.add(1)
    torch_lazy.synchronize()
    torch_lazy.wait_for_compiles()
for flag in (True, True, True, False):
    step(flag)
"""


@pytest.mark.recording
def test_debug_output_names_both_operations_of_a_failed_guard():
    done = run_script(BRANCH, TORCH_LAZY_DEBUG="1")

    failures = [line for line in done.stderr.splitlines() if "guard failed at" in line]
    assert len(failures) == 1, done.stderr
    assert "operation 1: expected aten::exp # <string>:7:12" in failures[0]
    assert "recorded aten::add.Tensor # <string>:9:12" in failures[0]
    assert "first difference: the operator" in failures[0]


@pytest.mark.recording
def test_a_device_index_that_does_not_exist_is_refused():
    with pytest.raises(RuntimeError, match="no device lazy:1"):
        torch.ones(2, device="lazy:1")
    with pytest.raises(RuntimeError, match="no device lazy:1"):
        torch.ones(2).to("lazy:1")


@pytest.mark.recording
def test_a_cpu_tensor_is_not_written_with_lazy_values(device):
    total = torch.zeros(())

    with pytest.raises(RuntimeError, match="same device"):
        total += torch.ones((), device=device)
