"""Scripts as tutorials write them, run unchanged with and without the patch: the same conclusions, the same figures to noise."""

from __future__ import annotations

import contextlib
import io
import runpy
from pathlib import Path

import pytest

from certifit.sklearn.patching.command import run_patched
from certifit.sklearn.translation import fitted

SCRIPTS = Path(__file__).parent / "scripts"
# Where the objective is the same the figures are; ensembles of drawn or binned trees agree to the noise of their draws.
NOISE = {"forest_auc": 0.02, "boosting_auc": 0.02, "adaboost_auc": 0.02, "support_vectors": 5.0}
USED = {
    "cancer": {"LogisticRegression", "GaussianNB", "RandomForestClassifier", "HistGradientBoostingClassifier"},
    "diabetes": {"LassoCV", "RidgeCV", "LinearRegression"},
    "digits": {"SVC"},
}


def figures(text: str) -> dict[str, float]:
    return {name: float(value) for name, value in (line.split() for line in text.splitlines())}


@pytest.mark.parametrize("name", sorted(USED))
def test_a_script_comes_to_the_same_conclusions(name: str) -> None:
    script, plain, patched = SCRIPTS / f"{name}.py", io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(plain):
        runpy.run_path(str(script), run_name="__main__")
    fitted.clear()
    with contextlib.redirect_stdout(patched):
        run_patched(script, [])
    assert {cls.__name__ for cls in fitted} >= USED[name]
    theirs, ours = figures(plain.getvalue()), figures(patched.getvalue())
    assert set(ours) == set(theirs)
    for what, value in theirs.items():
        assert ours[what] == pytest.approx(value, rel=2e-3, abs=NOISE.get(what, 1e-6)), what
