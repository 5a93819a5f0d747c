"""What operators choose by device, lazy tensors choose by the device that they live on.

All in child processes, with lazy tensors on the example accelerator.
"""

from __future__ import annotations

import pytest
from example_accelerator import PRELUDE, run

pytestmark = pytest.mark.recording

ON_ACCEL = {"TORCH_LAZY_BACKEND": "reference", "TORCH_LAZY_DEVICE": "accel"}

IMPORTS = PRELUDE + "import torch.nn.functional as F\n"

# What a vendor's library registers. Lazy tensors are cast by device lazy, never by these kernels:
# that there is one makes the operator one that the device casts.
AUTOCAST_LISTS = """
library = torch.library.Library("aten", "IMPL")
def cast(*arguments, **named):
    raise RuntimeError("the vendor's own kernel")
for name in ["mm", "softmax.int", "norm.ScalarOpt_dim", "addcmul", "binary_cross_entropy"]:
    library.impl(name, cast, "AutocastPrivateUse1")
low, full = torch.ones(2, 2, device="lazy").half(), torch.ones(2, 2, device="lazy")
"""

# The example registers kernels for all operators: what replaces one of them is warned about.
ATTENTION = """
import warnings
warnings.filterwarnings("ignore", "Warning only once for all operators")
library = torch.library.Library("aten", "IMPL")
def choice(query, key, value, mask=None, dropout_p=0.0, is_causal=False, **named):
    return 4 if dropout_p == 0 else 0  # overrideable, math
def attention(query, key, value, bias=None, dropout_p=0.0, is_causal=False, *debug, **scale):
    called.append(None if bias is None else bias.dtype)
    none = query.new_empty(0)
    return F.linear(query, query.new_zeros(value.shape[-1], query.shape[-1])) + 7, \\
        none, none, none, 1, 1, none, none, none
library.impl("_fused_sdp_choice", choice, "PrivateUse1")
library.impl("_scaled_dot_product_fused_attention_overrideable", attention, "PrivateUse1")
called = []
q = torch.randn(1, 2, 3, 4).to("lazy")
"""


def printed(site, script: str, **environment: str) -> list[str]:
    return run(site, "-c", IMPORTS + script, **ON_ACCEL, **environment).splitlines()


def test_autocast_casts_what_the_device_casts(accelerator_site):
    script = """
def step():
    with torch.autocast("lazy"):
        norm = torch._VF.norm(low, 2, [0])
        return full @ full, low.softmax(0), norm, torch.addcmul(low, full, low), low.exp()
for result in hot(step):
    print(result.dtype)
"""

    assert printed(accelerator_site, AUTOCAST_LISTS + script) == [
        "torch.float16",  # the dtype that PyTorch gives such a device, by the list of products
        "torch.float32",  # a result of float32
        "torch.float32",  # the overload that takes a dtype
        "torch.float32",  # the widest of the arguments
        "torch.float16",  # not among the device's
    ]


def test_what_autocast_bans_is_the_devices_own_kernel_to_refuse(accelerator_site):
    script = """
try:
    with torch.autocast("lazy"):
        F.binary_cross_entropy(low, low)
except RuntimeError as error:
    print(error)
"""

    assert printed(accelerator_site, AUTOCAST_LISTS + script) == ["the vendor's own kernel"]


def test_autocast_casts_as_on_the_cpu_where_the_device_casts_nothing(accelerator_site):
    script = """
low = torch.ones(2, 2, device="lazy").bfloat16()
with torch.autocast("lazy"):
    print((low.float() @ low).dtype, low.softmax(0).dtype, low.prod().dtype)
"""

    assert printed(accelerator_site, script) == ["torch.bfloat16 torch.bfloat16 torch.float32"]


def test_attention_is_the_devices_where_it_chooses_its_own(accelerator_site):
    script = """
mask = torch.ones(3, 3, device="lazy").bool()
print(hot(lambda: F.scaled_dot_product_attention(q, q, q, mask)).flatten()[:2].tolist())
print(set(called))
"""

    assert printed(accelerator_site, ATTENTION + script) == ["[7.0, 7.0]", "{torch.float32}"]


def test_attention_is_composed_where_the_device_chooses_so(accelerator_site):
    script = """
torch.manual_seed(0)
print(F.scaled_dot_product_attention(q, q, q, dropout_p=0.5).shape, called)
"""

    assert printed(accelerator_site, ATTENTION + script) == ["torch.Size([1, 2, 3, 4]) []"]


def test_dropout_by_key_draws_the_same_numbers_on_every_device(accelerator_site):
    script = """
ones = torch.ones(1000, device="lazy")
def step():
    torch.manual_seed(3)
    return str((F.dropout(ones, 0.3) == 0).nonzero().flatten().tolist())
print({step() for _ in range(3)} | {hot(step)})
"""
    on_accelerator = printed(accelerator_site, script, TORCH_LAZY_RNG="philox")
    on_cpu = run(
        accelerator_site, "-c", IMPORTS + script, TORCH_LAZY_DEVICE="cpu", TORCH_LAZY_RNG="philox"
    )

    assert on_accelerator == on_cpu.splitlines()


def test_draws_by_key_do_not_end_a_window(accelerator_site):
    script = """
ones = torch.ones(1000, device="lazy")
def step():
    return F.dropout(F.dropout(ones * 2, 0.3) + 1, 0.5)
hot(step)
before = torch.lazy.metrics()["windows_run"]
hot(step, runs=3)
print(torch.lazy.metrics()["windows_run"] - before)
"""

    assert printed(accelerator_site, script, TORCH_LAZY_RNG="philox") == ["3"]


def test_every_device_has_a_default_generator(accelerator_site):
    script = """
print([generator.device for generator in torch.lazy.default_generators])
state = torch.lazy.get_rng_state("lazy:1")
first = torch.rand(2, device="lazy:1").tolist()
torch.lazy.set_rng_state(state, "lazy:1")
print(first == torch.rand(2, device="lazy:1").tolist())
print(torch.Generator("lazy:1").device)
"""

    assert printed(accelerator_site, script) == [
        "[device(type='lazy', index=0), device(type='lazy', index=1)]",
        "True",
        "lazy:1",
    ]


def test_attention_that_the_device_has_under_a_name_of_cuda_s_is_its_own(accelerator_site):
    script = """
def efficient(query, key, value, *rest, **scale):
    none = query.new_empty(0)
    return query + 5, none, none, none
library.impl("_scaled_dot_product_efficient_attention", efficient, "PrivateUse1")
result = torch.ops.aten._scaled_dot_product_efficient_attention(q, q, q, None, False)[0]
print(torch.equal(result.cpu(), q.cpu() + 5))
"""

    assert printed(accelerator_site, ATTENTION + script) == ["True"]
