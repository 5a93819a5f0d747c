"""The kit that vendors of backends run (`python -m torch_lazy.conformance`): the backends of this
project and the example's pass it, and what a vendor's does wrong is a finding with a name."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from vendor import install

from torch_lazy.conformance import runner
from torch_lazy.conformance.fork_server import ForkServer
from torch_lazy.conformance.page import Subject, page
from torch_lazy.conformance.runner import run_section
from torch_lazy.conformance.section import Options, Result
from torch_lazy.conformance.sections import SECTIONS

pytestmark = pytest.mark.recording

# Of each section enough to see that it works; all of it is the command's to run.
SMALL = [
    *("device", "copies/float32", "copies/bool", "copies/new-data-reaches-hot-windows"),
    *("views/slices", "views/writes-through-pieces", "views/views-outlive-their-window"),
    *("writes/index_put_-of-an-input", "writes/an-input-may-be-given-twice"),
    *("programs/programs-1", "programs/fusion-1", "failures", "threads/threads-record-at-once"),
    *("training/layers-with-sgd", "training/attention-with-adam"),
    *("operators/add", "operators/sort"),
    *("modules/nn.Conv2d.train", "modules/optim.AdamW"),
    *("forks/a-child-computes-or-is-told", "memory/hot-windows-keep-nothing"),
    "reproducibility/hot-windows-repeat-their-bits",
]


def run_kit(
    backend: str, only: list[str], *options: object, site: Path | None = None, **environment: str
) -> subprocess.CompletedProcess:
    """Runs the command where the packages in `site` are installed."""
    path = os.pathsep.join(filter(None, [site and str(site), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "torch_lazy.conformance", "--backend", backend, "--quick"]
    # A second process of a section costs more than the few items it would take over.
    command += ["--jobs", "1", "--only", ",".join(only)]
    return subprocess.run(
        [*command, *map(str, options)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
        check=False,
    )


@pytest.fixture
def vendor(vendor_libraries, tmp_path) -> Path:
    """A folder with an installed package that brings the backend `vendor`."""
    install(tmp_path, "vendor", vendor_libraries / "libvendor_backend.so", "vendor_package")
    return tmp_path


@pytest.mark.on_cpu("the fake CUDA device sets the CPU's seed again when it is first used")
@pytest.mark.parametrize("backend", [pytest.param("cpu", marks=pytest.mark.kernels), "reference"])
def test_the_backends_of_this_project_pass(backend, tmp_path):
    page = tmp_path / "page.md"

    done = run_kit(backend, SMALL, "--output", page, "--jobs", 2)

    assert done.returncode == 0, done.stdout
    assert done.stdout.strip() == page.read_text().strip()
    assert f"**Passed**: {len(SECTIONS)} of {len(SECTIONS)} sections." in done.stdout
    assert "| `add` | compiled |  |  |" in done.stdout


def test_the_example_accelerators_backend_passes(accelerator_site):
    done = run_kit("accel", SMALL, site=accelerator_site)

    assert done.returncode == 0, done.stdout
    assert "| backend | accel, of torch_accelerator 0.1.0 |" in done.stdout
    assert "| `add` | compiled |  |  |" in done.stdout
    sort = next(line for line in done.stdout.splitlines() if line.startswith("| `sort` |"))
    assert "| compiled in part |" in sort
    assert "`aten::sort` by ATen on the device" in sort


def test_the_example_without_eager_kernels_passes(offload_site):
    done = run_kit("accel", SMALL, site=offload_site)

    assert done.returncode == 0, done.stdout
    sort = next(line for line in done.stdout.splitlines() if line.startswith("| `sort` |"))
    assert "`aten::sort` by the CPU" in sort
    _, _, moved = done.stdout.partition("## Bytes moved in a warm training step")
    assert "to host: aten::_local_scalar_dense" in moved


def test_an_operator_that_is_computed_wrongly_is_named(vendor):
    only = ["operators/tanh", "operators/exp", "views/slices"]

    done = run_kit("vendor", only, site=vendor, VENDOR_BACKEND="tanh is wrong")

    assert done.returncode == 1, done.stderr
    assert "**Failed**: 1 of 2 sections (operators)." in done.stdout
    assert "### operators/tanh\n\nforward of sample 1, run 3: output 0:" in done.stdout
    assert "--backend vendor --quick --only operators/tanh`" in done.stdout
    assert "### operators/exp" not in done.stdout


def test_a_wrong_operator_is_found_by_random_programs_and_shown_by_a_short_script(vendor):
    only = ["programs/programs-52"]  # it has a tanh

    done = run_kit("vendor", only, site=vendor, VENDOR_BACKEND="tanh is wrong")

    assert done.returncode == 1, done.stderr
    script = done.stdout.partition("```python\n")[2].partition("```")[0]
    assert "tanh" in script
    assert script.count("Step('") < 10
    again = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(vendor), os.environ.get("PYTHONPATH", "")]),
            "TORCH_LAZY_BACKEND": "vendor",
            "VENDOR_BACKEND": "tanh is wrong",
        },
        check=True,
    )
    assert again.stdout.startswith("run ")


@pytest.mark.parametrize(
    ("mode", "finding"),
    [
        ("wrong strides", "Float [4, 6] with strides [12, 2] on cpu"),
        ("run raises", "the accelerator is on fire"),
        ("run crashes", "the process died: SIGABRT"),
        ("run hangs", "no answer within 10 s"),
        ("compile hangs", "no answer within 10 s"),
    ],
)
def test_what_goes_wrong_in_a_run_is_a_finding_and_no_end(vendor, mode, finding):
    only = ["views/slices", "copies/float32"]

    done = run_kit("vendor", only, "--timeout", 10, site=vendor, VENDOR_BACKEND=mode)

    assert done.returncode == 1, done.stderr
    assert "### views/slices" in done.stdout
    assert finding in done.stdout
    said = [line.partition(":")[0] for line in done.stderr.splitlines()]
    assert said == ["copies", "views"]  # the kit's own lines alone


def test_a_section_ends_after_some_crashes(vendor):
    done = run_kit("vendor", ["writes"], site=vendor, VENDOR_BACKEND="run crashes")

    assert done.returncode == 1, done.stderr
    assert 3 <= done.stdout.count("the process died: SIGABRT") <= 3 + (os.cpu_count() or 1)
    assert "Not all of writes was tried" in done.stdout


def test_a_backend_that_compiles_nothing_does_not_pass_training(vendor):
    only = ["training/layers-with-sgd", "operators/exp"]

    done = run_kit("vendor", only, site=vendor, VENDOR_BACKEND="compile raises")

    assert done.returncode == 1, done.stderr
    assert "the backend did not compile windows, which others ran" in done.stdout
    assert "| `exp` | not compiled |" in done.stdout


def test_a_backend_that_cannot_be_used_is_told_in_a_sentence(vendor):
    done = run_kit("vendor", ["device"], site=vendor, VENDOR_BACKEND="factory raises")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "backend 'vendor' cannot be used:",
        "backend 'vendor' cannot be made: no accelerator is plugged in",
    ]


def test_an_unknown_section_or_item_is_told_what_there_is():
    section, item = (run_kit("cpu", [only]) for only in ("view", "views/slice"))

    assert section.returncode == item.returncode == 2
    assert section.stderr.startswith("there is no section 'view': there are device, copies, views")
    assert item.stderr.startswith("section views has no item 'slice': --list --only views lists")


def reported(monkeypatch, with_backend: dict[str, Result], without: dict[str, Result]):
    """The report of a section whose items come to these results."""
    tried = iter([with_backend, without])
    monkeypatch.setattr(runner, "_tried", lambda *_: next(tried))
    return run_section(
        SECTIONS["operators"], list(with_backend), Options("reference"), ForkServer()
    )


def test_what_fails_alike_without_the_backend_is_listed_and_is_no_failure_of_it(monkeypatch):
    report = reported(
        monkeypatch,
        {"sort": Result(failure="differs by 3e-5"), "add": Result()},
        {"sort": Result(failure="differs by 2e-5")},
    )

    assert report.succeeded
    told = page(Subject({}, Options("reference")), [report])
    assert "**Passed**: 1 of 1 sections. Beside these 1 differ without the backend, too." in told
    assert "## What differs without the backend, too" in told
    assert "| `sort` | " in told


def test_what_fails_otherwise_without_the_backend_is_a_failure_of_it(monkeypatch):
    report = reported(
        monkeypatch,
        {"sort": Result(failure="differs by 3e-5"), "add": Result()},
        {"sort": Result(failure="RuntimeError: no such device")},
    )

    assert list(report.failed) == ["sort"]


def test_a_process_that_ends_or_hangs_is_a_failure_whatever_happens_without_the_backend():
    with ForkServer() as server:
        options = Options("reference")
        report = run_section(SECTIONS["operators"], ["sort"], options, server, seconds=0.1)

    assert list(report.failed) == ["sort"]
    assert not report.succeeded


def test_a_section_of_which_nothing_passed_has_not(monkeypatch):
    def failed() -> dict[str, Result]:
        return {"sort": Result(failure="differs by 3e-5")}

    assert not reported(monkeypatch, failed(), failed()).succeeded


def test_a_module_that_lacks_is_named():
    section = replace(SECTIONS["operators"], needs=("no_such_module",))

    report = run_section(section, [], Options("cpu"), ForkServer())

    assert report.failed["operators"].failure == (
        "needs no_such_module, which PyTorch's own samples of operators import: install "
        "no_such_module beside torch"
    )


def test_items_run_in_this_process_for_a_debugger():
    done = run_kit("reference", ["views/slices"], "--here")

    assert (done.returncode, done.stdout) == (0, "views/slices: passed\n")
