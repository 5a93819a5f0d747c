"""Backends that other packages bring: how they are found, loaded, refused and selected."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from vendor import install, run_with

pytestmark = pytest.mark.recording


@pytest.fixture
def packages(tmp_path) -> Path:
    """A folder of installed packages, empty."""
    folder = tmp_path / "packages"
    folder.mkdir()
    return folder


@pytest.fixture
def vendor(vendor_libraries, packages) -> Path:
    """The same with the backend `vendor`."""
    install(packages, "vendor", vendor_libraries / "libvendor_backend.so", "vendor_package")
    return packages


def printed(done) -> list[str]:
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_backend_is_loaded_when_it_is_selected(vendor):
    done = run_with(
        vendor,
        "torch.lazy.set_backend('vendor')\n"
        "print(torch.lazy.config.backend, '/', torch.lazy.get_device_name())\n"
        "print(hot(torch.tensor([-3., 1.]).to('lazy')).tolist())\n"
        "print(torch.lazy.metrics()['windows_run'] > 0, torch.lazy.metrics()['fallbacks'])",
    )

    assert printed(done) == ["vendor / vendor (Vendor 1)", "[0.0, 3.0]", "True {}"]


def test_the_environments_backend_is_loaded_by_the_first_use_of_the_device(vendor):
    done = run_with(
        vendor,
        "import sys\n"
        "print('vendor_package' in sys.modules)\n"
        "x = torch.ones(2, device='lazy') + 1\n"
        "print('vendor_package' in sys.modules, torch.lazy.get_device_name())",
        TORCH_LAZY_BACKEND="vendor",
    )

    assert printed(done) == ["False", "True vendor (Vendor 1)"]


def test_threads_that_use_the_device_first_wait_for_the_backend(packages, vendor_libraries):
    library = vendor_libraries / "libvendor_backend.so"
    body = f"import time; time.sleep(0.5); return {str(library)!r}"
    install(packages, "vendor", library, "vendor_package", body)

    done = run_with(
        packages,
        """
import threading
names = []
def use():
    (torch.ones(2, device='lazy') + 1).tolist()
    names.append(torch.lazy.get_device_name())
