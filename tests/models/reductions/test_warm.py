"""Settings that one path serves: the same scores as from fits of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from certifit import SVC, ElasticNet, Lasso, LogisticRegression, Ridge, Search
from certifit.models.reductions import trial
from certifit.models.reductions.warm import along_the_path, has_path, path_groups, walk_groups

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 6))
Y = X[:, 0] - 2 * X[:, 1] + RNG.normal(size=90)
ALPHAS = [0.3, 0.01, 1.0, 0.01]


@pytest.mark.parametrize(
    "model", [Ridge(), Ridge(fit_intercept=False), Lasso(tol=1e-12), ElasticNet(tol=1e-12)], ids=str
)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("strategy", ["grid", "halving"])
def test_scores_are_those_of_single_fits(
    model: Any, sparse: bool, weighted: bool, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = {"alpha": ALPHAS, **({"l1_ratio": [0.2, 0.9]} if isinstance(model, ElasticNet) else {})}
    rows = sp.csr_array(X) if sparse else X
    weight = RNG.integers(0, 4, size=90).astype(float) if weighted else None
    search = Search(model, grid, strategy=strategy, random_state=0)
    walked = search.fit(rows, Y, sample_weight=weight)
    found = {name: np.asarray(values) for name, values in walked.cv_results_.items() if "score" in name}
    monkeypatch.setattr(trial, "path_groups", lambda *given: [])
    single = search.fit(rows, Y, sample_weight=weight)
    for name, values in found.items():
        assert_allclose(values, single.cv_results_[name], rtol=1e-5, err_msg=name)
    assert walked.best_params_ == single.best_params_


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("metric", ["auto", "accuracy", "roc_auc"])
@pytest.mark.parametrize("sparse", [False, True])
def test_scores_of_classes_are_those_of_single_fits(
    classes: int, metric: str, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = np.array(["a", "b", "c"])[np.digitize(Y, [0.0] if classes == 2 else [-1.0, 1.0])]
    rows, weight = sp.csr_array(X) if sparse else X, np.arange(90) % 3 + 1.0
    # Balanced classes are equally likely where no coefficient is left, and rounding chooses the most likely one.
    model = LogisticRegression(tol=1e-12, class_weight="balanced" if sparse and metric != "accuracy" else None)
    grid = {"alpha": ALPHAS, "penalty": ["l2", "l1"]}
    search = Search(model, grid, metric="log_loss" if (metric, classes) == ("roc_auc", 3) else metric, cv=3)
    walked = search.fit(rows, labels, sample_weight=weight)
    found = np.asarray(walked.cv_results_["mean_test_score"])
    monkeypatch.setattr(trial, "path_groups", lambda *given: [])
    single = search.fit(rows, labels, sample_weight=weight)
    assert_allclose(found, single.cv_results_["mean_test_score"], rtol=1e-5)
    assert walked.best_params_ == single.best_params_
    assert walked.failures_ == single.failures_ == []


def test_a_class_that_a_part_lacks_has_no_chance_there() -> None:
    labels = np.digitize(Y, [-1.0, 1.0])
    model, alphas = LogisticRegression(tol=1e-12), np.array([0.1, 1.0])
    seen = labels != 1
    said = along_the_path(model, alphas, X[seen], labels[seen], None, X, "probability", np.arange(3))
    for alpha, chances in zip(alphas, said, strict=True):
        alone = LogisticRegression(alpha=alpha, tol=1e-12).fit(X[seen], labels[seen]).predict_proba(X)
        assert_allclose(chances, np.column_stack([alone[:, 0], np.zeros(90), alone[:, 1]]), atol=1e-6)


def test_one_walk_a_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[int] = []

    def counted(*given: Any) -> list[Any]:
        walks.append(len(given[1]))
        return along_the_path(*given)

    monkeypatch.setattr(trial, "along_the_path", counted)
    Search(Lasso(), {"alpha": ALPHAS}, cv=4).fit(X, Y)
    assert walks == [4, 4, 4, 4]
    Search(LogisticRegression(), {"alpha": ALPHAS}, cv=2).fit(X, Y > 0)
    assert walks[4:] == [4, 4]
    Search(Lasso(), {"alpha": ALPHAS}, cv=4, time_limit=100.0).fit(X, Y)
    Search(Lasso(solver="prox_newton"), {"alpha": ALPHAS}, cv=4).fit(X, Y)
    Search(LogisticRegression(solver="newton"), {"alpha": ALPHAS}, cv=4).fit(X, Y > 0)
    assert len(walks) == 6


def test_which_settings_share_a_path() -> None:
    settings = [{"alpha": a, "l1_ratio": r} for r in (0.1, 0.5) for a in (1.0, 0.1)] + [{"alpha": 0.0, "l1_ratio": 0.1}]
    assert path_groups(ElasticNet(), settings) == [[0, 1], [2, 3]]
    assert path_groups(ElasticNet(), settings[:1]) == []
    assert path_groups(Ridge(positive=True), [{"alpha": 1.0}, {"alpha": 2.0}]) == []
    assert has_path(Ridge(tol=1e-3, verbose=1))
    assert not has_path(Lasso(solver="prox_newton"))

    class Own(Ridge):
        """A class of the user's own may fit otherwise."""

    assert not has_path(Own())


def test_a_path_that_fails_leaves_the_word_to_the_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: Any) -> Any:
        raise RuntimeError

    monkeypatch.setattr(trial, "along_the_path", fails)
    assert Search(Ridge(), {"alpha": ALPHAS}).fit(X, Y).failures_ == []


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_support_vectors_walk_along_c(n_jobs: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    y = (X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=90) > 0).astype(int)
    grid = {"C": [3.0, 0.1, 30.0, 1.0], "gamma": [0.1, 0.5]}
    search = Search(SVC(tol=1e-9), grid, metric="roc_auc" if n_jobs is None else "accuracy", cv=3, n_jobs=n_jobs)
    assert walk_groups(SVC(), [{"C": 3.0}, {"C": 1.0}, {"C": 2.0, "gamma": 1.0}]) == [[1, 0]]
    assert walk_groups(Ridge(), [{"alpha": 3.0}, {"alpha": 1.0}]) == []
    walked = search.fit(X, y)
    found = np.asarray(walked.cv_results_["mean_test_score"])
    monkeypatch.setattr(trial, "walk_groups", lambda *given: [])
    single = search.fit(X, y)
    assert_allclose(found, single.cv_results_["mean_test_score"], atol=1e-6)
    assert walked.best_params_ == single.best_params_
