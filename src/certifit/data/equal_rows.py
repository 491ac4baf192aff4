"""Equal rows and the content of rows: what makes a weight of 2 the row given twice."""

from __future__ import annotations

from typing import Any

import numpy as np

import certifit._native.products as _products
from certifit._types import Array, Matrix, is_sparse

__all__ = ["content_order", "equal_rows", "merge_rows", "repetitions", "row_codes"]

CONTENT_LIMIT = 1 << 20  # entries of X up to which the order of rows follows from their content
MOST_REPETITIONS = 100  # of a row, on average: whole weights beyond that are taken for relative ones
MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def content_order(X: Matrix, y: Array) -> Array | None:
    """Rows in an order that depends on what they contain; None when X is so large that reading it once more is felt.

    Drawn from that order, a fit does not depend on how the rows were sorted, and a row of weight 2 leads to exactly the fit
    of the row given twice. For larger X both hold in distribution.
    """
    entries = X.nnz if is_sparse(X) else X.size
    if entries > CONTENT_LIMIT:
        return None
    return np.argsort(row_codes(X, y), kind="stable")


def equal_rows(X: Matrix, y: Array) -> tuple[Array, Array]:
    """The distinct rows (with their targets), in an order that depends on content alone, and which of them each row is.

    Returns
    -------
    first : array of shape (m,)
        Numbers of rows, one for each distinct content.
    which : array of shape (n,)
        Row i has the content of row ``first[which[i]]``.
    """
    codes = row_codes(X, y)
    order = np.argsort(codes)
    ordered = codes[order]
    if (ordered[1:] != ordered[:-1]).all():  # the usual case: no two rows are equal
        which = np.empty_like(order)
        which[order] = np.arange(order.shape[0])
        return order, which
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    # A collision of codes would merge rows that differ; at 64 bits it is unheard of, and it is checked all the same.
    copies = np.setdiff1d(np.arange(y.shape[0]), first)
    twins = first[which[copies]]
    same = X[copies] != X[twins]
    differs = same.nnz > 0 if is_sparse(X) else bool(same.any())
    if differs or (y[copies] != y[twins]).any():
        return np.arange(y.shape[0]), np.arange(y.shape[0])
    return first, which


def merge_rows(X: Matrix, y: Array, weight: Array) -> tuple[Matrix, Array, Array]:
    """Equal rows become one with the sum of their weights, in an order that depends on content alone.

    A method whose optimum need not be unique gives the same answer for a weight of 2 and for the row twice, and for every
    order of the rows, when it starts from this.
    """
    first, which = equal_rows(X, y)
    return X[first], y[first], np.bincount(which, weights=weight)


def repetitions(weight: Array) -> int:
    """How many rows the weights stand for, for methods that draw as many.

    Whole weights count repetitions: their sum, so that a weight of 2 is the row given twice. Weights that are not whole, or that
    count more than 100 repetitions a row on average, are relative: as many as there are rows, so that what a fit costs does not
    grow with the unit of the weights.
    """
    total, n = float(weight.sum()), weight.shape[0]
    whole = total <= MOST_REPETITIONS * n and not np.mod(weight, 1.0).any()
    return round(total) if whole else n


def row_codes(X: Matrix, y: Array) -> Array:
    """A 64-bit code of the content of each row (and its targets), the same for dense and sparse."""
    with np.errstate(over="ignore"):
        if y.ndim == 2:  # several targets
            return _mixed(
                row_codes(X, y[:, 0]) + row_codes(np.ascontiguousarray(y, dtype=np.float64), y[:, 0]), np.uint64(1)
            )
        code = _mixed(_bits(y), np.uint64(0))
        if is_sparse(X):
            entries = X.tocoo()
            nonzero = entries.data != 0
            mixed = _mixed(_bits(entries.data[nonzero]), entries.col[nonzero].astype(np.uint64) + np.uint64(1))
            np.add.at(code, entries.row[nonzero], mixed)
        else:
            code += _products.codes(X if X.flags.f_contiguous else np.ascontiguousarray(X))
        return _mixed(code, np.uint64(0))


def _bits(values: Array) -> Array:
    # Adding 0.0 turns −0.0 into 0.0, so that equal numbers have equal bits; so have missing values.
    numbers = np.asarray(values, dtype=np.float64) + 0.0
    return np.ascontiguousarray(np.where(np.isnan(numbers), np.nan, numbers)).view(np.uint64)


def _mixed(bits: Array, salt: Any) -> Array:
    """splitmix64's finalizer: every input bit moves half of the output bits."""
    z = bits + (salt + np.uint64(1)) * MIX[0]
    z = (z ^ (z >> np.uint64(30))) * MIX[1]
    z = (z ^ (z >> np.uint64(27))) * MIX[2]
    return np.asarray(z ^ (z >> np.uint64(31)))
