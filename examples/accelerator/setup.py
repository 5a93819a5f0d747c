"""Builds the libraries with CMake; pyproject.toml holds everything else. $CMAKE_ARGS are
further arguments to CMake."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class CMakeBuild(build_ext):
    def build_extension(self, ext: Extension) -> None:
        package = Path(self.get_ext_fullpath(ext.name)).resolve().parent
        configure = ["cmake", "-S", str(Path(__file__).resolve().parent), "-B", self.build_temp]
        configure += [f"-DPython_EXECUTABLE={sys.executable}", f"-DACCELERATOR_PACKAGE={package}"]
        configure += shlex.split(os.environ.get("CMAKE_ARGS", ""))
        subprocess.run(configure, check=True)
        subprocess.run(["cmake", "--build", self.build_temp, "--parallel"], check=True)


setup(
    ext_modules=[Extension("torch_accelerator.libraries", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
)
