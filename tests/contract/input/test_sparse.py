"""Sparse X gives what dense X gives, in every format, or a clear refusal."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.contract.data import FEW, assert_same, features, fit, output, reference, targets, unbothered, weights
from tests.contract.discovery import Case, parametrize
from tests.data.damaged import DAMAGED

SPARSE = parametrize(lambda case: case.takes_sparse)
SPARSE_ONCE = parametrize(lambda case: case.takes_sparse, one_each=True)


def sparse_data(case: Case) -> tuple[np.ndarray, Any]:
    X = features(case)
    X[np.random.default_rng(8).uniform(size=X.shape) < 0.6] = 0.0
    return X, targets(case, X)


@functools.cache
def dense_output(case: Case) -> np.ndarray:
    """What a precise model of the dense rows says about them: all formats are compared with it."""
    X, y = sparse_data(case)
    with unbothered():
        return output(fit(case.precise(random_state=0), X, y, weights() if case.takes_weights else None), X)


def unsorted(matrix: Any) -> Any:
    """The same matrix with the indices of each row in reverse order."""
    out = matrix.copy()
    for start, stop in zip(out.indptr[:-1], out.indptr[1:], strict=True):
        out.indices[start:stop] = out.indices[start:stop][::-1].copy()
        out.data[start:stop] = out.data[start:stop][::-1].copy()
    out.has_sorted_indices = False
    return out


def with_zeros(X: np.ndarray) -> Any:
    """Stored zeros, and entries stored in two parts."""
    full = sp.coo_array(np.ones_like(X))
    halves = np.concatenate([0.5 * X[full.coords], 0.5 * X[full.coords]])
    coords = tuple(np.concatenate([c, c]) for c in full.coords)
    rows, columns = coords
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=X.shape[0]))])
    return sp.csr_array((halves[order], columns[order], indptr), shape=X.shape)


def wide_indices(matrix: Any) -> Any:
    out = matrix.copy()
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


FORMATS: dict[str, Callable[[np.ndarray], Any]] = {
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csr_matrix": sp.csr_matrix,
    "csc_matrix": sp.csc_matrix,
    "coo": sp.coo_array,
    "lil": sp.lil_array,
    "csr, 64-bit": lambda X: wide_indices(sp.csr_array(X)),
    "csc, 64-bit": lambda X: wide_indices(sp.csc_array(X)),
    "csr, unsorted": lambda X: unsorted(sp.csr_array(X)),
    "csc, unsorted": lambda X: unsorted(sp.csc_array(X)),
    "stored zeros and parts": with_zeros,
}
COMPRESSED = [name for name in FORMATS if name not in ("coo", "lil")]


@parametrize(lambda case: case.takes_sparse, form=list(FORMATS))
def test_every_format_gives_the_dense_result(case: Case, form: str) -> None:
    X, y = sparse_data(case)
    matrix = FORMATS[form](X)
    with unbothered():
        model = fit(case.precise(random_state=0), matrix, y, weights() if case.takes_weights else None)
        assert_same(output(model, matrix), dense_output(case), 1e-5)


@SPARSE
def test_a_model_of_dense_rows_takes_sparse_ones(case: Case) -> None:
    X, y = sparse_data(case)
    with unbothered():
        model = fit(case.build(random_state=0), X, y)
    wanted = output(model, X)
    for convert in FORMATS.values():
        assert_same(output(model, convert(X)), wanted, 1e-9)


@parametrize(lambda case: case.takes_sparse, one_each=True)
def test_inputs_are_left_alone(case: Case) -> None:
    """Their arrays are read-only where they need no repair: a write would fail."""
    X, y = sparse_data(case)
    for form in COMPRESSED:
        matrix = FORMATS[form](X)
        parts = (matrix.data, matrix.indices, matrix.indptr)
        before = [part.copy() for part in parts]
        for part in parts:
            part.flags.writeable = form not in ("csr", "csc")
        with unbothered():
            output(fit(case.build(random_state=0, **FEW), matrix, y), matrix)
        for now, then in zip((matrix.data, matrix.indices, matrix.indptr), before, strict=True):
            np.testing.assert_array_equal(now, then)
            assert now.dtype == then.dtype


@parametrize(lambda case: case.takes_sparse, form=["csr", "csc"])
def test_single_precision(case: Case, form: str) -> None:
    X, y = sparse_data(case)
    matrix = FORMATS[form](X.astype(np.float32))
    with unbothered():
        model = fit(case.build(random_state=0), matrix, y)
        dense = fit(case.build(random_state=0), X.astype(np.float32), y)
    result = output(model, matrix)
    assert result.dtype == output(dense, X.astype(np.float32)).dtype
    if hasattr(model, "coef_"):
        assert model.coef_.dtype == np.float32
    assert_same(result.astype(float), output(dense, X.astype(np.float32)).astype(float), 5e-3)


@parametrize(lambda case: case.takes_sparse, one_each=True, bad=[np.nan, np.inf])
def test_missing_and_infinite_entries_are_named(case: Case, bad: float) -> None:
    X, y = sparse_data(case)
    X[3, 2] = bad
    for matrix in (sp.csr_array(X), sp.csc_array(X)):
        if np.isnan(bad) and case.allows_missing:  # what is missing is missing in every format
            with unbothered():
                model, wanted = (fit(case.build(random_state=0), rows, y) for rows in (matrix, X))
            assert_same(output(model, matrix), output(wanted, X), 1e-9)
            continue
        with pytest.raises(ValueError, match=r"(?s)(NaN|infinity).*2"):
            fit(case.build(), matrix, y)


@SPARSE
def test_empty_rows_and_columns(case: Case) -> None:
    X, y = sparse_data(case)
    X[5] = 0.0
    X[:, 1] = 0.0
    rows = features(case, seed=1)  # without empty rows, where classes may tie
    with unbothered():
        wanted = output(fit(case.precise(random_state=0), X, y), rows)
        assert_same(output(fit(case.precise(random_state=0), sp.csr_array(X), y), sp.csr_array(rows)), wanted)


@parametrize(lambda case: not case.takes_sparse, one_each=True)
def test_the_others_refuse_sparse_input(case: Case) -> None:
    X, y = sparse_data(case)
    with pytest.raises((TypeError, ValueError), match=r"(?i)sparse"):
        fit(case.build(), sp.csr_array(X), y)
    with pytest.raises((TypeError, ValueError), match=r"(?i)sparse"):
        output(reference(case).model, sp.csr_array(X))


def calls_with_rows(model: Any, X: Any, y: Any) -> dict[str, Callable[[Any], Any]]:
    """The methods whose first argument is X, as far as this model has them to offer."""
    calls: dict[str, Callable[[Any], Any]] = {}
    for name in dir(model):
        method = None if name.startswith("_") else getattr(model, name, None)
        parameters = list(inspect.signature(method).parameters) if callable(method) else []
        if parameters[:1] == ["X"]:

            def call(X: Any, method: Any = method, more: Any = (y,) if "y" in parameters else ()) -> Any:
                result = method(X, *more)
                return list(result) if hasattr(result, "__next__") else result

            with suppress(ValueError, AttributeError):  # not kept by this fit, not for this loss
                call(X)
                calls[name] = call
    return calls


@SPARSE_ONCE
def test_damaged_matrices_are_refused_by_every_method(case: Case) -> None:
    """An index outside of the matrix would let products read and write anywhere."""
    X, y = sparse_data(case)
    with unbothered():
        model = fit(case.build(random_state=0), X, y)
        calls = calls_with_rows(model, X, y)
    assert {"fit", "predict" if case.predicts else "transform" if case.transforms else "kneighbors"} <= calls.keys()
    for make in DAMAGED.values():
        matrix = make(X)
        for call in calls.values():
            with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
                call(matrix)
