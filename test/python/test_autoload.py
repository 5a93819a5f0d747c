"""`import torch` brings the device with it, in either order of imports; what goes wrong never
breaks `import torch`."""

from __future__ import annotations

import pytest
from behaviour import run_script

pytestmark = pytest.mark.recording

USE = "x = torch.ones(3, device='lazy') + 1; assert x.tolist() == [2, 2, 2]; print('works')"


@pytest.mark.parametrize(
    "imports",
    [
        "import torch",
        "import torch_lazy, torch",
        "import torch; import torch_lazy",
        "from torch_lazy import synchronize; import torch",
        "import torch.nn; import torch_lazy",
    ],
)
def test_the_device_works_in_every_order_of_imports(imports):
    done = run_script(f"{imports}\n{USE}")

    assert (done.returncode, done.stdout.strip(), done.stderr.strip()) == (0, "works", "")


def test_torch_lazy_is_also_torch_dot_lazy():
    done = run_script(
        "import torch, torch_lazy\n"
        "assert torch.lazy.metrics is torch_lazy.metrics\n"
        "assert torch.lazy.is_available() and torch.lazy.device_count() >= 1"
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.on_cpu("the fake CUDA device comes by autoload")
def test_without_autoload_the_device_comes_with_its_own_import():
    code = f"import torch, sys; assert 'torch_lazy' not in sys.modules\nimport torch_lazy\n{USE}"

    done = run_script(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")

    assert (done.returncode, done.stdout.strip()) == (0, "works"), done.stderr


@pytest.mark.parametrize(
    "failure",
    [
        "raise ImportError('broken on purpose')",
        "raise OSError('no such library')",
        "import sys; sys.modules[name] = None; raise RuntimeError('half made')",
    ],
)
def test_a_broken_plugin_warns_and_import_torch_goes_on(failure):
    """The compiled part is replaced by one that fails as a wrong build would."""
    code = f"""
import importlib.abc, importlib.machinery as machinery, sys

class Broken(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        found = name.startswith("torch_lazy.") and machinery.PathFinder.find_spec(name, path)
        if found and isinstance(found.loader, machinery.ExtensionFileLoader):
            return machinery.ModuleSpec(name, self)
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        name = module.__name__
        {failure}

sys.meta_path.insert(0, Broken())
import torch
print((torch.ones(2) + 1).tolist())
"""
    done = run_script(code)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[2.0, 2.0]"
    assert "torch_lazy" in done.stderr
    assert "Warning" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_plugin_built_for_another_minor_version_of_torch_is_refused_in_one_sentence():
    code = """
import sys, types
sys.modules["torch_lazy._build_info"] = types.SimpleNamespace(TORCH_VERSION="2.0.1+cpu")
import torch
print((torch.ones(2) + 1).tolist(), "torch_lazy._C" in sys.modules, torch.__version__)
"""
    done = run_script(code)

    assert done.returncode == 0, done.stderr
    values, version = done.stdout.strip().rsplit(" ", 1)
    assert values == "[2.0, 2.0] False"
    assert (
        "device 'lazy' is not available: it was built for torch 2.0 and this is torch "
        f"{version}: build it again with `pip install --no-build-isolation .`" in done.stderr
    )
    assert "Traceback" not in done.stderr


def test_a_plugin_that_was_refused_is_not_available():
    code = """
import sys, types
sys.modules["torch_lazy._build_info"] = types.SimpleNamespace(TORCH_VERSION="2.0.1+cpu")
import torch, torch_lazy
print(torch_lazy.is_available(), hasattr(torch, "lazy"))
"""
    done = run_script(code)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False False"


def test_a_plugin_built_for_another_patch_version_of_torch_is_loaded():
    code = f"""
import sys, types
from importlib.metadata import version
newer = version("torch").split("+")[0] + "9+other"
sys.modules["torch_lazy._build_info"] = types.SimpleNamespace(TORCH_VERSION=newer)
import torch
{USE}
"""
    done = run_script(code)

    assert (done.returncode, done.stdout.strip(), done.stderr.strip()) == (0, "works", "")


def test_torch_lazy_0_turns_deferring_off_but_keeps_the_device():
    code = f"""
import torch, torch_lazy
{USE}
for _ in range(6):
    y = (torch.ones(3, device="lazy") * 2).sum().item()
    torch_lazy.wait_for_compiles()
assert torch_lazy.metrics()["deferred"] == 0, torch_lazy.metrics()
"""
    done = run_script(code, TORCH_LAZY="0")

    assert (done.returncode, done.stdout.strip()) == (0, "works"), done.stderr


def test_verify_compares_every_window_and_finds_nothing():
    code = """
import torch, torch_lazy
x = torch.randn(4, 4).to("lazy")
for _ in range(6):
    y = x.t().clone(); y[0].add_(1); z = (y @ x).tanh().sum().item()
    torch_lazy.wait_for_compiles()
assert torch_lazy.metrics()["deferred"] > 0
print("verified")
"""
    done = run_script(code, TORCH_LAZY_VERIFY="1")

    assert (done.returncode, done.stdout.strip()) == (0, "verified"), done.stderr


@pytest.mark.parametrize("level", ["1", "2", "3", "4", "5"])
def test_each_debug_level_shows_more(level):
    code = """
import torch, torch_lazy
for _ in range(5):
    y = (torch.ones(3, device="lazy") * 2).tanh().sum().item()
    torch_lazy.wait_for_compiles()
"""
    shown = run_script(code, TORCH_LAZY_DEBUG=level)
    less = run_script(code, TORCH_LAZY_DEBUG=str(int(level) - 1))

    assert shown.returncode == 0, shown.stderr
    assert "window" in shown.stderr
    assert len(shown.stderr.splitlines()) >= len(less.stderr.splitlines())
    assert level != "1" or less.stderr == ""


def test_normal_use_prints_nothing():
    done = run_script(
        f"import torch\n{USE}\nm = torch.ones(3, 3, device='lazy')\n"
        "for _ in range(20): (torch.randn(3, 3).to('lazy') @ m).relu().sum().item()"
    )

    assert (done.stdout.strip(), done.stderr) == ("works", "")
