"""What other projects' builds need to know of this package, named as in ``torch.utils``."""

from pathlib import Path

cmake_prefix_path = str(Path(__file__).parent / "share" / "cmake")
"""For ``CMAKE_PREFIX_PATH``: CMake's ``find_package(TorchLazy)`` then finds this package."""
