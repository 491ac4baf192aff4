"""Damaged sparse matrices are refused before anybody follows their indices; untidy ones are tidied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.data.damaged import DAMAGED

from certifit import LinearChainCRF, bayes_error, is_separable, permutation_importance
from certifit.data.sparse import canonical, check_sparse
from certifit.kernels import RBF, Linear

X = np.random.default_rng(0).normal(size=(20, 6)) * (np.random.default_rng(1).random((20, 6)) < 0.5) + np.eye(20, 6)


@pytest.mark.parametrize("what", DAMAGED)
def test_damage_is_named(what: str) -> None:
    with pytest.raises(ValueError, match=r"^X is a damaged sparse matrix: .*\. Build it again") as caught:
        check_sparse(DAMAGED[what](X))
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"^Z is a damaged"):
        check_sparse(DAMAGED[what](X), "Z")


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
@pytest.mark.parametrize("shape", [(20, 6), (0, 6), (20, 0), (1, 1)])
def test_whole_matrices_pass(kind: str, shape: tuple[int, int]) -> None:
    check_sparse(sp.csr_array(X[: shape[0], : shape[1]]).asformat(kind))
    check_sparse(sp.csr_matrix(X[: shape[0], : shape[1]]).asformat(kind))


def test_dimensions_and_diagonals() -> None:
    with pytest.raises(ValueError, match="two-dimensional"):
        check_sparse(sp.coo_array(np.ones(3)))
    diagonals = sp.dia_array(X)
    diagonals.offsets = diagonals.offsets[:-1]
    with pytest.raises(ValueError, match="offsets for diagonals"):
        check_sparse(diagonals)


def untidy(kind: str) -> Any:
    """Unsorted entries, each in two parts, in a matrix that is believed to be in order."""
    tidy = sp.csr_array(X).asformat(kind)
    major = np.repeat(np.arange(tidy.indptr.size - 1), np.diff(tidy.indptr))
    order = np.lexsort((-np.tile(tidy.indices, 2), np.tile(major, 2)))
    data, indices = np.tile(tidy.data / 2, 2)[order], np.tile(tidy.indices, 2)[order]
    made = type(tidy)((data, indices, 2 * tidy.indptr), shape=tidy.shape)
    made.has_canonical_format = made.has_sorted_indices = True
    return made


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_untidy_matrices_are_tidied_whatever_their_flags_say(kind: str) -> None:
    given = untidy(kind)
    before = given.indices.copy()
    found = canonical(given)
    np.testing.assert_array_equal(found.toarray(), X)
    assert found.nnz == np.count_nonzero(X)
    np.testing.assert_array_equal(given.indices, before)
    assert canonical(found) is found


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_order_within_rows_is_seen_in_every_kind_of_index(index: type) -> None:
    tidy = sp.csr_array(X)
    for swapped, good in ((False, True), (True, False)):
        indices = tidy.indices.astype(index)
        row = int(np.flatnonzero(np.diff(tidy.indptr) > 1)[-1])
        first = tidy.indptr[row]
        if swapped:
            indices[[first, first + 1]] = indices[[first + 1, first]]
        for pointers in (tidy.indptr.astype(np.int32), tidy.indptr.astype(np.int64)):
            made = sp.csr_array((tidy.data.copy(), indices, pointers), shape=X.shape)
            made.indices, made.indptr = indices, pointers
            assert (canonical(made) is made) == good


def test_spare_room_behind_the_entries_is_cut_off() -> None:
    tidy = sp.csr_array(X)
    roomy = sp.csr_array((np.r_[tidy.data, 7.0], np.r_[tidy.indices, 9999], tidy.indptr), shape=X.shape)
    check_sparse(roomy)
    found = canonical(roomy)
    assert found.indices.shape == found.data.shape == tidy.data.shape
    np.testing.assert_array_equal(found.toarray(), X)


@pytest.mark.parametrize("what", ["csr, index beyond", "csc, falling pointers", "coo"])
def test_functions_that_take_rows(what: str) -> None:
    bad, y = DAMAGED[what](X), np.arange(20) % 2
    for call in (
        lambda: is_separable(bad, y),
        lambda: bayes_error(bad, y),
        lambda: Linear()(bad),
        lambda: Linear()(X, bad),
        lambda: RBF().diagonal(bad),
        lambda: LinearChainCRF().fit([bad], [y]),
        lambda: LinearChainCRF().fit(bad, y, lengths=[10, 10]),
        lambda: permutation_importance(lambda X: X[:, [0]].toarray()[:, 0], bad, y, "mse"),
    ):
        with pytest.raises(ValueError, match="damaged sparse matrix"):
            call()
