"""What must not matter: the order of rows, threads, memory layout, repetition of the fit."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contract.data import N, assert_same, features, fit, make, output, targets, unbothered, weights
from tests.contract.discovery import Case, parametrize
from threadpoolctl import threadpool_limits

EVERY = parametrize()
LEARNED = ("coef_", "intercept_", "mean_", "scale_", "components_")


@parametrize(lambda case: not case.draws)
def test_order_of_rows(case: Case) -> None:
    X, y = make(case)
    order = np.random.default_rng(5).permutation(N)
    with unbothered():
        one = fit(case.precise(), X, y)
        other = fit(case.precise(), X[order], None if y is None else y[order])
    assert_same(output(other, X), output(one, X))


@EVERY
def test_fit_twice_is_identical(case: Case) -> None:
    X, y = make(case)
    estimator = case.build(random_state=0)
    with unbothered():
        first = output(fit(estimator, X, y), X)
        again = output(fit(estimator, X, y), X)
        fresh = output(fit(case.build(random_state=0), X, y), X)
        fit(estimator, features(case, 40, 3), targets(case, features(case, 40, 3)))  # something else in between
        after = output(fit(estimator, X, y), X)
    for result in (again, fresh, after):
        np.testing.assert_array_equal(result, first)


@parametrize(lambda case: case.has("n_jobs"))
def test_n_jobs_does_not_change_the_result(case: Case) -> None:
    X, y = make(case, n=400, d=30)
    with unbothered():
        one, two = (fit(case.build(n_jobs=jobs, random_state=0), X, y) for jobs in (1, 2))
    for name in LEARNED:
        if hasattr(one, name):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(output(one, X), output(two, X))


@parametrize(lambda case: case.has("n_jobs"), one_each=True)
def test_n_jobs_does_not_change_the_result_where_threads_share_the_rows(case: Case) -> None:
    X, y = make(case, n=20_000, d=8)
    options = {"random_state": 0, "n_estimators": 4, "max_epochs": 3}
    with unbothered():
        one, two = (fit(case.build(n_jobs=jobs, **options), X, y) for jobs in (1, 2))
    for name in LEARNED:
        if hasattr(one, name):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(output(one, X), output(two, X))


@parametrize(lambda case: case.has("verbose"))
def test_a_progress_bar_changes_nothing(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = make(case)
    with unbothered():
        silent = fit(case.build(random_state=0), X, y)
        assert capsys.readouterr().out == ""
        loud = fit(case.build(random_state=0, verbose=1), X, y)
    assert capsys.readouterr().out.strip(), "verbose=1 should show something"
    np.testing.assert_array_equal(output(loud, X), output(silent, X))


@EVERY
def test_threads_of_libraries_change_rounding_only(case: Case) -> None:
    X, y = make(case, n=400, d=30)
    results = []
    for limit in (1, 2):
        with threadpool_limits(limit), unbothered():
            results.append(output(fit(case.precise(random_state=0), X, y), X))
    assert_same(results[1], results[0], 1e-6)


def layouts(X: np.ndarray, tmp_path: Path) -> dict[str, np.ndarray]:
    """The same matrix in many kinds of memory."""
    wide = np.zeros((X.shape[0] * 2, X.shape[1] * 2))
    wide[::2, ::2] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    mapped = np.memmap(tmp_path / "X.bin", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    unaligned = np.frombuffer(b"\0" + X.tobytes(), dtype=np.uint8)[1:].view(X.dtype).reshape(X.shape)
    return {
        "F": np.asfortranarray(X),
        "every second": wide[::2, ::2],
        "reversed": X[::-1, ::-1].copy()[::-1, ::-1],
        "read-only": frozen,
        "read-only F": np.asfortranarray(frozen),
        "memmap": np.memmap(tmp_path / "X.bin", dtype=X.dtype, mode="r", shape=X.shape),
        "unaligned": unaligned,
        "big-endian": X.astype(">f8"),
    }


@EVERY
def test_memory_layout(case: Case, tmp_path: Path) -> None:
    X, y = make(case)
    with unbothered():
        wanted = output(fit(case.precise(random_state=0), X, y), X)
        for name, other in layouts(X, tmp_path).items():
            model = fit(case.precise(random_state=0), other, y)
            assert_same(output(model, other), wanted, 1e-6), name


@EVERY
def test_layout_of_target_and_weights(case: Case) -> None:
    X, y = make(case)
    if y is None or not case.takes_weights:
        return
    weight = weights()
    with unbothered():
        wanted = output(fit(case.precise(random_state=0), X, y, weight), X)
        strided = np.repeat(y, 2)[::2], np.repeat(weight, 2)[::2]
        frozen = y.copy(), weight.copy()
        for array in frozen:
            array.flags.writeable = False
        lists = list(y), list(weight)
        for target, given in (strided, frozen, lists):
            assert_same(output(fit(case.precise(random_state=0), X, target, given), X), wanted, 1e-12)


@EVERY
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, bool])
def test_whole_numbers_are_numbers(case: Case, dtype: Any) -> None:
    X = (np.abs(np.round(3 * features(case))) + (1 if case.positive_features else 0)).astype(dtype)
    y = targets(case, X)
    with unbothered():
        model = fit(case.precise(random_state=0), X, y)
        wanted = fit(case.precise(random_state=0), X.astype(np.float64), y)
    result = output(model, X)
    assert_same(result, output(wanted, X.astype(np.float64)), 1e-12)
    if case.transforms or case.predicts:
        assert result.dtype.kind in "fiu"


@parametrize(lambda case: case.supervised)
def test_whole_targets_are_numbers(case: Case) -> None:
    X, y = make(case)
    assert y is not None
    whole = y if case.target == "labels" else np.round(3 * np.abs(y)).astype(np.int64) + 1
    with unbothered():
        model = fit(case.precise(random_state=0), X, whole)
        wanted = fit(case.precise(random_state=0), X, whole.astype(float))
    assert_same(output(model, X), output(wanted, X), 1e-12)


@EVERY
def test_single_precision_stays_single(case: Case) -> None:
    X, y = make(case)
    small = X.astype(np.float32)
    with unbothered():
        single = fit(case.build(random_state=0), small, y)
        double = fit(case.build(random_state=0), small.astype(np.float64), y)
    for model, dtype, rows in ((single, np.float32, small), (double, np.float64, small.astype(np.float64))):
        result = output(model, rows)
        if result.dtype.kind == "f":
            assert result.dtype == dtype
        for method in ("decision_function", "predict_proba", "predict_log_proba"):
            if hasattr(model, method):
                assert getattr(model, method)(rows).dtype == dtype, method
        if hasattr(model, "coef_"):
            assert model.coef_.dtype == dtype
    result = output(single, small)
    if result.dtype.kind == "f":
        assert_same(result.astype(float), output(double, small.astype(np.float64)), 5e-3)


@parametrize(lambda case: case.supervised)
def test_single_precision_target_changes_nothing_else(case: Case) -> None:
    X, y = make(case)
    assert y is not None
    with unbothered():
        model = fit(case.precise(random_state=0), X, y.astype(np.float32) if y.dtype.kind == "f" else y)
    result = output(model, X)
    assert result.dtype.kind != "f" or result.dtype == np.float64


@EVERY
def test_fit_and_predict_leave_their_inputs_alone(case: Case) -> None:
    X, y = make(case)
    weight = weights() if case.takes_weights else None
    given = [a for a in (X, y, weight) if a is not None]
    before = [a.copy() for a in given]
    with unbothered():
        model = fit(case.build(random_state=0), X, y, weight)
    output(model, X)
    for now, then in zip(given, before, strict=True):
        np.testing.assert_array_equal(now, then)


@EVERY
def test_fit_leaves_the_constructor_arguments_alone(case: Case) -> None:
    X, y = make(case)
    estimator = case.build()
    before = estimator.get_params(deep=False)
    copies = copy.deepcopy(before)
    with unbothered():
        fit(estimator, X, y)
    after = estimator.get_params(deep=False)
    assert after.keys() == before.keys()
    for name, value in before.items():
        assert after[name] is value
        assert repr(value) == repr(copies[name])
