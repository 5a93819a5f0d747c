"""`torch.accelerator` as device `lazy`, where the user asks for it."""

from __future__ import annotations

import pytest
import torch
from behaviour import run_script, torch_lazy

pytestmark = [
    pytest.mark.recording,
    pytest.mark.skipif(
        torch._C._accelerator_getAccelerator() is not None,
        reason="torch.accelerator stays the accelerator that this machine has",
    ),
]


@pytest.fixture
def chosen():
    torch_lazy.config.accelerator = True
    yield
    torch_lazy.config.accelerator = False


def test_there_is_none_unless_it_is_asked_for():
    assert torch.accelerator.current_accelerator() is None
    assert not torch.accelerator.is_available()
    assert torch.accelerator.device_count() == 0
    with pytest.raises(RuntimeError, match="Cannot access accelerator device"):
        torch.accelerator.synchronize()


@pytest.mark.usefixtures("chosen")
def test_the_accelerator_is_the_device():
    assert torch.accelerator.current_accelerator() == torch.device("lazy")
    assert torch.accelerator.current_accelerator(check_available=True) == torch.device("lazy")
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == 1


@pytest.mark.usefixtures("chosen")
def test_the_default_device_of_modules_is_the_device():
    assert torch.get_device_module() is torch_lazy


@pytest.mark.usefixtures("chosen")
def test_fully_shard_without_a_mesh_shards_over_the_device(tmp_path):
    from torch.distributed.fsdp import fully_shard

    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group(store=store, rank=0, world_size=1)
    try:
        with torch.device("meta"):
            model = torch.nn.Linear(3, 2)
        fully_shard(model)
        model.to_empty(device="lazy")
        torch.nn.init.ones_(model.weight)
        torch.nn.init.zeros_(model.bias)
        mesh = model.weight.device_mesh

        y = model(torch.ones(4, 3, device="lazy"))

        assert mesh.device_type == "lazy"
        assert y.tolist() == [[3, 3]] * 4
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("chosen")
def test_its_index_is_read_and_set():
    torch.accelerator.set_device_index(0)
    torch.accelerator.set_device_index("lazy:0")
    with torch.accelerator.device_index(0), torch.accelerator.device_index(None):
        assert torch.accelerator.current_device_index() == 0

    with pytest.raises(ValueError, match="there is no device lazy:1"):
        torch.accelerator.set_device_index(1)


@pytest.mark.usefixtures("chosen")
@pytest.mark.parametrize("device", [None, 0, "lazy", "lazy:0"])
def test_synchronize_runs_what_is_pending(device):
    torch_lazy.synchronize()
    x = torch.ones(3, device="lazy")
    torch_lazy.reset_metrics()

    y = x + 1
    torch.accelerator.synchronize(device)

    assert sum(torch_lazy.metrics()["windows"].values()) == 1
    assert y.tolist() == [2, 2, 2]


@pytest.mark.usefixtures("chosen")
def test_a_device_of_another_type_is_refused():
    with pytest.raises(ValueError, match="cpu doesn't match the current accelerator lazy"):
        torch.accelerator.synchronize("cpu")


@pytest.mark.usefixtures("chosen")
def test_memory_is_the_devices():
    x = torch.ones(900, 1100, device="lazy")
    assert torch.accelerator.memory_allocated() == torch.lazy.memory_allocated()
    assert torch.accelerator.memory_reserved() == torch.lazy.memory_reserved()
    del x

    assert torch.accelerator.max_memory_allocated() > torch.lazy.memory_allocated()
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.max_memory_allocated() == torch.lazy.max_memory_allocated()
    assert torch.accelerator.max_memory_reserved() == torch.lazy.max_memory_reserved()


@pytest.mark.usefixtures("chosen")
def test_statistics_begin_anew():
    torch.ones(3, device="lazy")

    torch.accelerator.reset_accumulated_memory_stats()

    assert torch.accelerator.memory_stats()["allocations"] == 0


@pytest.mark.usefixtures("chosen")
def test_the_cache_is_emptied():
    torch.ones(3900, 4200, device="lazy")  # freed at once
    before = torch.accelerator.memory_reserved()

    torch.accelerator.empty_cache()
    torch.accelerator.empty_host_cache()

    assert torch.accelerator.memory_reserved() <= before - 64_000_000


@pytest.mark.usefixtures("chosen")
def test_memory_of_the_machine_and_types_of_numbers_are_told():
    free, total = torch.accelerator.get_memory_info()
    kinds = torch.accelerator.get_device_capability()["supported_dtypes"]

    assert 0 < free <= total
    assert {torch.float32, torch.bfloat16, torch.complex64, torch.bool} <= kinds


@pytest.mark.usefixtures("chosen")
def test_streams_are_the_devices():
    stream = torch.lazy.Stream()

    torch.accelerator.set_stream(stream)
    current = torch.accelerator.current_stream()
    torch.accelerator.set_stream(torch.lazy.default_stream())

    assert current == stream


@pytest.mark.usefixtures("chosen")
def test_fork_rng_takes_it_for_the_device():
    with torch.random.fork_rng():
        first = torch.rand(3, device="lazy").tolist()

    assert torch.rand(3, device="lazy").tolist() == first


def test_the_environment_asks_for_it_too():
    done = run_script(
        "import torch; print(torch.accelerator.current_accelerator())", TORCH_LAZY_ACCELERATOR="1"
    )

    assert done.stdout.split() == ["lazy"], done.stderr
