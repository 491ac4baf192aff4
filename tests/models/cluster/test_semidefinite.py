"""The semidefinite bound: below every clustering, near the optimum of the program, and at the cost where groups are apart."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from tests.models.cluster.test_kmeans import best_cost, few_rows

from certifit import KMeans
from certifit.models.cluster.bound import spectral_bound
from certifit.models.cluster.semidefinite import semidefinite_bound

Array = Any


def program(X: Array, weight: Array, k: int) -> float:
    """The program of Peng and Wei for weighted rows, by an interior point method."""
    root = np.sqrt(weight)
    Z = root[:, None] * (X - np.average(X, axis=0, weights=weight))
    B = cp.Variable((len(X), len(X)), PSD=True)
    held = [B >= 0, B @ root == root, cp.trace(B) == k]
    objective = cp.Problem(cp.Maximize(cp.trace(Z @ Z.T @ B)), held)
    return float((Z**2).sum() - objective.solve(solver="CLARABEL"))


@pytest.mark.parametrize("seed", range(4))
def test_no_clustering_costs_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, weight, k = few_rows(rng, rows=(6, 8), columns=(1, 4), clusters=(2, 4))
    n, best = len(X), best_cost(X, weight, k)
    model = KMeans(k, n_init=25, bound="sdp", random_state=0).fit(X, sample_weight=weight)
    assert 0.9 * best < model.lower_bound_ <= best * (1 + 1e-12)
    # A poor clustering to begin with and few steps prove less, never too much.
    for steps in (1, 3, 20):
        labels = rng.permutation(np.arange(n) % k)
        assert semidefinite_bound(X, weight, k, labels, cost=10 * best, max_iter=steps) <= best * (1 + 1e-12)


@pytest.mark.parametrize(("n", "k", "columns"), [(16, 3, 2), (20, 5, 3), (22, 2, 30)])
def test_it_is_the_optimum_of_the_program(n: int, k: int, columns: int) -> None:
    rng = np.random.default_rng(n)
    X, weight = rng.normal(size=(n, columns)), rng.integers(1, 4, size=n).astype(float)
    optimum = program(X, weight, k)
    model = KMeans(k, n_init=10, random_state=0).fit(X, sample_weight=weight)
    bound = semidefinite_bound(X, weight, k, model.labels_, cost=model.inertia_, max_iter=3000)
    total, spectral = spectral_bound(X, weight, k)
    assert optimum - 1e-4 * total < bound <= optimum + 1e-6 * total
    assert bound > spectral + 1e-3 * total


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)])
def test_groups_apart_are_proven_best(form: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) + 10.0 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[np.arange(90) % 3]
    model = KMeans(3, bound="sdp", tol=1e-5, random_state=0).fit(form(X))
    assert model.certificate_.certified
    assert model.lower_bound_ > (1 - 1e-3) * model.inertia_
    with pytest.warns(ConvergenceWarning, match="Not certified"):
        KMeans(3, tol=1e-5, random_state=0).fit(X)


def test_weights_are_repetitions_and_units_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    X, weight = rng.normal(size=(25, 2)), rng.integers(1, 4, size=25)
    model = KMeans(4, bound="sdp", n_init=3, random_state=0)
    bound = model.fit(X, sample_weight=weight).lower_bound_
    assert model.fit(np.repeat(X, weight, axis=0)).lower_bound_ == pytest.approx(bound, rel=1e-9)
    for unit in (1e-120, 1e120):
        assert model.fit(unit * X, sample_weight=weight).lower_bound_ / unit**2 == pytest.approx(bound, rel=1e-4)


def test_what_has_no_such_bound() -> None:
    X = np.random.default_rng(0).normal(size=(501, 1))
    with pytest.raises(ValueError, match="bound='sdp' compares all pairs of at most 500 distinct rows; X has 501"):
        KMeans(2, bound="sdp").fit(X)
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        model = KMeans(3, bound="sdp").fit(np.repeat(X[:2], 5, axis=0))
    assert model.certificate_.certified
    assert KMeans(1, bound="sdp").fit(X[:40]).certificate_.relative_gap < 1e-9


@pytest.mark.parametrize(("bound", "inertia", "said"), [(0.8999, 1.0, "89%"), (1 - 1.01e-5, 1.0, "99.998%")])
def test_the_certificate_never_says_more_than_was_proven(bound: float, inertia: float, said: str) -> None:
    from certifit.models.cluster.centers import lower_bound_certificate

    found = lower_bound_certificate(inertia, bound, 2.0, 1.0, k=2, tol=1.0, iterations=1, seconds=0.0, words="")
    assert f"costs less than {said} of it" in found.note
