"""Builds the extension module with CMake; pyproject.toml holds everything else.

The build directory is stable (`build/`, or $TORCH_LAZY_BUILD_DIR), so that installing again
compiles only what changed. For an editable install CMake writes the module, and what lies beside
it, into python/torch_lazy; else into the package that setuptools gathers, from a build directory of
its own within, so that `ninja -C build` goes on writing into the tree. Further CMake arguments come
from $CMAKE_ARGS: "-DTORCH_LAZY_CPU_COMPILER=OFF", for instance.
"""

import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("TORCH_LAZY_BUILD_DIR", ROOT / "build")).resolve()


def torch_version() -> str:
    """The version of torch in this environment, found without importing it."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        sys.exit(
            "torch_lazy is compiled against the torch in your environment, and there is none.\n"
            "Install torch first, then run: pip install --no-build-isolation ."
        )


def torch_requirement() -> str:
    """Pins the minor version: the C++ layout of tensors changes between minor versions."""
    major, minor = torch_version().split(".")[:2]
    return f"torch=={major}.{minor}.*"


class Build(build):
    """Keeps setuptools' own files out of the way of CMake's."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.build_base = os.path.relpath(BUILD / "setuptools", ROOT)


class CMakeBuild(build_ext):
    """Runs CMake for the one extension module."""

    def build_extension(self, ext: Extension) -> None:
        torch_version()  # fails with a sentence instead of a CMake error
        cmake = shutil.which("cmake")
        if cmake is None:
            sys.exit("torch_lazy needs cmake (3.24 or newer) to build: install it and try again.")
        if self.editable_mode:
            build, package = BUILD, ROOT / "python" / "torch_lazy"
        else:
            build = BUILD / "package"
            package = Path(self.get_ext_fullpath(ext.name)).resolve().parent
        configure = [cmake, "-S", str(ROOT), "-B", str(build)]
        configure += [f"-DPython_EXECUTABLE={sys.executable}", f"-DTORCH_LAZY_MODULE_DIR={package}"]
        if shutil.which("ninja") and not (build / "Makefile").exists():
            configure += ["-G", "Ninja"]
        configure += shlex.split(os.environ.get("CMAKE_ARGS", ""))
        subprocess.run(configure, check=True)
        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)
        subprocess.run(
            [cmake, "--build", str(build), "--target", "_C", "--parallel", jobs], check=True
        )

    def copy_extensions_to_source(self) -> None:
        """Nothing to do: CMake has written them there."""


setup(
    install_requires=[torch_requirement()],
    ext_modules=[Extension("torch_lazy._C", sources=[])],
    cmdclass={"build": Build, "build_ext": CMakeBuild},
)
