"""Tests mirror the source: whoever knows a file knows where its values are tested."""

from __future__ import annotations

import importlib
from collections import defaultdict
from pathlib import Path

import pytest

import certifit

ROOMS = ("certifit.models.", "certifit.optimization.", "certifit.plots.")
# Source of public names → the file that tests them, where it is not tests/<the same folder>/test_<the same name>.py.
ELSEWHERE = {
    "models/bayes/discriminant/centroid.py": "models/bayes/discriminant/test_discriminant.py",  # a discriminant among the others
    "models/bayes/discriminant/lda.py": "models/bayes/discriminant/test_discriminant.py",  # a discriminant among the others
    "models/bayes/discriminant/qda.py": "models/bayes/discriminant/test_discriminant.py",  # a discriminant among the others
    "models/bayes/naive/mixed.py": "models/bayes/naive/test_presets.py",  # the presets with several kinds of columns
    "models/boosting/stagewise.py": "models/boosting/test_adaboost.py",  # two learners that add one tree a round
    "models/linear/model.py": "optimization/objective/test_solvers.py",  # every loss, penalty, constraint and solver
    "models/logistic/cv.py": "models/logistic/test_model.py",  # against the path that it chooses from
    "models/margin/hard.py": "models/margin/test_svm.py",  # the margin of alpha = 0
    "models/tree/cv.py": "models/tree/test_pruning.py",  # the price is chosen among the prunings
    "optimization/first_order/descent.py": "optimization/objective/test_solvers.py",  # a solver among the others
}


def sources() -> dict[str, set[str]]:
    """Files of the rooms that define public names, and the names."""
    found = defaultdict(set)
    for public in (certifit, importlib.import_module("certifit.plots")):
        for name in public.__all__:
            module = getattr(getattr(public, name), "__module__", "")
            if module.startswith(ROOMS):
                found["/".join(module.split(".")[1:]) + ".py"].add(name)
    return dict(found)


SOURCES = sources()


@pytest.mark.parametrize("source", sorted(SOURCES))
def test_public_names_are_tested_in_the_mirrored_file(source: str, root: Path) -> None:
    mirrored = Path(source).with_name(f"test_{Path(source).name}")
    file = root / "tests" / ELSEWHERE.get(source, str(mirrored))
    assert file.exists(), f"write {file.relative_to(root)}, or say in {Path(__file__).name} where {source} is tested"
    text = file.read_text(encoding="utf-8")
    assert any(name in text for name in SOURCES[source]), f"{file.name} uses none of {SOURCES[source]}"


def test_no_exception_is_stale(root: Path) -> None:
    for source in ELSEWHERE:
        assert source in SOURCES
        assert not (root / "tests" / Path(source).with_name(f"test_{Path(source).name}")).exists()
