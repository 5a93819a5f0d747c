"""`torch.lazy` has the habits of `torch.cuda`: what scripts ask a device's module for."""

from __future__ import annotations

import re
import warnings

import pytest
import torch
from behaviour import run_script
from torch import nn

from torch_lazy.absent import INSTEAD

pytestmark = pytest.mark.recording


def test_the_module_is_the_devices():
    assert torch.get_device_module("lazy") is torch.lazy
    assert torch.get_device_module(torch.device("lazy")) is torch.lazy


def test_every_public_name_is_there():
    assert [name for name in torch.lazy.__all__ if not hasattr(torch.lazy, name)] == []


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="utilization"):
        torch.lazy.utilization()


def test_the_device_is_there_and_needs_no_initialization():
    torch.lazy.init()

    assert torch.lazy.is_available()
    assert torch.lazy.is_initialized()
    assert torch.lazy.device_count() == 1
    assert torch.lazy.current_device() == 0


@pytest.mark.parametrize("device", [0, "lazy", "lazy:0", torch.device("lazy"), None, -1])
def test_a_device_is_current_in_its_context(device):
    with torch.lazy.device(device):
        assert torch.lazy.current_device() == 0


PROCESS_OF_TWO = """
import io, torch, torch_lazy
x = torch.ones(2, device="lazy")
others = [torch.ones(2, device="lazy:0"), torch.ones(2).to("lazy:1"), x.to("lazy:0")]
for _ in range(30):
    total = sum(others, x).sum()
    assert {str(t.device) for t in [x, total, *others]} == {"lazy:1"}
    assert total.item() == 8
torch.lazy.set_device(1)
assert (torch.lazy.current_device(), torch.lazy.device_count()) == (1, 2)
assert str(torch.Generator("lazy").device) == str(torch.lazy.current_stream().device) == "lazy:1"
file = io.BytesIO()
torch.save(x, file)
for location in (None, "lazy", {"lazy:1": "lazy:0"}):
    file.seek(0)
    assert torch.equal(torch.load(file, map_location=location), x)
try:
    torch.ones(2, device="lazy:2")
except RuntimeError as error:
    assert "device lazy has 2 devices" in str(error)
else:
    raise AssertionError("there is no third process")
"""


@pytest.mark.on_cpu("a process of CUDA's may use any device")
def test_the_device_of_a_process_has_its_number_and_the_others_names():
    done = run_script(PROCESS_OF_TWO, LOCAL_RANK="1", LOCAL_WORLD_SIZE="2")

    assert done.returncode == 0, done.stderr


@pytest.mark.on_cpu("a process of CUDA's may use any device")
@pytest.mark.parametrize("rank", ["2", "-1", "none", ""])
def test_a_number_that_no_launcher_gives_is_not_the_devices(rank):
    code = """if True:
        import torch, torch_lazy
        print(torch.ones(2, device="lazy").device, torch.lazy.device_count())
    """

    done = run_script(code, LOCAL_RANK=rank, LOCAL_WORLD_SIZE="2")

    assert done.stdout.split() == ["lazy:0", "1"], done.stderr


def test_the_context_of_a_device_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="there is no device lazy:1"):
        torch.lazy.device(1)
    with pytest.raises(ValueError, match="expected a lazy device, but got cpu"):
        torch.lazy.device("cpu")


def test_the_device_of_any_tensor_is_a_context():
    for tensor in (torch.ones(1, device="lazy"), torch.ones(1)):
        with torch.lazy.device_of(tensor):
            assert torch.lazy.current_device() == 0


@pytest.mark.on_cpu("another device's properties are its own")
def test_properties_tell_name_memory_and_processors():
    properties = torch.lazy.get_device_properties("lazy:0")

    assert properties.name == torch.lazy.get_device_name()
    assert properties.total_memory > 2**20
    assert properties.multi_processor_count >= 1
    assert (properties.major, properties.minor) == torch.lazy.get_device_capability() == (0, 0)


def test_what_the_device_can_do():
    assert torch.lazy.is_bf16_supported()
    assert not torch.lazy.is_tf32_supported()
    assert not torch.lazy.can_device_access_peer(0, 0)
    with pytest.raises(ValueError, match="there is no device lazy:1"):
        torch.lazy.can_device_access_peer(0, 1)
    torch.lazy.ipc_collect()


def test_free_memory_is_part_of_all_memory():
    free, total = torch.lazy.mem_get_info()

    assert 0 < free <= total == torch.lazy.get_device_properties().total_memory


