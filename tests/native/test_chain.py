"""Inference on chains and trees against enumeration, and what the binding refuses."""

from __future__ import annotations

from typing import Any

import certifit._native.chain as native
import numpy as np
import pytest
from tests.oracles.chains import Enumerated

K = 3


def allowed_all(labels: int = K) -> np.ndarray:
    return np.ones((labels + 1, labels + 1), dtype=np.uint8)


def topological(parent: list[int]) -> np.ndarray:
    def depth(t: int) -> int:
        steps = 0
        while parent[t] >= 0:
            t, steps = parent[t], steps + 1
        return steps

    if parent == list(range(-1, len(parent) - 1)):
        return np.arange(len(parent), dtype=np.int32)
    return np.argsort([depth(t) for t in range(len(parent))], kind="stable").astype(np.int32)


class Case:
    """Given unary scores for a few sequences, and everything the kernel needs."""

    def __init__(
        self,
        lengths: list[int],
        labels: int = K,
        seed: int = 0,
        size: float = 1.0,
        forbid: Any = (),
        parents: Any = None,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.labels, self.lengths = labels, lengths
        self.offset = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.unary = size * rng.normal(size=(self.offset[-1], labels))
        self.A, self.start, self.end = (
            size * rng.normal(size=(labels, labels)),
            rng.normal(size=labels),
            rng.normal(size=labels),
        )
        self.allowed = allowed_all(labels)
        for i, j in forbid:
            self.allowed[i, j] = 0
        self.parents = parents
        extra = {}
        if parents is not None:
            extra["parent"] = np.concatenate(parents).astype(np.int32)
            extra["order"] = np.concatenate([topological(p) for p in parents])
        self.data = native.sequences(self.offset, 0, given=self.unary, **extra)
        self.shape = native.shape(self.allowed, 0)
        self.w = np.concatenate([self.A.ravel(), self.start, self.end])

    def enumerated(self, i: int) -> Enumerated:
        never = np.where(self.allowed == 0, -np.inf, 0.0)
        return Enumerated(
            self.unary[self.offset[i] : self.offset[i + 1]],
            self.A + never[:-1, :-1],
            self.start + never[-1, :-1],
            self.end + never[:-1, -1],
            None if self.parents is None else self.parents[i],
        )

    def infer(self, threads: int = 1) -> dict[str, np.ndarray]:
        n, N = len(self.lengths), int(self.offset[-1])
        out = {
            "log_z": np.empty(n),
            "marginals": np.empty((N, self.labels)),
            "path": np.empty(N, dtype=np.int32),
            "best": np.empty(n),
        }
        native.infer(self.data, self.shape, self.w, **out, threads=threads)
        return out


CASES = {
    "chain": Case([1, 2, 5, 4]),
    "two labels": Case([1, 6, 3], labels=2, seed=1),
    "one label": Case([1, 4], labels=1),
    "large scores": Case([1, 3, 5], size=400.0, seed=2),
    "forbidden": Case([2, 4, 5], forbid=[(0, 1), (2, 2), (K, 0), (1, K)], seed=3),
    "forbidden, large": Case([2, 4, 5], forbid=[(0, 1), (1, 2)], seed=4, size=200.0),
    "trees": Case([1, 4, 5, 3], seed=5, parents=[[-1], [-1, 0, 0, 1], [2, 2, -1, 2, 3], [-1, -1, 0]]),
    "trees, forbidden": Case([4, 5], seed=6, forbid=[(1, 1), (K, 2)], parents=[[3, 3, 3, -1], [1, 2, 3, 4, -1]]),
    "a chain as a tree": Case([1, 5], seed=7, parents=[[-1], [-1, 0, 1, 2, 3]]),
}
BY_CASE = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


@BY_CASE
def test_sums_and_marginals(case: Case) -> None:
    found = case.infer()
    pairs = np.zeros((int(case.offset[-1]), case.labels**2))
    log_z, marginals = np.empty(len(case.lengths)), np.empty_like(found["marginals"])
    native.infer(case.data, case.shape, case.w, log_z=log_z, marginals=marginals, pairs=pairs)
    np.testing.assert_allclose(log_z, found["log_z"], rtol=1e-13)
    np.testing.assert_allclose(marginals, found["marginals"], rtol=1e-9, atol=1e-13)
    for i in range(len(case.lengths)):
        exact, rows = case.enumerated(i), slice(case.offset[i], case.offset[i + 1])
        assert found["log_z"][i] == pytest.approx(exact.log_z, rel=1e-13)
        np.testing.assert_allclose(found["marginals"][rows], exact.marginals, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(pairs[rows].reshape(exact.pairs.shape), exact.pairs, rtol=1e-9, atol=1e-13)


@BY_CASE
def test_the_best_labelling(case: Case) -> None:
    found = case.infer()
    for i in range(len(case.lengths)):
        paths, scores = case.enumerated(i).best()
        assert tuple(found["path"][case.offset[i] : case.offset[i + 1]]) == paths[0]
        assert found["best"][i] == pytest.approx(scores[0], rel=1e-13)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.parents is None])
