"""Device lazy where the execution device has more than one: lazy:N is its device N.

All in child processes, with lazy tensors on the example accelerator, which has two.
"""

from __future__ import annotations

import pytest
from example_accelerator import PRELUDE, run

pytestmark = pytest.mark.recording

ON_ACCEL = {"TORCH_LAZY_BACKEND": "reference", "TORCH_LAZY_DEVICE": "accel"}

TENSORS = """
first, second = torch.arange(3.0, device="lazy:0"), torch.arange(3.0, device="lazy:1")
"""


def printed(site, script: str) -> list[str]:
    return run(site, "-c", PRELUDE + TENSORS + script, **ON_ACCEL).splitlines()


def test_results_stay_on_the_device_of_their_arguments(accelerator_site):
    script = """
def step():
    return (first * 2 + 1).relu(), (second * 2 + 1).relu()
for result in hot(step):
    print(result.device, result.tolist())
print(torch.lazy.metrics()["windows"]["hot"] >= 4)
"""

    assert printed(accelerator_site, script) == [
        "lazy:0 [1.0, 3.0, 5.0]",
        "lazy:1 [1.0, 3.0, 5.0]",
        "True",
    ]


def test_what_is_made_on_another_device_is_there_in_hot_windows_too(accelerator_site):
    script = """
print(hot(lambda: torch.zeros_like(first + 1, device="lazy:1")).device)
print(hot(lambda: torch.zeros_like(first + 1, device="cpu")).device)
"""

    assert printed(accelerator_site, script) == ["lazy:1", "cpu"]


def test_tensors_of_two_devices_do_not_mix(accelerator_site):
    script = """
hot(lambda: first + first)
try:
    first + second
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""

    assert printed(accelerator_site, script) == [
        "Expected all tensors to be on the same device, but found at least two devices, "
        "accel:0 and accel:1!"
    ]


def test_copies_go_between_devices(accelerator_site):
    script = """
moved = (first + 1).to("lazy:1")
second.copy_(first * 2)
print(moved.device, moved.tolist(), second.tolist(), second.cpu().device)
"""

    assert printed(accelerator_site, script) == ["lazy:1 [1.0, 2.0, 3.0] [0.0, 2.0, 4.0] cpu"]


def test_the_current_device_is_what_lazy_means(accelerator_site):
    script = """
with torch.lazy.device(1):
    print(torch.lazy.current_device(), torch.ones(2, device="lazy").device)
print(torch.lazy.current_device(), torch.lazy.device_count())
"""

    assert printed(accelerator_site, script) == ["1 lazy:1", "0 2"]


def test_a_stream_is_of_its_device_and_a_window_of_its_stream(accelerator_site):
    script = """
stream = torch.lazy.Stream("lazy:1")
with torch.lazy.stream(stream):
    inside = torch.lazy.current_stream(1) == stream
    second.add_(1)
second.add_(1)
print(stream.device, inside, torch.lazy.current_stream(1) == stream, second.tolist())
print(torch.lazy.metrics()["flushes"]["another device or stream"] > 0)
"""

    assert printed(accelerator_site, script) == ["lazy:1 True False [2.0, 3.0, 4.0]", "True"]


def test_a_device_that_is_not_there_is_named(accelerator_site):
    script = """
try:
    torch.ones(2, device="lazy:2")
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""

    assert printed(accelerator_site, script) == [
        "there is no device lazy:2: device lazy has 2 devices"
    ]


def test_the_device_does_not_change_while_there_are_lazy_tensors(accelerator_site):
    script = """
import gc; gc.collect()
try:
    torch.lazy.config.device = "cpu"
except ValueError as error:
    print(error)
"""

    sentence = (
        "device lazy lives on device accel and cannot move to 'cpu' while there are lazy tensors, "
        "which have 2 storages: drop them before (gc.collect() finds those in reference cycles), "
        "or choose the device when the process starts, by TORCH_LAZY_DEVICE"
    )
    assert printed(accelerator_site, script) == [sentence]


def test_a_device_that_cannot_be_chosen_leaves_the_one_before(accelerator_site):
    script = """
del first, second
for name in ("cuda", "nonsense"):
    try:
        torch.lazy.config.device = name
    except RuntimeError as error:
        print(str(error).split(",")[0])
print(torch.lazy.config.device, torch.ones(2, device="lazy").tolist())
"""

    assert printed(accelerator_site, script) == [
        "device lazy is to live on device cuda",
        "torch.lazy.config.device is 'nonsense'",
        "accel [1.0, 1.0]",
    ]


def test_tensors_of_other_threads_and_of_before_a_fork_are_counted(accelerator_site):
    script = """
import os, threading, warnings
warnings.filterwarnings("ignore", "This process .* is multi-threaded")  # from Python 3.12 on
del first, second
torch.lazy.config.device = "cpu"
kept = []
stop = threading.Event()
def work():
    kept.append(torch.ones(2, device="lazy"))
    stop.wait()
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
while len(kept) < 4:
    pass
child = os.fork()
if child == 0:
    for _ in range(4):
        thread = threading.Thread(target=lambda: torch.ones(2, device="lazy"))
        thread.start(); thread.join()
    try:
        torch.lazy.config.device = "accel"
    except ValueError as error:
        print("4 storages" in str(error), flush=True)
    os._exit(0)
os.waitpid(child, 0)
stop.set()
"""

    assert printed(accelerator_site, script) == ["True"]


def test_the_device_changes_where_there_are_no_lazy_tensors(accelerator_site):
    script = """
def on(name):
    torch.lazy.config.device = name
    x = torch.arange(3.0).to("lazy")
    for _ in range(5):
        y = (x * 2 + 1).relu()
        torch.lazy.synchronize()
        torch.lazy.wait_for_compiles()
    print(torch.lazy.get_device_name(), torch.lazy.device_count(), y.tolist())

del first, second
on("cpu")
on("accel")
on("cpu")
"""

    assert [line.rsplit(") ", 1)[1] for line in printed(accelerator_site, script)] == [
        "1 [1.0, 3.0, 5.0]",
        "2 [1.0, 3.0, 5.0]",
        "1 [1.0, 3.0, 5.0]",
    ]


def test_a_file_remembers_the_device_of_each_tensor(accelerator_site, tmp_path):
    script = f"""
for options in [{{}}, {{"_use_new_zipfile_serialization": False}}]:
    torch.save([first, second], "{tmp_path}/pair.pt", **options)
    for tensor in torch.load("{tmp_path}/pair.pt"):
        print(tensor.device, tensor.tolist())
print([t.device for t in torch.load("{tmp_path}/pair.pt", map_location={{"lazy:1": "lazy:0"}})])
"""

    assert printed(accelerator_site, script) == 2 * [
        "lazy:0 [0.0, 1.0, 2.0]",
        "lazy:1 [0.0, 1.0, 2.0]",
    ] + ["[device(type='lazy', index=0), device(type='lazy', index=0)]"]


def test_asking_or_opening_for_another_device_leaves_the_current_one(accelerator_site, tmp_path):
    script = f"""
import safetensors, safetensors.torch
safetensors.torch.save_file({{"x": torch.ones(2)}}, "{tmp_path}/x.safetensors")
with safetensors.safe_open("{tmp_path}/x.safetensors", "pt", device="lazy:1") as file:
    print(file.get_tensor("x").device, file.get_slice("x")[:1].device)
from torch_lazy.integration import accelerator
accelerator._device_capability(1)
print(torch.lazy.current_device())
"""

    assert printed(accelerator_site, script) == ["lazy:1 lazy:1", "0"]
