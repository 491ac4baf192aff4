"""Ridge regression that chooses its own alpha.

    minimize over w, b    (1/Σs) Σ s_i ½(y_i − x_i·w − b)² + alpha·½‖w‖²

With the spectrum Σ s_i (x_i − m)(x_i − m)ᵀ = V diag(λ) Vᵀ, q_i = Vᵀ(x_i − m) and z = Σ s_i q_i y_i, the fit
of every alpha is w = V z/(λ + Σs·alpha), and leaving one copy of row i out changes its residual r_i to

    r_i / (1 − h_i),    h_i = 1/Σs + Σ_k q_ik²/(λ_k + (Σs − 1)·alpha).

Here r_i is the residual of the fit with (Σs − 1)·alpha in the place of Σs·alpha: what remains after the
removal has Σs − 1 rows, and alpha multiplies a penalty beside their *mean* loss. So the error is exactly that
of refitting without the row; a weight of 2 is the row twice, and one of the two is left out. Rows of weight
below one are left out whole.
"""

from __future__ import annotations

import numbers
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.gate import check_sample_weight, check_x, check_xy
from certifit.evaluation.splits.folds import splits as splits_of
from certifit.optimization.closed_form.least_squares import solve_least_squares
from certifit.parameters import ALPHAS, CV, FIT_INTERCEPT, Declared, Fitted, check_parameters

__all__ = ["RidgeCV"]

GRID = np.logspace(-7, 1, 49)  # times the total variance of X: from no visible effect to almost no model
LARGEST_SPECTRUM = 5000
SMALL = 2_000_000  # entries of X up to which its singular values are affordable
TOLERANCE = 1e-9

_Splits: TypeAlias = list[tuple[Array, Array]]


