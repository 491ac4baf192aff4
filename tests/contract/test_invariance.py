"""What must not matter: the order of rows, threads, memory layout, repetition of the fit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contract.data import (
    Array,
    N,
    asked,
    assert_same,
    features,
    fit,
    make,
    on_kernel,
    output,
    reference,
    targets,
    unbothered,
    weights,
)
from tests.contract.discovery import Case, parametrize
from threadpoolctl import threadpool_limits

from certifit import AgglomerativeClustering
from certifit.models.perceptron.base import BasePerceptron

EVERY = parametrize()
LEARNED = ("coef_", "intercept_", "mean_", "scale_", "components_")


@parametrize(lambda case: not case.draws)
def test_order_of_rows(case: Case) -> None:
    one = reference(case, precise=True)
    order = np.random.default_rng(5).permutation(N)
    with unbothered():
        other = fit(case.precise(), one.X[order], None if one.y is None else one.y[order])
    # A column of output for each row of the fit moves with its row.
    wanted = one.output[:, order] if getattr(case.cls, "output_of_rows", False) else one.output
    assert_same(output(other, one.X), wanted)


@EVERY
def test_fit_twice_is_identical(case: Case) -> None:
    one = reference(case)
    X, y = one.X, one.y
    estimator = case.build(random_state=0)
    with unbothered():
        fresh = output(fit(estimator, X, y), X)
        fit(estimator, features(case, 40, 3), targets(case, features(case, 40, 3)))  # something else in between
        after = output(fit(estimator, X, y), X)
    for result in (fresh, after):
        np.testing.assert_array_equal(result, one.output)


def assert_threads_agree(case: Case, n: int, d: int, **options: Any) -> None:
    """One thread and two learn the same to the last bit."""
    X, y = make(case, n, d)
    with unbothered():
        one, two = (fit(case.build(n_jobs=jobs, random_state=0, **options), X, y) for jobs in (1, 2))
    for name in LEARNED:
        if hasattr(one, name):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(output(one, asked(one, X)), output(two, asked(two, X)))


@parametrize(lambda case: case.has("n_jobs"))
def test_n_jobs_does_not_change_the_result(case: Case) -> None:
    # Whether two threads agree shows itself in every step: few will do.
    assert_threads_agree(case, 300, 20, n_estimators=3, max_epochs=10, max_iter=100, n_alphas=3, cv=2)


@parametrize(lambda case: case.has("n_jobs"), one_each=True)
def test_n_jobs_does_not_change_the_result_where_threads_share_the_rows(case: Case) -> None:
    # What compares all pairs of rows has a limit, and is tried on few; two rows of a Gram matrix are shared from 10,000 on.
    # The threads of perceptrons share the classes, and whether many rows can be separated takes a large linear program.
    few = hasattr(case.cls, "most_rows") or issubclass(case.cls, BasePerceptron)
    n = 600 if few else 10_200 if on_kernel(case.cls) else 20_000
    wide = issubclass(case.cls, AgglomerativeClustering)  # shares the columns of a distance
    n, d = (4_000, 60) if wide else (n, 10)
    assert_threads_agree(case, n, d, n_estimators=3, max_epochs=3, max_iter=20, n_alphas=2, cv=2)


@parametrize(lambda case: case.has("verbose"))
def test_a_progress_bar_changes_nothing(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    silent = reference(case)
    capsys.readouterr()
    with unbothered():
        fit(case.build(random_state=0), silent.X, silent.y)
        assert capsys.readouterr().out == ""
        loud = fit(case.build(random_state=0, verbose=1), silent.X, silent.y)
    assert capsys.readouterr().out.strip(), "verbose=1 should show something"
    np.testing.assert_array_equal(output(loud, silent.X), silent.output)


@EVERY
def test_threads_of_libraries_change_rounding_only(case: Case) -> None:
    # What compares pairs of rows has products of this size from half as many on.
    X, y = make(case, n=100 if on_kernel(case.cls) or hasattr(case.cls, "most_rows") else 200, d=20)
    results = []
    for limit in (1, 2):
        with threadpool_limits(limit), unbothered():
            results.append(output(fit(case.precise(random_state=0), X, y), X))
    assert_same(results[1], results[0], 1e-6)


def every_second(X: Array, folder: Path) -> Array:
    wide = np.zeros((X.shape[0] * 2, X.shape[1] * 2))
    wide[::2, ::2] = X
    return wide[::2, ::2]


def frozen(X: Array, folder: Path) -> Array:
    X = X.copy(order="K")
    X.flags.writeable = False
    return X


def mapped(X: Array, folder: Path) -> Array:
    X.tofile(folder / "X.bin")
    return np.memmap(folder / "X.bin", dtype=X.dtype, mode="r", shape=X.shape)


# The same matrix in many kinds of memory.
LAYOUTS: dict[str, Callable[[Array, Path], Array]] = {
    "F": lambda X, folder: np.asfortranarray(X),
    "every second": every_second,
    "reversed": lambda X, folder: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": frozen,
    "read-only F": lambda X, folder: frozen(np.asfortranarray(X), folder),
    "memmap": mapped,
    "unaligned": lambda X, folder: (
        np.frombuffer(b"\0" + X.tobytes(), dtype=np.uint8)[1:].view(X.dtype).reshape(X.shape)
    ),
    "big-endian": lambda X, folder: X.astype(">f8"),
}


@parametrize(layout=list(LAYOUTS))
def test_memory_layout(case: Case, layout: str, tmp_path: Path) -> None:
    wanted = reference(case, precise=True)
    other = LAYOUTS[layout](np.array(wanted.X), tmp_path)
    with unbothered():
        model = fit(case.precise(random_state=0), other, wanted.y)
        assert_same(output(model, other), wanted.output, 1e-6)


@EVERY
def test_layout_of_target_and_weights(case: Case) -> None:
    """Where the memory is read-only is the reference itself."""
    wanted = reference(case, precise=True, weighted=True)
    if wanted.y is None or wanted.weight is None:
        return
    strided = np.repeat(wanted.y, 2)[::2], np.repeat(wanted.weight, 2)[::2]
    lists = list(wanted.y), list(wanted.weight)
    with unbothered():
        for target, given in (strided, lists):
            model = fit(case.precise(random_state=0), wanted.X, target, given)
            assert_same(output(model, wanted.X), wanted.output, 1e-12)


@parametrize(dtype=[np.int64, np.int32, np.uint8, bool])
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
def test_fit_and_predict_leave_inputs_and_constructor_arguments_alone(case: Case) -> None:
    X, y = make(case)
    weight = weights() if case.takes_weights else None
    given = [a for a in (X, y, weight) if a is not None]
    before = [a.copy() for a in given]
    estimator = case.build(random_state=0)
    arguments = estimator.get_params(deep=False)
    copies = copy.deepcopy(arguments)
    with unbothered():
        fit(estimator, X, y, weight)
    output(estimator, X)
    for now, then in zip(given, before, strict=True):
        np.testing.assert_array_equal(now, then)
    after = estimator.get_params(deep=False)
    for name, value in arguments.items():
        assert after[name] is value
        assert repr(value) == repr(copies[name])
