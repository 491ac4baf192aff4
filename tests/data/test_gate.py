"""The gate itself: what comes out has a known dtype, shape and layout, and what is refused is named, once for all estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from certifit.data.gate import check_choice, check_real, check_sample_weight, check_x, check_xy, like_input

X = np.array([[1.0, -2.0, 0.0], [0.5, 0.0, 3.0], [0.0, 0.0, 4.0], [7.0, 1.0, 0.25]])
Y = np.array([1.0, 2.0, 3.0, 4.0])
NAMES = ["age", "income", "time"]


def gate(given: Any, **options: Any) -> Any:
    return check_x(BaseEstimator(), given, reset=True, **options)


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (X, np.float64),
        (X.astype(np.float32), np.float32),
        (X.astype(np.float16), np.float64),
        (X.astype(np.int64), np.float64),
        (X.astype(object), np.float64),
        (X.astype(">f8"), np.float64),
        (X.tolist(), np.float64),
        (np.asfortranarray(X), np.float64),
        (pd.DataFrame(X, columns=NAMES), np.float64),
        (pl.DataFrame(X, schema=NAMES), np.float64),
        (pa.table({name: X[:, j] for j, name in enumerate(NAMES)}), np.float64),
    ],
    ids=["double", "single", "half", "whole", "object", "big-endian", "list", "F", "pandas", "polars", "pyarrow"],
)
def test_numbers_of_every_kind_come_out_as_floats(given: Any, dtype: Any) -> None:
    estimator = BaseEstimator()
    got = check_x(estimator, given, reset=True)
    assert got.dtype == dtype
    assert got.dtype.isnative
    np.testing.assert_array_equal(got, np.asarray(given, dtype=float) if not isinstance(given, pa.Table) else X)
    assert estimator.n_features_in_ == 3
    if hasattr(given, "columns"):
        assert estimator.feature_names_in_.tolist() == NAMES


def test_arrays_of_the_right_kind_are_not_copied() -> None:
    for given in (X, X.astype(np.float32), np.asfortranarray(X)):
        assert gate(given) is given


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.coo_array, sp.lil_array])
def test_sparse_rows_come_out_compressed_and_sorted(make: Any) -> None:
    got = gate(make(X))
    assert got.format in ("csr", "csc")
    assert got.has_canonical_format
    np.testing.assert_array_equal(got.toarray(), X)


def test_doubled_entries_are_added_and_the_given_matrix_stays() -> None:
    parts = (np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3]))
    given = sp.csr_array(tuple(part.copy() for part in parts), shape=(2, 2))
    np.testing.assert_array_equal(gate(given).toarray(), [[0.0, 3.0], [5.0, 0.0]])
    for now, then in zip((given.data, given.indices, given.indptr), parts, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (4,), (4, 3, 2), ()])
def test_shapes_that_are_no_table(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"(?i)sample|feature|dim|array"):
        gate(np.ones(shape))


@pytest.mark.parametrize(("bad", "told"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array, "frame", "every second"])
def test_what_is_not_finite_is_told_with_its_column(bad: float, told: str, make: Any) -> None:
    spoiled = X.copy()
    spoiled[2, 1] = bad
    column = "column 1"
    if make == "frame":
        given: Any = pd.DataFrame(spoiled, columns=NAMES)
        column = "column 'income'"
    elif make == "every second":
        given = np.repeat(spoiled, 2, axis=1)[:, ::2]
    else:
        given = make(spoiled)
    with pytest.raises(ValueError, match=rf"X contains {told}.*{column}"):
        gate(given)
    if told == "NaN":
        got = gate(given, allow_nan=True)
        assert np.isnan(got.toarray() if sp.issparse(got) else got).sum() == 1
    else:
        with pytest.raises(ValueError, match="infinity"):
            gate(given, allow_nan=True)


def test_numbers_whose_squares_overflow_are_finite() -> None:
    np.testing.assert_array_equal(gate(np.full((2, 2), 1e300)), 1e300)


@pytest.mark.parametrize("kind", [object, str, "frame"])
def test_text_is_told_with_its_column(kind: Any) -> None:
    given: Any = pd.DataFrame(X, columns=NAMES) if kind == "frame" else X.astype(kind)
    if kind == "frame":
        given["time"] = ["red", "blue", "red", "red"]
    else:
        given[:, 2] = "red"
    with pytest.raises(ValueError, match=r"X has a column that is not numeric: ('time'|2)\. "):
        gate(given)


def test_text_is_told_with_the_parameter_for_categories() -> None:
    given, takes_them = pd.DataFrame({"size": [1.0, 2.0], "town": ["Bonn", "Ulm"]}), BaseEstimator()
    takes_them.categorical_features = None
    with pytest.raises(
        ValueError, match=r"'town'\. BaseEstimator takes such columns as categories: name them in categorical_"
    ):
        check_x(takes_them, given, reset=True)


def test_missing_numbers_are_counted() -> None:
    given = X.copy()
    given[1, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN: 1 missing value in column 1\. "):
        gate(given)
    given[:2, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN: 1 missing value in column 1 \(and 1 more\)\. "):
        gate(given)


def test_complex_numbers_and_missing_targets_are_refused() -> None:
    with pytest.raises(ValueError, match=r"(?i)complex"):
        gate(X + 1j)
    with pytest.raises(ValueError, match="requires y"):
        check_xy(BaseEstimator(), X, None)


@pytest.mark.parametrize("length", [0, 3, 5])
def test_lengths_are_compared(length: int) -> None:
    with pytest.raises(ValueError, match=r"X has 4, y has|empty|minimum"):
        check_xy(BaseEstimator(), X, np.resize(Y, length))


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ([1.0, np.nan, 2.0, 3.0], r"y contains NaN \(first at row 1"),
        ([1.0, 2.0, -np.inf, 3.0], r"y contains infinity \(first at row 2"),
        (["a", "b", "a", "b"], "y must be numeric"),
        (np.column_stack([Y, Y]), "y should be a 1d array"),
    ],
    ids=["nan", "inf", "text", "2-D"],
)
def test_wrong_targets_are_told(bad: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        check_xy(BaseEstimator(), X, bad)


def test_targets_are_doubles_and_labels_stay_what_they_are() -> None:
    for given in (Y.astype(int), Y.astype(np.float32), Y.tolist(), pd.Series(Y), pa.array(Y)):
        _, y, _ = check_xy(BaseEstimator(), X, given)
        assert y.dtype == np.float64
        np.testing.assert_array_equal(y, Y)
    _, labels, _ = check_xy(BaseEstimator(), X, ["a", "b", "a", "b"], numeric_target=False)
    assert labels.tolist() == ["a", "b", "a", "b"]


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_array])
def test_rows_of_weight_zero_are_dropped(make: Any) -> None:
    got, y, weight = check_xy(BaseEstimator(), make(X), Y, sample_weight=[2.0, 0.0, 0.5, 0.0])
    np.testing.assert_array_equal(got.toarray() if sp.issparse(got) else got, X[[0, 2]])
    assert y.tolist() == [1.0, 3.0]
    assert weight.tolist() == [2.0, 0.5]
    kept = check_xy(BaseEstimator(), make(X), Y, sample_weight=[2.0, 0.0, 0.5, 0.0], drop=False)
    assert [part.shape[0] for part in kept] == [4, 4, 4]
    with pytest.raises(ValueError, match=r"Only 1 rows have a positive sample_weight, 2 are needed"):
        check_xy(BaseEstimator(), make(X), Y, sample_weight=[1.0, 0.0, 0.0, 0.0], min_samples=2)


def test_weights_come_out_as_doubles() -> None:
    for given, wanted in (
        (None, 1.0),
        (2, 2.0),
        ([1, 1, 1], 1.0),
        (pl.Series([3.0] * 3), 3.0),
        (pa.array([4] * 3), 4.0),
    ):
        weight = check_sample_weight(given, 3)
        assert weight.dtype == np.float64
        np.testing.assert_array_equal(weight, np.full(3, wanted))


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ([1.0, -0.5, 1.0], r"Negative values.*sample_weight \(smallest: -0.5\)"),
        ([1.0, np.nan, 1.0], "sample_weight contains NaN"),
        ([1.0, np.inf, 1.0], "sample_weight contains NaN or infinity"),
        ([0.0, 0.0, 0.0], "sample_weight is zero everywhere"),
        ([1e308, 1e308, 1e308], "sample_weight adds up"),
        ([[1.0], [1.0], [1.0]], r"sample_weight has shape \(3, 1\)"),
        ([1.0, 1.0], r"sample_weight.shape == \(2,\), expected \(3,\)"),
        (["a", "b", "c"], "sample_weight must be numbers"),
    ],
)
def test_wrong_weights_are_told(bad: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        check_sample_weight(bad, 3)


def test_numbers_and_choices_are_told_by_name() -> None:
    assert check_real("tol", 0.5, low=0) == 0.5
    assert check_real("n", np.int64(3), low=1, integer=True) == 3
    with pytest.raises(ValueError, match=r"tol must be a number in \(0, 1\]; got 0"):
        check_real("tol", 0, low=0, high=1, open_low=True)
    with pytest.raises(ValueError, match=r"tol must be .*; got nan"):
        check_real("tol", np.nan, low=0)
    for bad in (True, "a", None, 1.5):
        with pytest.raises(TypeError, match=r"n must be an integer in \[1, inf\]; got"):
            check_real("n", bad, low=1, integer=True)
    assert check_choice("mode", "a", ["a", None]) == "a"
    with pytest.raises(ValueError, match=r"mode must be one of 'a', None; got 'b'"):
        check_choice("mode", "b", ["a", None])


def test_answers_have_the_precision_of_the_question() -> None:
    assert like_input(X.astype(np.float32), Y).dtype == np.float32
    assert like_input(X, Y).dtype == np.float64
    assert like_input(X.tolist(), Y).dtype == np.float64


def test_targets_beyond_the_range_of_the_predictions_are_refused() -> None:
    X, y = np.ones((3, 1), dtype=np.float32), np.array([0.0, 1.0, 1e39])
    with pytest.raises(ValueError, match=r"y reaches 1e\+39, beyond the range of float32"):
        check_xy(BaseEstimator(), X, y)
    assert check_xy(BaseEstimator(), X.astype(np.float64), y)[1][2] == 1e39
    assert check_xy(BaseEstimator(), X, y * 1e-2)[1][2] == 1e37


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_texts_are_not_rows(kind: Any) -> None:
    with pytest.raises(ValueError, match=r"X must be a matrix of numbers; got 2 texts, the first of them 'ab'"):
        check_x(BaseEstimator(), kind(["ab", "cd"]), reset=True)
