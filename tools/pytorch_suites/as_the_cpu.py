"""PyTorch's device-generic tests for a device that PyTorch does not test, in the CPU's place."""

from __future__ import annotations

from typing import Any

from torch.testing._internal import common_device_type, common_utils
from torch.testing._internal.opinfo import core

# Tests that say they need more memory are not run: the machine may be shared.
LARGEST_TEST_BYTES = 2 << 30


def instantiate_for(device_type: str) -> None:
    """Test classes that are made from now on are for this device, with the tests, dtypes and
    tolerances of the CPU.

    What the suites skip, expect to fail or tolerate on the CPU holds here too, and what they skip
    on devices that they do not know, or on "lazy", which they take for PyTorch's own lazy tensor,
    is not skipped.
    """

    class Base(common_device_type.DeviceTypeTestBase):
        def _should_stop_test_suite(self) -> bool:
            return False

        @classmethod
        def get_primary_device(cls) -> str:
            # As "cuda:0": tests compare it with `.device`. The CPU has no number.
            return device_type if device_type == "cpu" else f"{device_type}:0"

        @classmethod
        def _get_dtypes(cls, test: Any) -> Any:
            dtypes = getattr(test, "dtypes", None)
            return dtypes and dtypes.get("cpu", dtypes.get("all"))

    Base.device_type = device_type

    def bases(except_for: Any = None, only_for: Any = None, *_: Any) -> list[type]:
        if device_type != "cpu" and only_for in ("cpu", ("cpu",), ["cpu"]):
            return []
        wanted = "cpu" not in (except_for or ()) and (not only_for or "cpu" in only_for)
        return [Base] if wanted else []

    common_device_type.get_desired_device_type_test_bases = bases
    native = (*common_utils.NATIVE_DEVICES, device_type)
    common_device_type.NATIVE_DEVICES = common_utils.NATIVE_DEVICES = native
    common_device_type._has_sufficient_memory = lambda _, size: size <= LARGEST_TEST_BYTES
    _skip_as_on_the_cpu(device_type)
    _decorate_as_on_the_cpu(device_type)


def _skip_as_on_the_cpu(tested: str) -> None:
    skip = common_device_type.skipIf.__init__

    def as_on_the_cpu(self: Any, dep: Any, reason: str, device_type: Any = None) -> None:
        where = tested if device_type == "cpu" else device_type
        skip(self, dep and device_type != "lazy", reason, where)

    common_device_type.skipIf.__init__ = as_on_the_cpu


def _decorate_as_on_the_cpu(device_type: str) -> None:
    """Skips, expected failures and tolerances of operators, which name the CPU and its classes."""
    is_active = core.DecorateInfo.is_active

    def as_on_the_cpu(
        self: Any, class_name: str, test_name: str, _: str, dtype: Any, parameters: Any
    ) -> bool:
        on_the_cpu = class_name.removesuffix(device_type.upper()) + "CPU"
        name = on_the_cpu if self.cls_name == on_the_cpu else class_name
        return is_active(self, name, test_name, "cpu", dtype, parameters)

    core.DecorateInfo.is_active = as_on_the_cpu
