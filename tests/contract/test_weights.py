"""Weight 2 is the row twice, weight 0 the row dropped, and only proportions matter."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from tests.contract.data import N, assert_same, fit, make, output, reference, unbothered, weights
from tests.contract.discovery import Case, parametrize

WEIGHTED = parametrize(lambda case: case.takes_weights and not case.draws)
DRAWN = parametrize(lambda case: case.takes_weights and case.draws)
SOON = 2.0  # seconds of processor time: many times what a fit of the contract takes


def rows_of(X: Any, y: Any, index: Any) -> tuple[Any, Any]:
    return X[index], None if y is None else y[index]


@WEIGHTED
def test_a_weight_counts_repetitions(case: Case) -> None:
    weighted = reference(case, precise=True, weighted=True)
    assert weighted.weight is not None
    order = np.random.default_rng(3).permutation(np.repeat(np.arange(N), weighted.weight.astype(int)))
    with unbothered():
        repeated = fit(case.precise(), *rows_of(weighted.X, weighted.y, order))
    assert_same(weighted.output, output(repeated, weighted.X))


@WEIGHTED
def test_weight_zero_drops_the_row(case: Case) -> None:
    X, y = make(case)
    weight = (weights() > 0).astype(float)
    kept = weight > 0
    spoiled_X, spoiled_y = X.copy(), None if y is None else y.copy()
    spoiled_X[~kept] = 1e6
    if spoiled_y is not None and spoiled_y.dtype.kind == "f":
        spoiled_y[~kept] = 1e6
    with unbothered():
        dropped = fit(case.precise(), *rows_of(X, y, kept))
        weighted = fit(case.precise(), spoiled_X, spoiled_y, weight)
    assert_same(output(weighted, X), output(dropped, X), 1e-9)


@parametrize(
    lambda case: case.takes_weights and not case.draws and not case.counts_rows, factor=[1e-100, 0.3, 8.0, 1e100]
)
def test_only_proportions_of_weights_matter(case: Case, factor: float) -> None:
    """Not where a method leaves out one row at a time: of a row with weight 2 one copy is left out and its twin stays,
    so that doubling every weight doubles the copies and changes what is left. An estimator says so itself.
    """
    one = reference(case, precise=True, weighted=True)
    assert one.weight is not None
    with unbothered():
        other = fit(case.precise(), one.X, one.y, factor * one.weight)
    assert_same(output(other, one.X), one.output)


@parametrize(lambda case: case.takes_weights and not case.draws and case.counts_rows)
def test_weights_that_are_counts_are_multiplied_like_rows(case: Case) -> None:
    X, y = make(case)
    weight = weights()
    twice = np.tile(np.arange(N), 2)
    with unbothered():
        one = fit(case.precise(), X, y, 2 * weight)
        other = fit(case.precise(), *rows_of(X, y, twice), weight[twice])
    assert_same(output(other, X), output(one, X))


@parametrize(lambda case: case.takes_weights and not case.draws and case.counts_rows, factor=[1e-100, 1e100])
def test_weights_that_are_counts_may_be_of_any_size(case: Case, factor: float) -> None:
    one = reference(case, weighted=True)
    assert one.weight is not None
    with unbothered():
        model = fit(case.build(), one.X, one.y, factor * one.weight)
    assert np.isfinite(output(model, one.X)).all()


@WEIGHTED
def test_equal_weights_are_no_weights(case: Case) -> None:
    without = reference(case, precise=True)
    X, y = without.X, without.y
    with unbothered():
        ones = fit(case.precise(), X, y, np.ones(N))
        scalar = fit(case.precise(), X, y, 1.0 if case.counts_rows else 2.0)
    assert_same(output(ones, X), without.output, 1e-12)
    assert_same(output(scalar, X), without.output)


@DRAWN
def test_weight_zero_drops_the_row_before_anything_is_drawn(case: Case) -> None:
    X, y = make(case)
    kept = weights() > 0
    spoiled = np.where(kept[:, None], X, 1e6)
    with unbothered():
        dropped = fit(case.build(random_state=0), *rows_of(X, y, kept))
        weighted = fit(case.build(random_state=0), spoiled, y, kept.astype(float))
    assert_same(output(weighted, X), output(dropped, X), 1e-9)


@DRAWN
def test_weights_of_one_change_no_draw(case: Case) -> None:
    without = reference(case)
    with unbothered():
        ones = fit(case.build(random_state=0), without.X, without.y, np.ones(N))
    assert_same(output(ones, without.X), without.output, 1e-12)


@DRAWN
def test_a_weight_counts_repetitions_in_distribution(case: Case) -> None:
    """The mean output over many draws agrees within five standard errors."""
    X, y = make(case)
    weight = weights()
    repeated = np.repeat(np.arange(N), weight.astype(int))
    seeds = range(40)

    def build(seed: int) -> Any:
        return case.build(random_state=seed, max_epochs=100, n_estimators=4)

    def means(sample: tuple[Any, Any], given: Any) -> np.ndarray:
        fits = (fit(build(seed), *sample, given) for seed in seeds)
        return np.array([output(model, X).reshape(N, -1).mean(axis=1) for model in fits])

    with unbothered():
        first, second = (output(fit(build(seed), X, y, weight), X) for seed in (0, 1))
        if np.array_equal(first, second):  # with these settings nothing is drawn: the repetition must be exact
            assert_same(output(fit(build(0), *rows_of(X, y, repeated), None), X), first)
            return
        a, b = means((X, y), weight), means(rows_of(X, y, repeated), None)
    error = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / len(seeds))
    assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) <= 5 * error + 1e-12).all()


@parametrize(lambda case: case.takes_weights and case.draws, weight=[1e9, 1e10, 1e300])
def test_cost_does_not_grow_with_the_sum_of_the_weights(case: Case, weight: float) -> None:
    """As many draws as there are rows: those of 61 rows with weight 1e10 would take terabytes."""
    X, y = make(case)
    started = time.process_time()
    with unbothered():
        model = fit(case.build(random_state=0), X, y, np.full(N, weight))
    assert time.process_time() - started < SOON
    assert np.isfinite(output(model, X)).all()


BAD_WEIGHTS: dict[str, tuple[Any, str]] = {
    "negative": (-np.ones(N), "(?i)negative.*sample_weight|sample_weight.*negative"),
    "huge": (np.full(N, 1e308), "sample_weight adds up"),
    "nan": (np.full(N, np.nan), "sample_weight.*NaN"),
    "inf": (np.full(N, np.inf), "sample_weight.*infinity"),
    "zero": (np.zeros(N), "sample_weight.*zero"),
    "2-D": (np.ones((N, 1)), "sample_weight"),
    "short": (np.ones(N - 1), "sample_weight"),
    "text": (np.array(["a"] * N), "sample_weight"),
}


@parametrize(lambda case: case.takes_weights, one_each=True)
def test_bad_weights_are_named(case: Case) -> None:
    X, y = make(case)
    for bad, match in BAD_WEIGHTS.values():
        with pytest.raises((ValueError, TypeError), match=match):
            fit(case.build(), X, y, bad)
