"""Random programs of both profiles, each until hot and beyond a changed branch."""

from __future__ import annotations

import re

from torch_lazy.conformance.program_generator import OPERATIONS
from torch_lazy.conformance.random_programs import checked_seed
from torch_lazy.conformance.section import Options, Result, Section

_PROGRAMS, _PROGRAMS_QUICK = 250, 60  # of each profile
_SHRINK_SECONDS = 20.0


def _items(options: Options) -> list[str]:
    count = _PROGRAMS_QUICK if options.quick else _PROGRAMS
    seeds = range(options.seed, options.seed + count)
    return [f"{profile}-{seed}" for profile in OPERATIONS for seed in seeds]


def _check(item: str, options: Options) -> Result:
    profile, _, seed = item.partition("-")
    found = checked_seed(int(seed), profile, "lazy", shrink_seconds=_SHRINK_SECONDS)
    return Result(failure=found["difference"], script=found["script"]) if found else Result()


SECTION = Section(
    "programs",
    "random programs: views, writes, autograd, syncs, errors; fusion, reductions, gathers",
    _items,
    _check,
    seconds=120.0,
    accepts=lambda item: re.fullmatch(rf"({'|'.join(OPERATIONS)})-\d+", item) is not None,
)
