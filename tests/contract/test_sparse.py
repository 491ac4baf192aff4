"""Sparse X gives what dense X gives, in every format, or a clear refusal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.contract.data import assert_same, features, fit, output, targets, unbothered, weights
from tests.contract.discovery import Case, parametrize

SPARSE = parametrize(lambda case: case.takes_sparse)


def sparse_data(case: Case) -> tuple[np.ndarray, Any]:
    X = features(case)
    X[np.random.default_rng(8).uniform(size=X.shape) < 0.6] = 0.0
    return X, targets(case, X)


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


def formats(X: np.ndarray) -> dict[str, Any]:
    return {
        "csr": sp.csr_array(X),
        "csc": sp.csc_array(X),
        "csr_matrix": sp.csr_matrix(X),
        "csc_matrix": sp.csc_matrix(X),
        "coo": sp.coo_array(X),
        "lil": sp.lil_array(X),
        "csr, 64-bit": wide_indices(sp.csr_array(X)),
        "csc, 64-bit": wide_indices(sp.csc_array(X)),
        "csr, unsorted": unsorted(sp.csr_array(X)),
        "csc, unsorted": unsorted(sp.csc_array(X)),
        "stored zeros and parts": with_zeros(X),
    }


@SPARSE
def test_every_format_gives_the_dense_result(case: Case) -> None:
    X, y = sparse_data(case)
    weight = weights() if case.takes_weights else None
    with unbothered():
        wanted = output(fit(case.precise(random_state=0), X, y, weight), X)
        for name, matrix in formats(X).items():
            model = fit(case.precise(random_state=0), matrix, y, weight)
            assert_same(output(model, matrix), wanted, 1e-5), name


@SPARSE
def test_a_model_of_dense_rows_takes_sparse_ones(case: Case) -> None:
    X, y = sparse_data(case)
    with unbothered():
        model = fit(case.build(random_state=0), X, y)
    wanted = output(model, X)
    for matrix in formats(X).values():
        assert_same(output(model, matrix), wanted, 1e-9)


@SPARSE
def test_inputs_are_left_alone(case: Case) -> None:
    X, y = sparse_data(case)
    for name, matrix in formats(X).items():
        if name in ("coo", "lil"):
            continue
        before = [a.copy() for a in (matrix.data, matrix.indices, matrix.indptr)]
        with unbothered():
            output(fit(case.build(random_state=0), matrix, y), matrix)
        for now, then in zip((matrix.data, matrix.indices, matrix.indptr), before, strict=True):
            np.testing.assert_array_equal(now, then)
            assert now.dtype == then.dtype


@SPARSE
def test_read_only_buffers(case: Case) -> None:
    X, y = sparse_data(case)
    for matrix in (sp.csr_array(X), sp.csc_array(X)):
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.flags.writeable = False
        with unbothered():
            output(fit(case.build(random_state=0), matrix, y), matrix)


@SPARSE
def test_single_precision(case: Case) -> None:
    X, y = sparse_data(case)
    for matrix in (sp.csr_array(X.astype(np.float32)), sp.csc_array(X.astype(np.float32))):
        with unbothered():
            model = fit(case.build(random_state=0), matrix, y)
            dense = fit(case.build(random_state=0), X.astype(np.float32), y)
        result = output(model, matrix)
        assert result.dtype == output(dense, X.astype(np.float32)).dtype
        if hasattr(model, "coef_"):
            assert model.coef_.dtype == np.float32
        assert_same(result.astype(float), output(dense, X.astype(np.float32)).astype(float), 5e-3)


@SPARSE
@pytest.mark.parametrize("bad", [np.nan, np.inf])
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


@parametrize(lambda case: not case.takes_sparse)
def test_the_others_refuse_sparse_input(case: Case) -> None:
    X, y = sparse_data(case)
    with pytest.raises((TypeError, ValueError), match=r"(?i)sparse"):
        fit(case.build(), sp.csr_array(X), y)
    with unbothered():
        model = fit(case.build(random_state=0), X, y)
    with pytest.raises((TypeError, ValueError), match=r"(?i)sparse"):
        output(model, sp.csr_array(X))