class RidgeCV(Declared, RegressorMixin, CertifiedEstimator):
    """Ridge regression with alpha chosen by leave-one-out in closed form, or by K-fold cross-validation.

    Minimizes the weighted mean of ½(y − x·w − b)² plus alpha·½‖w‖²; scikit-learn's alpha is n times ours.

    Attributes
    ----------
    alpha_ : float
        The strength with the least cross-validated error; the larger one of equals.
    alphas_ : array of shape (k,)
        The strengths that were tried.
    cv_error_path_ : array of shape (k,)
        Weighted mean squared error on the rows left out, for each strength.
    coef_, intercept_ : array of shape (d,), float
        The fit to all rows with `alpha_`.
    certificate_ : Certificate
        Evidence that the fit minimizes its objective.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.linear.ridge_cv import RidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> y = X @ [1.0, 2.0, 0.0] + 0.1 * rng.normal(size=50)
    >>> model = RidgeCV().fit(X, y)
    >>> model.coef_.round(1), model.certificate_.certified
    (array([1., 2., 0.]), True)
    """

    alphas: Any = ALPHAS.but(text="Strengths to try. None is a logarithmic grid scaled to the variance of X.")
    fit_intercept: bool = FIT_INTERCEPT
    cv: Any = CV.but(
        None,
        "None is leave-one-out, exact and for all alphas from one decomposition. An integer is the number of folds; a "
        "scikit-learn splitter, or a list of pairs of row indices, is used as it is. With folds, the copies of a weighted row "
        "are in the same fold.",
    )

    alpha_: float = Fitted()
    alphas_: Array = Fitted()
    cv_error_path_: Array = Fitted()
    coef_: Array = Fitted()
    intercept_: float = Fitted()

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeCV:
        """Choose alpha, then fit all rows with it."""
        started = time.perf_counter()
        X, y, weight, splits = self._check_data(X, y, sample_weight)
        free = bool(self.fit_intercept)
        alphas = (
            _default_alphas(X, weight, free)
            if self.alphas is None
            else np.atleast_1d(np.asarray(self.alphas, dtype=np.float64))
        )
        if splits is None:
            errors = _leave_one_out(X, y, weight, alphas, free)
        else:
            errors = _folds(X, y, weight, alphas, free, splits)
        best = _best(alphas, errors)
        p = weight / weight.sum()
        found = solve_least_squares(X, y, p, l2=np.full(X.shape[1], alphas[best]), fit_intercept=free)

        self.alphas_, self.cv_error_path_, self.alpha_ = alphas, errors, float(alphas[best])
        self.coef_ = found.coef.astype(X.dtype, copy=False)
        self.intercept_ = float(found.intercept)
        constant = float(p @ y) if free else 0.0
        spread = float(np.abs(y - constant).max())
        # A gap below the square of rounding in y is no gap.
        gap = found.gap if found.gap > (1e-15 * max(spread, 1e-15 * float(np.abs(y).max()))) ** 2 else 0.0
        self._certify(
            Certificate(
                "closed form",
                objective=found.objective,
                bound=found.objective - gap,
                scale=0.5 * float(p @ (y - constant) ** 2),
                tol=TOLERANCE,
                iterations=1,
                seconds=time.perf_counter() - started,
                note=found.note,
            )
        )
        return self

    def predict(self, X: Any) -> Array:
        """Predicted targets x·w + b."""
        check_is_fitted(self)
        X = check_x(self, X, reset=False)
        return np.asarray(X @ self.coef_ + self.intercept_)

    @property
    def weights_are_counts(self) -> bool:
        """Whether doubling every weight matters: leave-one-out leaves out one copy of a row, and its twin stays.

        With folds all copies of a row are left out together, and only proportions of weights count.
        """
        return self.cv is None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Matrix, Array, Array, _Splits | None]:
        """Data without the rows of weight zero, and the splits in terms of what is left."""
        check_parameters(self)
        if self.cv is None or isinstance(self.cv, numbers.Integral) or hasattr(self.cv, "split"):
            X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, min_samples=2)
            return X, y, weight, None if self.cv is None else list(splits_of(self.cv, X, y, weight))
        # Pairs of index arrays count the rows as they were given.
        X, y, _ = check_xy(self, X, y, min_samples=2)
        weight = check_sample_weight(sample_weight, X.shape[0])
        kept = weight > 0
        place = np.cumsum(kept) - 1
        splits = []
        for pair in check_cv(self.cv, y).split(X, y):
            train, test = (np.arange(X.shape[0])[part] for part in pair)
            splits.append((place[train[kept[train]]], place[test[kept[test]]]))
        return X[kept], y[kept], weight[kept], splits


def _default_alphas(X: Matrix, weight: Array, fit_intercept: bool) -> Array:
    """A grid in units of the total variance, the largest value that an eigenvalue can have."""
    p, (scaled, unit) = weight / weight.sum(), _scaled(X)
    mean = np.asarray(p @ scaled if not _is_sparse(scaled) else scaled.T @ p, dtype=np.float64)
    if _is_sparse(scaled):
        second = float(scaled.multiply(scaled).T @ p @ np.ones(X.shape[1]))
        total = second - float(mean @ mean) if fit_intercept else second
    else:
        centre = mean if fit_intercept else np.zeros(X.shape[1])
        total = sum(float(p[rows] @ ((scaled[rows] - centre) ** 2).sum(axis=1)) for rows in _blocks(scaled))
    with np.errstate(over="ignore", under="ignore"):
        grid = GRID * max(total, 0.0) * unit * unit
    floor, ceiling = np.finfo(np.float64).tiny, np.finfo(np.float64).max
    return np.clip(grid, floor, ceiling) if total > 0 else GRID.copy()


def _best(alphas: Array, errors: Array) -> int:
    """The least error; of equal ones the simplest model."""
    finite = np.where(np.isfinite(errors), errors, np.inf)
    least = finite.min()
    if not np.isfinite(least):  # nothing can be said without data to leave out: the simplest model
        return int(np.argmax(alphas))
    ties = np.flatnonzero(finite <= least * (1.0 + 1e-14))
    return int(ties[np.argmax(alphas[ties])])


# ------------------------------------------------------------------------------------------------------
# One decomposition for all alphas