@pytest.mark.parametrize("count", [1, 4, 1000])
def test_the_n_best_labellings(name: str, count: int) -> None:
    case = CASES[name]
    for i, T in enumerate(case.lengths):
        paths, scores = np.empty((count, T), dtype=np.int32), np.empty(count)
        n = native.best_paths(case.data, case.shape, case.w, i, paths, scores)
        exact_paths, exact_scores = case.enumerated(i).best(count)
        assert n == len(exact_paths)
        np.testing.assert_allclose(scores[:n], exact_scores, rtol=1e-12)
        assert [tuple(p) for p in paths[:n]] == exact_paths


def test_a_tree_of_single_children_is_the_chain() -> None:
    lengths = [7, 30, 1]
    chain = Case(lengths, seed=9)
    tree = Case(lengths, seed=9, parents=[list(range(-1, n - 1)) for n in lengths])
    for name, value in chain.infer().items():
        np.testing.assert_allclose(value, tree.infer()[name], rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("size", [1.0, 30.0, 900.0])
@pytest.mark.parametrize("forbid", [(), ((0, 1), (1, 0), (2, 0))])
def test_five_thousand_positions_do_not_underflow(size: float, forbid: Any) -> None:
    """Scaled, in log space, and with labels that fall behind for good; the tree's recursion is the reference."""
    lengths = [5000]
    chain = Case(lengths, seed=1, size=size, forbid=forbid)
    tree = Case(lengths, seed=1, size=size, forbid=forbid, parents=[list(range(-1, 4999))])
    found, reference = chain.infer(), tree.infer()
    assert np.isfinite(found["log_z"]).all()
    assert found["log_z"][0] == pytest.approx(reference["log_z"][0], rel=1e-12)
    assert found["log_z"][0] >= found["best"][0] - 1e-9 * abs(found["best"][0])
    np.testing.assert_allclose(found["marginals"].sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(found["marginals"], reference["marginals"], atol=1e-9)


@pytest.mark.parametrize("labels", [5, 8, 12, 17, 64, 70])
def test_any_number_of_labels(labels: int) -> None:
    lengths = [3, 20, 1]
    chain = Case(lengths, labels=labels, seed=2)
    tree = Case(lengths, labels=labels, seed=2, parents=[list(range(-1, n - 1)) for n in lengths])
    for name, value in chain.infer().items():
        np.testing.assert_allclose(value, tree.infer()[name], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_change_nothing(threads: int) -> None:
    case = Case(np.random.default_rng(0).integers(1, 12, size=200).tolist(), seed=3)
    for name, value in case.infer(threads).items():
        np.testing.assert_array_equal(value, case.infer(1)[name])


OFFSET = np.array([0, 2, 3], dtype=np.int64)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"offset": np.array([0, 2, 2], dtype=np.int64)}, "empty"),
        ({"offset": np.array([1, 2, 3], dtype=np.int64)}, "begin with 0"),
        ({"offset": np.array([0, 4, 3], dtype=np.int64)}, "fall"),
        ({"row": np.array([0, 1, 2], dtype=np.int64)}, "length"),
        ({"row": np.array([0, 1, 2, 3], dtype=np.int64)}, "end with"),
        ({"feature": np.array([0, 9], dtype=np.int32)}, "range"),
        ({"feature": np.array([0, -1], dtype=np.int32)}, "range"),
        ({"value": np.ones(3)}, "length"),
        ({"row": None}, "must be given"),
        ({"parent": np.array([-1, 0, -1], dtype=np.int32)}, "together"),
        (
            {"parent": np.array([1, 0, -1], dtype=np.int32), "order": np.array([0, 1, 0], dtype=np.int32)},
            "parents before",
        ),
        (
            {"parent": np.array([-1, 0, -1], dtype=np.int32), "order": np.array([0, 0, 0], dtype=np.int32)},
            "permutation",
        ),
    ],
)
def test_what_the_binding_refuses(arguments: dict[str, Any], match: str) -> None:
    good = {
        "offset": OFFSET,
        "row": np.array([0, 1, 1, 2], dtype=np.int64),
        "feature": np.array([0, 1], dtype=np.int32),
        "value": None,
    }
    assert native.sequences(features=2, **good).positions == 3
    with pytest.raises(ValueError, match=match):
        native.sequences(features=2, **{**good, **arguments})


def test_the_binding_refuses_arrays_of_the_wrong_length() -> None:
    case = CASES["chain"]
    with pytest.raises(ValueError, match="w has length"):
        native.infer(case.data, case.shape, case.w[:-1], log_z=np.empty(4))
    with pytest.raises(ValueError, match="log_z"):
        native.infer(case.data, case.shape, case.w, log_z=np.empty(3))
    with pytest.raises(ValueError, match="come with log_z"):
        native.infer(case.data, case.shape, case.w, marginals=np.empty((12, K)))
    with pytest.raises(ValueError, match="codes must rise"):
        native.shape(allowed_all(), 1, first=np.array([0, 2], dtype=np.int64), code=np.array([1, 1], dtype=np.int32))
    with pytest.raises(TypeError):
        native.infer(case.data, case.shape, case.w.astype(np.float32), log_z=np.empty(4))
