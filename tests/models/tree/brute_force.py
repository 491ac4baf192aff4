"""Every split that a node could have, and the best of them by trying all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from certifit import DecisionTreeClassifier, DecisionTreeRegressor

CLASSES = ("gini", "entropy", "misclassification")
NUMBERS = ("squared", "absolute", "poisson")


def tree_for(criterion: str, **options: Any) -> Any:
    kind = DecisionTreeClassifier if criterion in CLASSES else DecisionTreeRegressor
    return kind(criterion, **options)


def median(y: np.ndarray, w: np.ndarray) -> float:
    order = np.argsort(y)
    y, w = y[order], w[order]
    held = np.cumsum(w)
    lower = y[np.flatnonzero(2 * held >= held[-1] * (1 - 1e-12))[0]]
    upper = y[np.flatnonzero(2 * held > held[-1] * (1 + 1e-12))[0]]
    return float(0.5 * (lower + upper))


def loss(y: np.ndarray, w: np.ndarray, criterion: str) -> float:
    """W · impurity, straight from the definition; of several targets the mean."""
    if y.ndim == 2:
        return float(np.mean([loss(column, w, criterion) for column in y.T]))
    W = w.sum()
    if criterion in CLASSES:
        p = np.array([w[y == c].sum() for c in np.unique(y)]) / W
        if criterion == "gini":
            return float(W * (1 - (p**2).sum()))
        if criterion == "entropy":
            return float(-W * (p * np.log2(p)).sum())
        return float(W * (1 - p.max()))
    if criterion == "absolute":
        return float(w @ np.abs(y - median(y, w)))
    mean = w @ y / W
    if criterion == "squared":
        return float(w @ (y - mean) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(w @ np.where(y > 0, y * np.log(y / mean), 0.0))


def response(y: np.ndarray, w: np.ndarray, criterion: str) -> float:
    if criterion == "absolute":
        return median(y, w)
    return float(w @ y / w.sum())


def candidates(X: np.ndarray, categorical: list[int]) -> Iterator[tuple[int, float, bool, np.ndarray]]:
    """All splits of a node in the order of preference: feature, threshold, missing values right first."""
    for j in range(X.shape[1]):
        x = X[:, j]
        absent = np.isnan(x)
        if j in categorical:
            levels = [*np.unique(x[~absent]), *([np.nan] if absent.any() else [])]
            masks = [absent if np.isnan(v) else x == v for v in levels]
            for size in range(1, len(levels)):
                for chosen in itertools.combinations(range(len(levels)), size):
                    yield j, np.nan, False, np.any([masks[k] for k in chosen], axis=0)
            continue
        values = np.unique(x[~absent])
        cuts = [*(0.5 * (values[:-1] + values[1:])), *([np.inf] if absent.any() and values.size else [])]
        for cut in cuts:
            low = np.where(absent, False, x <= cut)
            yield j, cut, False, low
            if absent.any() and np.isfinite(cut):
                yield j, cut, True, low | absent


def check_every_split(
    model: Any,
    X: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    criterion: str,
    *,
    categorical: Any = (),
    monotone: Any = None,
    min_leaf: float = 0.0,
) -> int:
    """Walk the tree; in each node compare its split with all others. Returns the number of inner nodes."""
    tree, visits = model._tree, model.decision_path(X).toarray().astype(bool)
    assert visits.shape[1] == tree.nodes.shape[0]
    bounds = {0: (-np.inf, np.inf)}
    inner = 0
    for node in range(tree.nodes.shape[0]):
        rows = visits[:, node]
        Xn, yn, wn = X[rows], y[rows], w[rows]
        own = loss(yn, wn, criterion)
        assert tree.weight[node] == pytest.approx(wn.sum())
        assert tree.loss[node] == pytest.approx(own, rel=1e-9, abs=1e-9 * loss(y, w, criterion))
        scale = max(loss(y, w, criterion), 1e-12)
        low, high = bounds[node]
        found = []
        for j, cut, missing_left, left in candidates(Xn, list(categorical)):
            if not left.any() or left.all():
                continue
            if min(wn[left].sum(), wn[~left].sum()) < min_leaf:
                continue
            expected = yn.sum(axis=0) > 0
            if criterion == "poisson" and (
                (expected & (yn[left].sum(axis=0) == 0)).any() or (expected & (yn[~left].sum(axis=0) == 0)).any()
            ):
                continue
            if monotone is not None:
                a, b = response(yn[left], wn[left], criterion), response(yn[~left], wn[~left], criterion)
                if monotone[j] * (b - a) < -1e-12 or min(a, b) < low - 1e-12 or max(a, b) > high + 1e-12:
                    continue
            worth = own - loss(yn[left], wn[left], criterion) - loss(yn[~left], wn[~left], criterion)
            found.append((worth, j, cut, missing_left))
        if tree.is_leaf[node]:
            pure = np.unique(yn, axis=0).shape[0] == 1
            assert pure or not found, f"node {node} could be split"
            continue
        inner += 1
        left = visits[rows][:, tree.left[node]]
        assert 0 < left.sum() < left.shape[0]
        worth = own - loss(yn[left], wn[left], criterion) - loss(yn[~left], wn[~left], criterion)
        best = max(c[0] for c in found)
        assert worth == pytest.approx(best, abs=1e-9 * scale)
        first = next(c for c in found if c[0] >= best - 1e-11 * scale)
        assert tree.feature[node] == first[1], "the lowest feature wins a tie"
        if not tree.is_categorical[node]:
            assert tree.threshold[node] == pytest.approx(first[2]), "the lowest threshold wins a tie"
            if np.isnan(Xn[:, first[1]]).any():
                assert tree.missing_left[node] == first[3]
            else:
                assert tree.missing_left[node] == (wn[left].sum() > wn[~left].sum() + 1e-9), (
                    "unseen NaN goes to the larger side, of equal ones to the right"
                )
        children = [(low, high), (low, high)]
        if monotone is not None and monotone[first[1]] != 0:
            a, b = response(yn[left], wn[left], criterion), response(yn[~left], wn[~left], criterion)
            middle = 0.5 * (a + b)
            children = [(low, middle), (middle, high)] if monotone[first[1]] > 0 else [(middle, high), (low, middle)]
        bounds[int(tree.left[node])], bounds[int(tree.left[node]) + 1] = children
    return inner