@dataclass(frozen=True)
class _Spectrum:
    """Σ s_i (x_i − m)(x_i − m)ᵀ = V diag(values) Vᵀ on its range, and z = Vᵀ Σ s_i (x_i − m) y_i."""

    values: Array
    V: Array
    z: Array
    mean: Array
    y_mean: float
    total: float

    def shrinkage(self, penalties: Array) -> Array:
        """1/(λ_k + penalty), one column for each penalty; zero where there is nothing to divide by."""
        sums = self.values[:, None] + penalties
        return np.asarray(np.where(sums > 0, 1.0 / np.where(sums > 0, sums, 1.0), 0.0))

    def rotated(self, X: Matrix, rows: slice) -> Array:
        """q_i = Vᵀ(x_i − m)"""
        return np.asarray(X[rows] @ self.V - self.mean @ self.V, dtype=np.float64)

    def predictions(self, X: Matrix, rows: slice, penalties: Array) -> Array:
        """Fitted values of some rows, one column for each penalty."""
        fitted = self.z[:, None] * self.shrinkage(penalties)
        return np.asarray(self.y_mean + self.rotated(X, rows) @ fitted)


def _spectrum(X: Matrix, y: Array, weight: Array, fit_intercept: bool) -> _Spectrum:
    n, d = X.shape
    total = float(weight.sum())
    if fit_intercept:
        mean = np.asarray(X.T @ weight, dtype=np.float64) / total
        y_mean = float(weight @ y) / total
    else:
        mean, y_mean = np.zeros(d), 0.0
    root, target = np.sqrt(weight), y - y_mean
    if min(n, d) > LARGEST_SPECTRUM:
        raise ValueError(
            f"RidgeCV decomposes X once for all alphas, which needs at most {LARGEST_SPECTRUM} rows or "
            f"columns; X has {n} rows and {d} columns. Reduce the features, or fit Ridge for a few alphas."
        )
    if n * d <= SMALL:  # the singular values themselves, at full accuracy
        A = (X.toarray() if _is_sparse(X) else X) - mean
        A = A * root[:, None]
        U, S, Vt = np.linalg.svd(A, full_matrices=False)
        floor = 4.0 * float(np.finfo(np.float64).eps) * np.sqrt(max(n, d)) * S.max(initial=0.0)
        kept = np.greater(S, floor)
        return _Spectrum(S[kept] ** 2, Vt[kept].T, S[kept] * (U[:, kept].T @ (root * target)), mean, y_mean, total)
    if n < d:
        K = np.zeros((n, n))
        if _is_sparse(X):
            cross = np.asarray(X @ mean)
            K = np.asarray((X @ X.T).toarray(), dtype=np.float64) - cross - cross[:, None] + float(mean @ mean)
        else:
            step = max(64, 1_000_000 // n)
            for start in range(0, d, step):
                part = np.asarray(X[:, start : start + step], dtype=np.float64) - mean[start : start + step]
                K += part @ part.T
        values, U = np.linalg.eigh(K * root * root[:, None])
        values, U = _positive(values, U)
        B = root[:, None] * U / np.sqrt(values)  # V = Aᵀ U diag(1/√λ)
        V = np.asarray(X.T @ B, dtype=np.float64) - np.outer(mean, B.sum(axis=0))
        return _Spectrum(values, V, np.sqrt(values) * (U.T @ (root * target)), mean, y_mean, total)
    if _is_sparse(X):
        G = np.asarray((X.T @ (sp.diags_array(weight) @ X)).toarray(), dtype=np.float64)
        G -= total * np.outer(mean, mean)
        moment = np.asarray(X.T @ (weight * target), dtype=np.float64) - mean * float(weight @ target)
    else:
        G, moment = np.zeros((d, d)), np.zeros(d)
        for rows in _blocks(X):
            part = np.asarray(X[rows], dtype=np.float64) - mean
            moment += (weight[rows] * target[rows]) @ part
            part *= root[rows, None]
            G += part.T @ part
    values, V = np.linalg.eigh(G)
    values, V = _positive(values, V)
    return _Spectrum(values, V, V.T @ moment, mean, y_mean, total)


def _positive(values: Array, vectors: Array) -> tuple[Array, Array]:
    """Eigenvalues above rounding."""
    kept = values > max(float(values[-1]), 0.0) * 10.0 * np.finfo(np.float64).eps * values.shape[0]
    return values[kept], vectors[:, kept]


def _leave_one_out(X: Matrix, y: Array, weight: Array, alphas: Array, fit_intercept: bool) -> Array:
    """Weighted mean of the squared errors of rows left out one copy at a time, for each alpha."""
    (X, unit), (y, y_unit) = _scaled(X), _scaled(y)
    spectrum = _spectrum(X, y, weight, fit_intercept)
    removed = np.minimum(weight, 1.0)
    # Equal to one (or to the common weight) in every case where "leaving one out" has one meaning.
    rest = max(spectrum.total - float(weight @ removed) / spectrum.total, 0.0)
    with np.errstate(over="ignore"):
        penalties = np.minimum(alphas / unit / unit, 1e300 / max(rest, 1.0)) * rest
    shrinkage = spectrum.shrinkage(penalties)
    fitted = spectrum.z[:, None] * shrinkage
    base = 1.0 / spectrum.total if fit_intercept else 0.0
    errors = np.zeros(alphas.shape[0])
    for rows in _blocks(X, alphas.shape[0]):
        q = spectrum.rotated(X, rows)
        residual = (y[rows] - spectrum.y_mean)[:, None] - q @ fitted
        spare = 1.0 - removed[rows, None] * (base + (q * q) @ shrinkage)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # A row that determines its own fit cannot be predicted without it.
            left = np.where(spare > 1e-10, residual / spare, np.inf)
            errors += weight[rows] @ left**2
    with np.errstate(over="ignore"):
        return np.asarray(errors / spectrum.total * y_unit * y_unit)


def _folds(X: Matrix, y: Array, weight: Array, alphas: Array, fit_intercept: bool, splits: _Splits) -> Array:
    """Weighted mean squared error on the held-out folds, for each alpha."""
    (scaled, unit), (target, y_unit) = _scaled(X), _scaled(y)
    scaled = scaled.tocsr() if _is_sparse(scaled) else scaled
    errors, total = np.zeros(alphas.shape[0]), 0.0
    with np.errstate(over="ignore"):
        strengths = np.minimum(alphas / unit / unit, 1e280)
    for train, test in splits:
        part = weight[train]
        if part.size == 0:
            raise ValueError("A training part of cv has no row of positive weight: use fewer folds.")
        spectrum = _spectrum(scaled[train], target[train], part, fit_intercept)
        held = scaled[test]
        for rows in _blocks(held, alphas.shape[0]):
            miss = target[test][rows, None] - spectrum.predictions(held, rows, strengths * spectrum.total)
            errors += weight[test][rows] @ miss**2
        total += float(weight[test].sum())
    if not total > 0:
        raise ValueError("No test part of cv has a row of positive weight: alpha cannot be chosen.")
    with np.errstate(over="ignore"):
        return np.asarray(errors / total * y_unit * y_unit)


def _scaled(values: Matrix) -> tuple[Matrix, float]:
    """The array divided by a power of two, where its squares would overflow or vanish."""
    entries = values.data if _is_sparse(values) else values
    top = float(max(entries.max(initial=0.0), -entries.min(initial=0.0)))
    if top == 0.0 or 1e-60 < top < 1e60:
        return values, 1.0
    unit = float(2.0 ** np.floor(np.log2(top)))
    return values / unit, unit


def _blocks(X: Matrix, width: int = 1) -> Iterator[slice]:
    step = max(64, 1_000_000 // max(X.shape[1], width, 1))
    for start in range(0, X.shape[0], step):
        yield slice(start, min(start + step, X.shape[0]))


def _is_sparse(X: Any) -> bool:
    return bool(is_sparse(X))
