"""Sparse matrices whose arrays do not describe one; each is given the same honest values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp


def _index(kind: str, value: int) -> Callable[[Any], Any]:
    def make(X: Any) -> Any:
        out = sp.csr_array(X).asformat(kind)
        out.indices[out.nnz // 2] = value
        return out

    return make


def _pointers(kind: str, change: Callable[[Any], None]) -> Callable[[Any], Any]:
    def make(X: Any) -> Any:
        out = sp.csr_array(X).asformat(kind)
        change(out.indptr)
        return out

    return make


def _falling(pointers: Any) -> None:
    pointers[2] = pointers[1] - 1


def _beyond(pointers: Any) -> None:
    pointers[-1] += 10**6


def _late(pointers: Any) -> None:
    pointers[0] = 1


def _short(X: Any) -> Any:
    out = sp.csr_array(X)
    out.data = out.data[:-3]
    return out


def _few_rows(X: Any) -> Any:
    out = sp.csr_array(X)
    out.indptr = out.indptr[:-2]
    return out


def _coordinates(X: Any) -> Any:
    out = sp.coo_array(X)
    out.col[out.nnz // 2] = 10**6
    return out


def _list(X: Any) -> Any:
    out = sp.lil_array(X)
    out.rows[1] = [*out.rows[1][:-1], 10**6]
    return out


def _uneven_list(X: Any) -> Any:
    out = sp.lil_array(X)
    out.data[1] = [*out.data[1], 1.0, 2.0]
    return out


def _blocks(X: Any) -> Any:
    out = sp.bsr_array(sp.csr_array(X), blocksize=(1, 1))
    out.indices[3] = 10**6
    return out


DAMAGED: dict[str, Callable[[Any], Any]] = {
    "csr, index beyond": _index("csr", 10**6),
    "csr, index below": _index("csr", -(10**6)),
    "csr, index one too high": lambda X: _index("csr", np.shape(X)[1])(X),
    "csc, index beyond": _index("csc", 10**6),
    "csc, index below": _index("csc", -1),
    "csr, falling pointers": _pointers("csr", _falling),
    "csc, falling pointers": _pointers("csc", _falling),
    "csr, pointers beyond": _pointers("csr", _beyond),
    "csr, pointers that start late": _pointers("csr", _late),
    "csr, few values": _short,
    "csr, few pointers": _few_rows,
    "coo": _coordinates,
    "lil": _list,
    "lil, uneven": _uneven_list,
    "bsr": _blocks,
}
