"""Generators of the device: CPU generators that say they are on it."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from behaviour import same
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, random_split

pytestmark = pytest.mark.recording


def seeded(device: str, seed: int = 3) -> torch.Generator:
    return torch.Generator(device=device).manual_seed(seed)


DRAWS = {
    "rand": lambda d, g: torch.rand(5, device=d, generator=g),
    "randn": lambda d, g: torch.randn(5, device=d, generator=g),
    "randint": lambda d, g: torch.randint(0, 9, (5,), device=d, generator=g),
    "randperm": lambda d, g: torch.randperm(9, device=d, generator=g),
    "normal of tensors": lambda d, g: torch.normal(
        torch.zeros(5, device=d), torch.ones(5, device=d), generator=g
    ),
    "normal of numbers": lambda d, g: torch.normal(0.0, 1.0, (5,), device=d, generator=g),
    "bernoulli": lambda d, g: torch.bernoulli(torch.full((9,), 0.5, device=d), generator=g),
    "bernoulli_": lambda d, g: torch.empty(9, device=d).bernoulli_(0.5, generator=g),
    "multinomial": lambda d, g: torch.multinomial(torch.ones(9, device=d), 4, generator=g),
    "poisson": lambda d, g: torch.poisson(torch.full((9,), 3.0, device=d), generator=g),
    "uniform_": lambda d, g: torch.empty(5, device=d).uniform_(generator=g),
    "normal_": lambda d, g: torch.empty(5, device=d).normal_(generator=g),
    "random_": lambda d, g: torch.empty(5, device=d).random_(0, 7, generator=g),
    "exponential_": lambda d, g: torch.empty(5, device=d).exponential_(generator=g),
    "geometric_": lambda d, g: torch.empty(5, device=d).geometric_(0.5, generator=g),
    "log_normal_": lambda d, g: torch.empty(5, device=d).log_normal_(generator=g),
    "cauchy_": lambda d, g: torch.empty(5, device=d).cauchy_(generator=g),
    "init.kaiming_uniform_": lambda d, g: nn.init.kaiming_uniform_(
        torch.empty(3, 4, device=d), generator=g
    ),
    "init.trunc_normal_": lambda d, g: nn.init.trunc_normal_(
        torch.empty(3, 4, device=d), generator=g
    ),
    "init.orthogonal_": lambda d, g: nn.init.orthogonal_(torch.empty(3, 3, device=d), generator=g),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_a_generator_of_the_device_draws_the_cpus_numbers(draw):
    generators = seeded("lazy"), seeded("cpu")

    for _ in range(2):
        drawn, expected = draw("lazy", generators[0]), draw("cpu", generators[1])

        assert drawn.is_lazy
        same(drawn.cpu(), expected)
    assert torch.equal(generators[0].get_state(), generators[1].get_state())


def test_a_generator_of_the_cpu_is_taken_for_a_tensor_of_the_device():
    """CUDA refuses it; scripts that seed a CPU generator run on both devices with this one."""
    drawn = torch.rand(5, device="lazy", generator=seeded("cpu"))

    same(drawn.cpu(), torch.rand(5, generator=seeded("cpu")))


def test_a_generator_of_the_device_is_refused_for_a_tensor_of_the_cpu():
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found"):
        torch.rand(5, generator=seeded("lazy"))
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found"):
        torch.empty(5).uniform_(generator=seeded("lazy"))


def test_a_generator_leaves_the_default_one_alone():
    before = torch.get_rng_state()

    torch.rand(5, device="lazy", generator=seeded("lazy"))

    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("device", ["lazy", "lazy:0", torch.device("lazy")])
def test_a_generator_says_that_it_is_on_the_device(device):
    generator = torch.Generator(device=device)

    assert generator.device == torch.device("lazy:0")
    assert isinstance(generator, torch.Generator)


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(RuntimeError, match="there is no device lazy:1"):
        torch.Generator("lazy:1")


def test_generators_of_the_cpu_are_made_as_before():
    assert torch.Generator().device == torch.device("cpu")
    assert torch.Generator("cpu").initial_seed() == torch.Generator().initial_seed()
    with pytest.raises(TypeError):
        torch.Generator("cpu", 3)
    with pytest.raises(RuntimeError):
        torch.Generator("no device")


def test_a_class_may_be_derived():
    class Named(torch.Generator):
        pass

    generator = Named("lazy")

    assert type(generator) is Named
    assert generator.device.type == "lazy"


def test_seeds_are_set_drawn_and_told():
    generator = torch.Generator("lazy")

    assert generator.manual_seed(12) is generator
    assert generator.initial_seed() == 12
    drawn = generator.seed()
    assert generator.initial_seed() == drawn != 12


def test_a_restored_state_draws_again():
    generator = seeded("lazy")
    state = generator.get_state()
    first = torch.rand(5, device="lazy", generator=generator).cpu()

    generator.set_state(state)

    same(torch.rand(5, device="lazy", generator=generator).cpu(), first)


def by_pickle(generator: torch.Generator) -> torch.Generator:
    return pickle.loads(pickle.dumps(generator))


def by_save(generator: torch.Generator) -> torch.Generator:
    file = io.BytesIO()
    torch.save(generator, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize(
    "duplicate", [torch.Generator.clone_state, by_pickle, copy.deepcopy, by_save]
)
def test_a_copy_of_a_generator_goes_its_own_way(duplicate):
    generator = seeded("lazy")
    torch.rand(5, device="lazy", generator=generator)

    twin = duplicate(generator)
    drawn = torch.rand(5, device="lazy", generator=twin)

    assert twin.device.type == "lazy"
    assert twin.initial_seed() == 3
    same(drawn.cpu(), torch.rand(5, device="lazy", generator=generator).cpu())


@pytest.mark.on_cpu("CUDA's generators have offsets")
def test_an_offset_is_refused():
    with pytest.raises(RuntimeError, match="has no offset, but was given 8"):
        torch.Generator("lazy").set_offset(8)


def test_the_default_generator_is_the_cpus():
    (generator,) = torch.lazy.default_generators

    generator.manual_seed(5)
    drawn = torch.rand(5, device="lazy")

    assert generator.device == torch.device("lazy:0")
    assert torch.initial_seed() == generator.initial_seed() == 5
    torch.manual_seed(5)
    same(drawn.cpu(), torch.rand(5))


def test_a_clone_of_the_default_generator_leaves_it_alone():
    before = torch.get_rng_state()
    clone = torch.lazy.default_generators[0].clone_state()

    torch.rand(5, device="lazy", generator=clone)

    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("seed", [torch.lazy.manual_seed, torch.lazy.manual_seed_all])
def test_a_seed_repeats_what_is_drawn(seed):
    draws = []
    for _ in range(2):
        seed(11)
        draws.append(torch.rand(5, device="lazy").cpu())

    same(*draws)
    assert torch.lazy.initial_seed() == 11


@pytest.mark.parametrize("seed", [torch.lazy.seed, torch.lazy.seed_all])
def test_a_seed_from_the_system_is_another_each_time(seed):
    seed()
    first = torch.lazy.initial_seed()
    seed()

    assert torch.lazy.initial_seed() != first


def test_the_state_of_the_device_is_saved_and_restored():
    state, states = torch.lazy.get_rng_state(), torch.lazy.get_rng_state_all()
    first = torch.rand(5, device="lazy").cpu()

    torch.lazy.set_rng_state(state)
    second = torch.rand(5, device="lazy").cpu()
    torch.lazy.set_rng_state_all(states)
    third = torch.rand(5, device="lazy").cpu()

    same([second, third], [first, first])
    with pytest.raises(ValueError, match="expected a lazy device, but got cpu"):
        torch.lazy.get_rng_state("cpu")


@pytest.mark.parametrize("devices", [[0], ["lazy"], None, []])
def test_fork_rng_restores_what_was_there(devices):
    torch.manual_seed(1)
    with torch.random.fork_rng(devices=devices, device_type="lazy"):
        first = torch.rand(5, device="lazy").cpu()

    same(torch.rand(5, device="lazy").cpu(), first)


def test_data_is_shuffled_and_split_on_the_default_device():
    def shuffled(device: str) -> tuple:
        generator = seeded(device)
        loader = DataLoader(
            TensorDataset(torch.arange(8)), batch_size=4, shuffle=True, generator=generator
        )
        parts = random_split(range(10), [3, 7], generator=generator)
        return (
            [batch.tolist() for (batch,) in loader],
            [list(part.indices) for part in parts],
            list(RandomSampler(range(5), generator=generator)),
        )

    torch.set_default_device("lazy")
    try:
        found = shuffled("lazy")
    finally:
        torch.set_default_device(None)

    assert found == shuffled("cpu")