threads = [threading.Thread(target=use) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(*names, sep='\\n')
""",
        TORCH_LAZY_BACKEND="vendor",
    )

    assert printed(done) == ["vendor (Vendor 1)"] * 3
    assert not done.stderr


@pytest.mark.on_cpu("a device that is named is there before the backend")
def test_a_package_that_uses_the_device_while_its_backend_is_loaded_is_told(packages):
    body = "import torch; torch.ones(2, device='lazy')"
    install(packages, "vendor", packages / "none.so", "vendor_package", body)

    done = run_with(
        packages, "print((torch.ones(2).to('lazy') + 1).tolist())", TORCH_LAZY_BACKEND="vendor"
    )

    assert done.stdout == "[2.0, 2.0]\n"
    assert "its package may not use device lazy before that has ended" in done.stderr


def test_the_parts_for_backends_that_generate_kernels_are_shown(vendor_libraries, packages):
    install(packages, "plans", vendor_libraries / "libplan_backend.so", "planning_package")

    done = run_with(
        packages,
        "torch.lazy.set_backend('plans')\n"
        "print(hot(torch.tensor([-3., 1.]).to('lazy')).tolist())\n"
        "print(torch.lazy.metrics()['fallbacks'])",
    )

    assert printed(done) == [
        "kernel kernel_mul_add_maximum",
        "operator aten::mul",
        "operator aten::add",
        "operator aten::relu",
        "[0.0, 3.0]",
        "{}",
    ]


@pytest.mark.kernels
def test_every_backend_is_listed_with_where_it_comes_from(vendor_libraries, vendor):
    file, absent = vendor_libraries / "libvendor_backend.so", vendor_libraries / "libgone.so"
    install(vendor, "absent", absent, "absent_package")

    done = run_with(vendor, "print(*torch.lazy.backends(), sep='\\n')")

    cpu, cuda, *others = printed(done)
    assert cpu == "cpu (built in): available"
    assert cuda.startswith("cuda (built in): ")
    assert others == [
        "reference (built in): available",
        f"absent (absent_package 1.0, {absent}): backend 'absent' cannot be loaded from "
        f"'{absent}': there is no such file: install the package that brings it again",
        f"vendor (vendor_package 1.0, {file}): available",
    ]


def test_an_unknown_name_says_what_there_is(vendor):
    done = run_with(
        vendor,
        "select('abacus')\nprint(torch.lazy.config.backend)",
    )

    assert printed(done) == [
        "no backend is named 'abacus': there are 'cpu', 'cuda', 'reference', 'vendor'; another one "
        "comes with a package that has an entry point 'abacus' in the group 'torch_lazy.backends'",
        "cpu",
    ]


MINOR = ".".join(torch.__version__.split(".")[:2])


@pytest.mark.parametrize(
    ("library", "reasons"),
    [
        ("other_interface", ["built for version 1000", "build it against this torch_lazy"]),
        ("other_torch", ["built against torch 1.13.1", f"build it against torch {MINOR}"]),
        ("other_name", ["'something else'", "give them the same name"]),
        ("no_symbol", ["does not export 'torch_lazy_backend'", "must say TORCH_LAZY_BACKEND"]),
        ("undefined_symbol", ["undefined symbol: function_of_another_release", "build it"]),
    ],
)
def test_a_library_that_does_not_fit_is_refused_in_one_sentence(
    vendor_libraries, packages, library, reasons
):
    install(packages, "vendor", vendor_libraries / f"lib{library}.so", "vendor_package")

    done = run_with(
        packages,
        "select('vendor')\n"
        "print(torch.lazy.backends()[-1].error)\n"
        "print(torch.lazy.config.backend)",
    )

    raised, listed, selected = printed(done)
    assert raised == listed
    assert all(reason in raised for reason in reasons), raised
    assert f"lib{library}.so" in raised
    assert selected == "cpu"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise OSError('no driver')", "raised OSError: no driver"),
        ("return 7", "must return the path of its library, not 7"),
    ],
)
def test_an_entry_point_that_goes_wrong_is_named(packages, body, reason):
    install(packages, "vendor", Path("unused"), "vendor_package", body)

    done = run_with(packages, "print(torch.lazy.backends()[-1].error)")

    (listed,) = printed(done)
    assert reason in listed
    assert "'vendor_package:library' (vendor_package 1.0)" in listed


def test_two_packages_with_the_same_backend_are_refused(vendor, vendor_libraries):
    install(vendor, "vendor", vendor_libraries / "libvendor_backend.so", "other_package")

    done = run_with(vendor, "torch.lazy.set_backend('vendor')")

    assert "comes with other_package 1.0 and vendor_package 1.0: uninstall all but one" in (
        done.stderr
    )


@pytest.mark.kernels
def test_a_package_cannot_take_the_name_of_a_built_in_backend(packages, vendor_libraries):
    install(packages, "cpu", vendor_libraries / "libvendor_backend.so", "vendor_package")

    done = run_with(packages, "print(*torch.lazy.backends(), sep='\\n')")

    built_in, *_, other = printed(done)
    assert built_in == "cpu (built in): available"
    assert "the library calls its backend 'vendor'" in other


@pytest.mark.kernels
def test_a_backend_that_cannot_be_loaded_leaves_the_default_with_a_warning(
    packages, vendor_libraries
):
    install(packages, "vendor", vendor_libraries / "libother_torch.so", "vendor_package")

    done = run_with(
        packages,
        "print(hot(torch.ones(2).to('lazy')).tolist(), torch.lazy.config.backend)",
        TORCH_LAZY_BACKEND="vendor",
    )

    assert printed(done) == ["[3.0, 3.0] cpu"]
    assert done.stderr.count("TORCH_LAZY_BACKEND=vendor is ignored, 'cpu' compiles windows") == 1
    assert "built against torch 1.13.1" in done.stderr


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("factory raises", "no accelerator is plugged in"),
        ("factory raises a number", "something that is no std::exception"),
    ],
)
def test_why_a_backend_cannot_be_made_is_said(vendor, mode, reason):
    done = run_with(
        vendor,
        "select('vendor')\nprint(torch.lazy.backends()[-1].error)",
        VENDOR_BACKEND=mode,
    )

    raised, listed = printed(done)
    assert raised.startswith("backend 'vendor' cannot be made: ")
    assert reason in raised
    assert reason in listed


def test_what_another_backend_compiled_is_not_used_after_a_switch(vendor):
    """Runs of the backend raise from some point on: whoever still uses it would notice."""
    done = run_with(
        vendor,
        "import os\n"
        "torch.lazy.set_backend('vendor')\n"
        "x = torch.ones(2).to('lazy')\n"
        "hot(x)\n"
        "os.environ['VENDOR_BACKEND'] = 'run raises'\n"
        "try:\n    hot(x, 1)\nexcept RuntimeError:\n    print('vendor ran it')\n"
        "torch.lazy.set_backend('reference')\n"
        "before = torch.lazy.metrics()['windows_run']\n"
        "print(hot(x).tolist(), torch.lazy.metrics()['windows_run'] > before)",
    )

    assert printed(done) == ["vendor ran it", "[3.0, 3.0] True"]
