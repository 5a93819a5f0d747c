"""docs/compatibility.md says what is true: features that it says work do."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from torch_lazy.conformance.isolated import Outcome, fresh, run_isolated

ROOT = Path(__file__).parents[2]
FEATURES = ROOT / "test" / "compatibility"
PAGE = (ROOT / "docs" / "compatibility.md").read_text()

sys.path.insert(0, str(FEATURES))

from features import AREAS, Feature, all_features, cell, features_of, verdict  # noqa: E402

# Collectives have tests of their own, of every kind.
TRIED = [area for area in AREAS if area != "distributed"]


def told(feature: Feature) -> str | None:
    """What the page says of the feature."""
    row = re.search(rf"^\| {re.escape(feature.title)} \| (.*) \|$", PAGE, re.MULTILINE)
    return row and row.group(1)


@pytest.mark.on_cpu("the page is about lazy tensors on the CPU")
@pytest.mark.parametrize("area", TRIED)
def test_what_the_page_says_of_features_is_true(area):
    features = {f"{area}.{feature.name}": feature for feature in features_of(area)}
    outcomes: dict[str, Outcome] = {}

    run_isolated(
        fresh([sys.executable, str(FEATURES / "worker.py")]),
        list(features),
        lambda outcome: outcomes.__setitem__(outcome.item, outcome),
        timeout=120,
        quiet=True,
    )

    for name, feature in features.items():
        outcome = outcomes[name]
        result = outcome.result or {"outcome": "fails", "why": outcome.died}
        if result["outcome"] == "missing":
            continue  # the package is none of those that tests need
        # Of what does not work the words are PyTorch's, and other versions have others.
        is_told = told(feature) or "nothing"
        expected = verdict(result)
        same = is_told.startswith("does not: ") and expected.startswith("does not: ")
        assert same or is_told == expected, f"{feature.title}: run tools/compatibility"


def test_the_page_has_no_other_features():
    titles = {cell(feature.title) for feature in all_features().values()}
    listed = PAGE.partition("## PyTorch's operators")[0]
    rows = re.findall(r"^\| (?!what \|)([^-].*?) \| (?:works|does not)", listed, re.MULTILINE)

    assert set(rows) <= titles
    assert len(rows) > 70
