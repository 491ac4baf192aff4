"""Can a linear function separate the classes? The answer comes with a witness that anyone can check.

With s_i = ±1 for the class of row i and x̃ = (1, x) (or x alone, without intercept), write a_i = s_i x̃_i.
Exactly one holds:

    strict    some v has a_i·v > 0 for all i: a hyperplane with every row on its side;
    quasi     no such v, but some v has a_i·v ≥ 0 for all i and > 0 for one: rows of both classes lie on the plane;
    no        some λ_i > 0, Σλ_i = 1, has Σ λ_i a_i = 0, so that Σ λ_i (a_i·v) = 0 for all v: nothing separates
              (Stiemke's form of Farkas's lemma).

The maximum likelihood estimate of logistic regression is finite in the last case only. For K classes the rows are
a_(i,k) = (e_{y_i} − e_k) ⊗ x̃_i for k ≠ y_i.     Albert & Anderson, Biometrika 1984
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from certifit._types import Array, Matrix, is_sparse
from certifit.data.targets import check_labels
from certifit.optimization.closed_form.magnitudes import powers_of_two
from certifit.optimization.newton.systems import solve_semidefinite
from certifit.representation.design.products import weighted_gram

__all__ = ["Separability", "is_balanced", "is_separable", "overlap_weights", "separability", "strictly_separable"]

ROUNDING = 1e-9  # what a witness may violate, relative to the size of its terms


@dataclass(frozen=True)
class Separability:
    """Whether a linear function separates the classes, and the proof.

    Parameters
    ----------
    separable : bool
        Whether `kind` is not ``"no"``: the likelihood has no finite maximum.
    kind : {"strict", "quasi", "no"}
        Every row strictly on its side; on its side or on the plane; or not separable.
    direction : array of shape (1, d) or (K, d), or None
        Normal of the separating plane, positive for the second class; for K classes one row for each class.
    intercept : array of shape (1,) or (K,), or None
        The intercept of the same.
    margin : float
        Smallest distance of a row to its plane (0 for ``"quasi"``; NaN where there is no plane).
    weights : array of shape (n,) or (n, K), or None
        For ``"no"``: λ > 0 with Σ λ_i a_i = 0. For ``"quasi"``: the same with λ ≥ 0, positive for the rows that every
        separating plane passes through. (For K classes the column of the own class is zero.)
    fit_intercept : bool
        Whether planes need not pass through the origin.

    Notes
    -----
    The answer is a truth value: ``if is_separable(X, y):`` asks whether some plane separates, strictly or not.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import is_separable
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> found = is_separable(X, ["a", "a", "b", "b"])
    >>> bool(found), found.kind, found.check(), round(found.margin, 3)
    (True, 'strict', True, 0.5)
    >>> found = is_separable(X, ["a", "b", "a", "b"])
    >>> bool(found), found.kind
    (False, 'no')
    """

    separable: bool
    kind: str
    direction: Array | None
    intercept: Array | None
    margin: float
    weights: Array | None
    fit_intercept: bool
    _data: tuple[Matrix, Array] = field(repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.separable

    def check(self) -> bool:
        """Verify the witness in floating point, from the data alone."""
        X, y = self._data
        if self.kind == "no":
            return self.weights is not None and is_balanced(X, y, self.weights, self.fit_intercept)
        if self.direction is None or self.intercept is None:
            return False
        margins, size = _margins(X, y, self.direction, self.intercept)
        if self.kind == "strict":
            return bool((margins > 1e-15 * (X.shape[1] + 2) * size).all())
        top = float(margins.max(initial=0.0))
        behind = margins < -ROUNDING * np.maximum(size, top)
        if behind.any() or not top > ROUNDING * float(size.max(initial=0.0)):
            return False
        return self.weights is not None and is_balanced(X, y, self.weights, self.fit_intercept, strictly=False)

    def __str__(self) -> str:
        if self.kind == "no":
            return "Not separable: a positive combination of the rows proves it."
        how = "strictly separated" if self.kind == "strict" else "separated up to rows on the plane itself"
        return f"The classes are {how} by {self.describe()}."

    def describe(self, names: Any = None) -> str:
        """The separating function in words, largest coefficients first."""
        if self.direction is None:
            return "no linear function"
        w = self.direction[int(np.abs(self.direction).max(axis=1).argmax())]
        largest = float(np.abs(w).max(initial=0.0))
        order = [j for j in np.argsort(-np.abs(w), kind="stable") if abs(w[j]) > 1e-6 * largest]
        label = [str(names[j]) if names is not None else f"x{j}" for j in order[:3]]
        terms = [f"{w[j] / (largest or 1.0):+.3g}·{name}" for j, name in zip(order[:3], label, strict=True)]
        return " ".join(terms) + (f" … ({len(order)} features)" if len(order) > 3 else "")


def is_separable(X: Any, y: Any, sample_weight: Any = None, *, fit_intercept: bool = True) -> Separability:
    """Decide whether a linear function separates the classes, with a witness.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Features.
    y : array of shape (n_samples,)
        Labels of two or more classes.
    sample_weight : array of shape (n_samples,), optional
        Rows of weight zero do not count; other weights do not matter.
    fit_intercept : bool, default=True
        Whether planes need not pass through the origin.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import is_separable
    >>> X = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 1.5], [1.0, 5.0]])
    >>> found = is_separable(X, [0, 1, 0, 1])
    >>> found.kind, found.check()
    ('strict', True)
    >>> is_separable(X[:, :1], [0, 1, 0, 1]).kind
    'quasi'
    """
    X, codes, _, classes = check_labels(BaseEstimator(), X, y, sample_weight)
    return separability(X, codes, classes.shape[0], fit_intercept)


def separability(X: Matrix, codes: Array, n_classes: int, fit_intercept: bool) -> Separability:
    """The decision for validated data: one linear program.

        maximize Σ t_i    subject to    a_i·v ≥ t_i,  0 ≤ t_i ≤ 1

    Its value is the number of rows that some v puts strictly on their side while no row is on the wrong one; its
    multipliers are the weights λ.
    """
    rows, found, center, unit, row_unit = _program(X, codes, n_classes, fit_intercept)
    m, D = rows.shape
    v = found.x[:D]
    margins = np.asarray(rows @ v)
    ahead = margins > 0.5
    weights = None
    if not ahead.all():  # the multipliers of the rows that no v puts ahead are at least one, those of the others zero
        on = np.flatnonzero(~ahead)
        prices = np.maximum(-found.ineqlin.marginals[on], 0.0)
        weights = np.zeros(m)
        weights[on] = _polished_weights(rows[on], prices / (prices.sum() or 1.0))
        # The multipliers are of rows that may have had units of their own.
        weights /= row_unit
        weights /= weights.sum() or 1.0
        weights = weights if n_classes == 2 else _spread(weights, codes, n_classes)
        if not ahead.any():
            return Separability(False, "no", None, None, float("nan"), weights, fit_intercept, (X, codes))
        v = _polished_direction(rows, v, ahead)
    W = v.reshape(1 if n_classes == 2 else n_classes, -1)
    b = W[:, 0] if fit_intercept else np.zeros(W.shape[0])
    W = W[:, 1:] if fit_intercept else W
    with np.errstate(over="ignore", under="ignore"):
        W = W / unit
    b = b - W @ center if center.any() else b
    kind = "strict" if ahead.all() else "quasi"
    margin = 0.0
    if kind == "strict":
        distances, _ = _margins(X, codes, W, b)
        margin = float(distances.min()) / (float(np.linalg.norm(W)) / (1.0 if n_classes == 2 else np.sqrt(2.0)) or 1.0)
    return Separability(True, kind, W, b, margin, weights, fit_intercept, (X, codes))


def _program(
    X: Matrix, codes: Array, n_classes: int, fit_intercept: bool
) -> tuple[sp.csr_array, Any, Array, Array, Array]:
    """The rows a_i as the linear program takes them, its solution; center and unit of each column, and the units of the rows.

    None of them changes the answer, but the program decides up to 1e-7 of its entries, and must not find all rows in one place:
    columns are measured from their median by the median distance from it, and each row by its largest entry. Where the
    program gives up on that, columns are measured by their largest entry.
    """
    ways: tuple[Callable[..., tuple[Matrix, Array, Array]], ...] = (_by_median, _by_largest)
    for way in ways:
        scaled, center, unit = way(X, fit_intercept)
        rows = _constraint_rows(scaled, codes, n_classes, fit_intercept)
        m, D = rows.shape
        row_unit = np.ones(m) if way is _by_largest else powers_of_two(_largest(abs(rows).T))
        rows = rows if way is _by_largest else sp.csr_array(sp.diags(1.0 / row_unit) @ rows)
        found = scipy.optimize.linprog(
            np.concatenate([np.zeros(D), -np.ones(m)]),
            A_ub=sp.hstack([-rows, sp.eye_array(m)], format="csc"),
            b_ub=np.zeros(m),
            bounds=[(None, None)] * D + [(0.0, 1.0)] * m,
            method="highs",
        )
        if found.status == 0 and found.x is not None:
            return rows, found, center, unit, row_unit
    raise RuntimeError(f"The linear program of the separability test failed: {found.message}")


def _by_largest(X: Matrix, fit_intercept: bool) -> tuple[Matrix, Array, Array]:
    """The columns in units of their largest entries; the center zero, and the units."""
    unit, scaled = powers_of_two(_largest(abs(X))), X.astype(np.float64)
    scaled = sp.csr_array(scaled @ sp.diags(1.0 / unit)) if is_sparse(X) else scaled / unit
    return scaled, np.zeros(X.shape[1]), unit


def _by_median(X: Matrix, fit_intercept: bool) -> tuple[Matrix, Array, Array]:
    """The columns, unless sparse from their medians where there is an intercept, in units of the median that is left."""
    if is_sparse(X):
        columns = sp.csc_array(X, dtype=np.float64)
        parts = np.split(columns.data, columns.indptr[1:-1])
        unit = powers_of_two(np.array([_median_size(part) for part in parts]))
        return sp.csr_array(columns @ sp.diags(1.0 / unit)), np.zeros(X.shape[1]), unit
    moved = X.astype(np.float64)
    center = np.median(moved, axis=0) if fit_intercept else np.zeros(X.shape[1])
    moved = moved - center
    unit = powers_of_two(np.array([_median_size(column) for column in moved.T]))
    return moved / unit, center, unit


def _median_size(values: Array) -> float:
    """Of those that are not zero."""
    sizes = np.abs(values[values != 0.0])
    return float(np.median(sizes)) if sizes.size else 0.0


def _largest(size: Matrix) -> Array:
    found: Any = size.max(axis=0)
    return np.asarray(found.toarray() if is_sparse(size) else found, dtype=np.float64).ravel()


def strictly_separable(X: Matrix, codes: Array, fit_intercept: bool) -> bool | None:
    """Whether some plane has every row of two classes strictly on its side; None where no witness holds in rounding.

    The witness against it is Gordan's: λ ≥ 0, not all zero, with Σ λ_i a_i = 0.
    """
    try:
        found = separability(X, codes, 2, fit_intercept)
    except RuntimeError:  # the linear program gave up
        return None
    if found.kind == "strict":
        return True if found.check() else None
    assert found.weights is not None
    return False if is_balanced(X, codes, found.weights, fit_intercept, strictly=False) else None


def overlap_weights(X: Matrix, codes: Array, p: Array, probability: Array, fit_intercept: bool) -> Array | None:
    """Positive λ with Σ λ_i a_i = 0 from a binary fit that has nearly converged, or None.

    At the maximum of the likelihood λ_i = p_i·P(the other class) balances exactly; one Newton step in the dual, which
    moves λ along the curvature, repairs what is missing. So a converged fit proves that its optimum exists.
    """
    wrong = np.where(codes == 1, 1.0 - probability, probability)
    h = wrong * (1.0 - wrong)
    sign = np.where(codes == 1, 1.0, -1.0)
    gram = weighted_gram(X, p * h)
    first = 0 if fit_intercept else 1
    gram = gram[first:, first:]
    weights = p * wrong
    for _ in range(3):
        signed = sign * weights
        rest = np.append(signed.sum(), np.asarray(X.T @ signed))[first:]
        z = solve_semidefinite(gram, rest)
        move = np.asarray(X @ z[1 - first :]) + (z[0] if fit_intercept else 0.0)
        weights = weights - sign * p * h * move
    if not (weights.min() > 0.0 and np.isfinite(weights).all()):
        return None
    weights = weights / weights.sum()
    return weights if is_balanced(X, codes, weights, fit_intercept) else None


def _constraint_rows(X: Matrix, codes: Array, n_classes: int, fit_intercept: bool) -> sp.csr_array:
    """The vectors a, one in each row."""
    n = X.shape[0]
    tilde = sp.csr_array(sp.hstack([sp.csr_array(np.ones((n, 1))), sp.csr_array(X)]) if fit_intercept else X)
    if n_classes == 2:
        return sp.csr_array(sp.diags(np.where(codes == 1, 1.0, -1.0)) @ tilde)
    blocks = []
    for k in range(n_classes):
        chosen = np.flatnonzero(codes != k)
        own = sp.csr_array(
            (np.ones(chosen.shape[0]), (np.arange(chosen.shape[0]), codes[chosen])), shape=(chosen.shape[0], n_classes)
        )
        other = np.zeros((chosen.shape[0], n_classes))
        other[:, k] = 1.0
        select = sp.csr_array(own - sp.csr_array(other))
        blocks.append(sp.hstack([sp.diags(select[:, [j]].toarray().ravel()) @ tilde[chosen] for j in range(n_classes)]))
    return sp.csr_array(sp.vstack(blocks))


def _spread(weights: Array, codes: Array, n_classes: int) -> Array:
    """Weights of the pairs (i, k), in the order of `_constraint_rows`, as a matrix (n, K)."""
    full, begin = np.zeros((codes.shape[0], n_classes)), 0
    for k in range(n_classes):
        chosen = np.flatnonzero(codes != k)
        full[chosen, k] = weights[begin : begin + chosen.shape[0]]
        begin += chosen.shape[0]
    return full


def _polished_weights(rows: sp.csr_array, weights: Array) -> Array:
    """Remove what the tolerance of the linear program left of Σ λ a, weighted so that small λ move little.

    The moves are those of AᵀΛA s = Aᵀλ. Of fewer rows than columns √λ is made orthogonal to the columns of √ΛA, which are found
    among as many directions as there are rows.
    """
    of_rows = rows.shape[0] < rows.shape[1]
    gram = np.asarray((rows @ rows.T if of_rows else rows.T @ (sp.diags(weights) @ rows)).toarray())
    for _ in range(3):
        if of_rows:
            root = np.sqrt(weights)
            span = _span(*np.linalg.eigh(root[:, None] * gram * root))
            moved = root * (root - span @ (span.T @ root))
        else:
            shift = solve_semidefinite(gram, np.asarray(rows.T @ weights))
            moved = weights * (1.0 - np.asarray(rows @ shift))
        if not (moved > 0.0).all():
            break
        weights = moved / moved.sum()
    return weights


def _polished_direction(rows: sp.csr_array, v: Array, ahead: Array) -> Array:
    """The nearest direction whose rows on the plane are exactly there."""
    on = rows[np.flatnonzero(~ahead)]
    if on.shape[0] < on.shape[1]:
        _, size, across = np.linalg.svd(on.toarray(), full_matrices=False)
        values, vectors = size * size, across.T
    else:
        values, vectors = np.linalg.eigh((on.T @ on).toarray())
    span = _span(values, vectors)
    moved = v - span @ (span.T @ v)
    return moved if (np.asarray(rows[np.flatnonzero(ahead)] @ moved) > 0.0).all() else v


def _span(values: Array, vectors: Array) -> Array:
    """The directions in which there is something."""
    return vectors[:, values > 1e-12 * max(float(values.max(initial=0.0)), 1e-300)]


def _margins(X: Matrix, codes: Array, W: Array, b: Array) -> tuple[Array, Array]:
    """Signed scores of all rows (and rival classes), and the size of the terms they are sums of."""
    scores = np.asarray(X @ W.T, dtype=np.float64) + b
    size = np.asarray(abs(X) @ np.abs(W).T, dtype=np.float64) + np.abs(b)
    if W.shape[0] == 1:
        return np.where(codes == 1, 1.0, -1.0) * scores[:, 0], size[:, 0]
    rows = np.arange(codes.shape[0])
    lead, terms = scores[rows, codes][:, None] - scores, size[rows, codes][:, None] + size
    other = np.arange(W.shape[0]) != codes[:, None]
    return lead[other], terms[other]


def is_balanced(X: Matrix, codes: Array, weights: Array, fit_intercept: bool, *, strictly: bool = True) -> bool:
    """Whether λ > 0 and Σ λ_i a_i = 0, up to rounding and far below what the smallest λ contributes.

    Without `strictly` it is enough that λ ≥ 0 and that some λ_i is positive.
    """
    if weights.ndim == 1:
        signed = (np.where(codes == 1, 1.0, -1.0) * weights)[:, None]
        positive = weights
    else:
        own = np.arange(weights.shape[1]) == codes[:, None]
        positive = weights[~own]
        signed = np.where(own, weights.sum(axis=1, keepdims=True), -weights)
    if not ((positive > 0.0).all() if strictly else (positive >= 0.0).all() and (positive > 0.0).any()):
        return False
    if fit_intercept and not is_sparse(X):  # the sum is the same from any origin: far from it, all would be rounding
        with np.errstate(over="ignore", invalid="ignore"):
            X = X - X.mean(axis=0, dtype=np.float64)
    total = np.asarray(X.T @ signed)
    size = np.asarray(abs(X).T @ np.abs(signed))
    if fit_intercept:
        total, size = np.vstack([total, signed.sum(axis=0)]), np.vstack([size, np.abs(signed).sum(axis=0)])
    # A separating v would need Σ λ_i (a_i·v) > 0; the residual leaves room for less than the smallest weight.
    return bool((np.abs(total) <= ROUNDING * size).all())
