"""``Trainer(accelerator="lazy")`` and ``Fabric(accelerator="lazy")`` of Lightning.

Lightning has a registry of accelerators. A strategy of one device it gives to CUDA and MPS only,
mixed precision to the CPU, MPS and CUDA, and DistributedDataParallel on what is not the CPU it sets
up on a stream of CUDA: what it chose for others is exchanged here. Checked with Lightning 2.6.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from types import ModuleType
from typing import Any

import torch

from torch_lazy.integration.at_import import when_imported

# The module that chooses what a trainer runs on, and its class that does, by package: `lightning`
# is both of the others under one name.
_CONNECTORS = {
    "lightning.pytorch.trainer.connectors.accelerator_connector": "_AcceleratorConnector",
    "lightning.fabric.connector": "_Connector",
    "pytorch_lightning.trainer.connectors.accelerator_connector": "_AcceleratorConnector",
    "lightning_fabric.connector": "_Connector",
}

# The module of `DDPStrategy`, and its method that says what is given to DistributedDataParallel as
# `device_ids`, by package.
_DDP_STRATEGIES = {
    "lightning.pytorch.strategies.ddp": "determine_ddp_device_ids",
    "lightning.fabric.strategies.ddp": "_determine_ddp_device_ids",
    "pytorch_lightning.strategies.ddp": "determine_ddp_device_ids",
    "lightning_fabric.strategies.ddp": "_determine_ddp_device_ids",
}


def install() -> None:
    """Registers the accelerator, now or when a package of Lightning is imported."""
    for name, connector in _CONNECTORS.items():
        when_imported(name, functools.partial(_let_lightning_choose, connector=connector))
    for name, method in _DDP_STRATEGIES.items():
        when_imported(name, functools.partial(_let_ddp_take_no_stream, method=method))


def _let_lightning_choose(module: ModuleType, connector: str) -> None:
    """Where another version of Lightning chooses in another way nothing is changed."""
    registry = _registry(module)
    chooser = getattr(module, connector, None)
    names = ("Accelerator", "SingleDeviceStrategy", "MixedPrecision")
    methods = ("_choose_strategy", "_check_and_init_precision")
    if registry is None or not all(hasattr(module, name) for name in names):
        return
    if not all(hasattr(chooser, method) for method in methods):
        return
    accelerator = _accelerator_class(module)
    registry.register("lazy", accelerator, description="Device lazy", override=True)
    choose_strategy, choose_precision = (getattr(chooser, method) for method in methods)

    @functools.wraps(choose_strategy)
    def strategy(self: Any) -> Any:
        chosen = choose_strategy(self)
        if isinstance(self.accelerator, accelerator) and isinstance(
            chosen, module.SingleDeviceStrategy
        ):
            return module.SingleDeviceStrategy(device=self._parallel_devices[0])
        return chosen

    @functools.wraps(choose_precision)
    def precision(self: Any) -> Any:
        if not isinstance(self.accelerator, accelerator):
            return choose_precision(self)
        with warnings.catch_warnings():
            # The scaler of gradients that is exchanged below.
            warnings.filterwarnings("ignore", message=".*GradScaler is enabled, but CUDA is not")
            chosen = choose_precision(self)
        by_user = (
            getattr(self, n, None) for n in ("_precision_plugin_flag", "_precision_instance")
        )
        if not isinstance(chosen, module.MixedPrecision) or any(chosen is user for user in by_user):
            return chosen
        return module.MixedPrecision(chosen.precision, "lazy")

    chooser._choose_strategy = strategy
    chooser._check_and_init_precision = precision


def _let_ddp_take_no_stream(module: ModuleType, method: str) -> None:
    """Has DistributedDataParallel be given no devices, as on the CPU: the batches are there."""
    strategy = getattr(module, "DDPStrategy", None)
    device_ids = getattr(strategy, method, None)
    if device_ids is None:
        return

    @functools.wraps(device_ids)
    def ids(self: Any) -> Any:
        return None if self.root_device.type == "lazy" else device_ids(self)

    setattr(strategy, method, ids)


def _registered(connector: str) -> Any:
    """An accelerator in a process that was sent one: importing this module has it registered."""
    return _registry(importlib.import_module(connector)).get("lazy")


def _registry(module: ModuleType) -> Any:
    return getattr(module, "AcceleratorRegistry", getattr(module, "ACCELERATOR_REGISTRY", None))


def _accelerator_class(module: ModuleType) -> type:
    """The device as an accelerator of the package that ``module`` belongs to."""

    class LazyAccelerator(module.Accelerator):  # type: ignore[name-defined]
        """Processes have a device each, or share the one there is, as those on the CPU do."""

        def setup_device(self, device: torch.device) -> None:
            if device.type != "lazy":
                raise ValueError(
                    f"accelerator 'lazy' was given device {device}; a strategy made by hand takes "
                    "a device of type 'lazy'"
                )
            torch.get_device_module("lazy").set_device(device)

        def teardown(self) -> None:
            pass

        def __reduce__(self) -> Any:
            return _registered, (module.__name__,)

        def get_device_stats(self, device: Any) -> dict[str, Any]:
            return dict(torch.get_device_module("lazy").memory_stats(device))

        @staticmethod
        def parse_devices(devices: int | str | list[int]) -> list[int]:
            """Indices of devices: of the first so many, or those listed, also as text."""
            count = torch.get_device_module("lazy").device_count()
            asked = devices
            if isinstance(asked, str):
                try:
                    numbers = [int(number) for number in asked.split(",") if number.strip()]
                except ValueError:
                    numbers = []
                asked = numbers[0] if "," not in asked and len(numbers) == 1 else numbers
            if isinstance(asked, int):
                asked = list(range(count if asked == -1 else asked))
                asked = [0] * len(asked) if count == 1 else asked
            if not asked or not all(type(i) is int and 0 <= i < count for i in asked):
                raise ValueError(
                    f"`devices={devices!r}`: accelerator 'lazy' takes how many, a list of indices "
                    f"below {count}, which is how many devices there are, or 'auto'"
                )
            return list(asked)

        @staticmethod
        def get_parallel_devices(devices: list[int]) -> list[torch.device]:
            return [torch.device("lazy", index) for index in devices]

        @staticmethod
        def auto_device_count() -> int:
            return torch.get_device_module("lazy").device_count()

        @staticmethod
        def is_available() -> bool:
            return True

        @staticmethod
        def name() -> str:
            return "lazy"

    return LazyAccelerator