@pytest.mark.on_cpu("about the allocator of lazy tensors on the CPU")
def test_numbers_of_bytes_have_the_names_of_cuda():
    x = torch.ones(1000, device="lazy")
    stats = torch.lazy.memory_stats()

    for kind in ("allocated_bytes", "reserved_bytes"):
        for when in ("current", "peak"):
            assert stats[f"{kind}.all.{when}"] == stats[f"{kind}.{when}"] > 0
    assert x.is_lazy


@pytest.mark.on_cpu("about the allocator of lazy tensors on the CPU")
def test_accumulated_counts_begin_anew():
    torch.lazy.reset_accumulated_memory_stats()
    before = torch.lazy.memory_stats()["allocations"]

    x = torch.ones(1000, device="lazy")

    assert before == 0
    assert torch.lazy.memory_stats()["allocations"] > 0
    assert x.is_lazy


@pytest.mark.parametrize(
    "reset", [torch.lazy.reset_max_memory_allocated, torch.lazy.reset_max_memory_cached]
)
def test_the_older_names_reset_the_peak(reset):
    torch.ones(900, 1100, device="lazy")

    reset()

    assert torch.lazy.max_memory_allocated() == torch.lazy.memory_allocated()


@pytest.mark.on_cpu("about the allocator of lazy tensors on the CPU")
def test_a_summary_has_the_bytes_in_use():
    x = torch.ones(4, 2**20, device="lazy")

    in_use = torch.lazy.memory_allocated() / 2**20
    summary = torch.lazy.memory_summary()

    assert f"{in_use:.2f}" in summary
    assert "allocations" in summary
    assert "allocations" not in torch.lazy.memory_summary(abbreviated=True)
    assert x.is_lazy


@pytest.mark.on_cpu("about the allocator of lazy tensors on the CPU")
def test_a_limit_of_memory_warns_that_there_is_none():
    with pytest.warns(UserWarning, match="does not limit its memory"):
        torch.lazy.set_per_process_memory_fraction(0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.lazy.set_per_process_memory_fraction(1.0)

    assert torch.lazy.get_per_process_memory_fraction() == 1.0
    with pytest.raises(ValueError, match="from 0 to 1, not 2"):
        torch.lazy.set_per_process_memory_fraction(2)
    with pytest.raises(TypeError, match="must be a number, not str"):
        torch.lazy.set_per_process_memory_fraction("half")


@pytest.mark.on_cpu("about the allocator of lazy tensors on the CPU")
def test_running_out_of_memory_is_caught_by_the_name_of_cuda():
    with pytest.raises(torch.lazy.OutOfMemoryError, match="can't allocate memory"):
        torch.ones(1 << 45, device="lazy")

    assert torch.lazy.OutOfMemoryError is torch.OutOfMemoryError


def test_a_tensor_says_where_it_is():
    x = torch.ones(1, device="lazy")

    assert x.get_device() == 0
    assert x.is_lazy
    assert not x.cpu().is_lazy


@pytest.mark.parametrize("named", [(), (0,), ("lazy:0",), (torch.device("lazy"),)])
def test_tensors_and_modules_move_to_a_device_by_its_number_or_name(named):
    assert torch.ones(2).lazy(*named).device == torch.device("lazy:0")
    assert nn.Linear(2, 2).lazy(*named).weight.device == torch.device("lazy:0")


def test_moving_by_method_takes_what_cudas_takes():
    moved = torch.ones(1, 2, 3, 4).lazy(non_blocking=True, memory_format=torch.channels_last)

    assert moved.is_contiguous(memory_format=torch.channels_last)
    with pytest.raises(ValueError, match="expected a lazy device, but got cpu"):
        torch.ones(2).lazy("cpu")


def test_the_default_device_makes_tensors_and_modules():
    torch.set_default_device("lazy")
    try:
        made = torch.zeros(2), nn.Linear(2, 2).weight
        default = torch.get_default_device()
    finally:
        torch.set_default_device(None)

    assert all(tensor.is_lazy for tensor in made)
    assert default.type == "lazy"
    assert not torch.zeros(2).is_lazy


def test_the_benchmark_timer_times_the_device():
    from torch.utils.benchmark import Timer

    measured = Timer("x + 1", globals={"x": torch.ones(3, device="lazy")}).timeit(5)

    assert measured.number_per_run == 5
    assert measured.median > 0


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_a_name_that_only_cuda_has_is_missing_and_the_error_says_what_to_do(name):
    assert hasattr(torch.cuda, name)
    assert not hasattr(torch.lazy, name)
    with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}: {INSTEAD[name]}")):
        getattr(torch.lazy, name)
