"""Ridge regression that chooses its own alpha.

    minimize over w, b    (1/Σs) Σ s_i ½(y_i − x_i·w − b)² + alpha·½‖w‖²

All alphas come from one decomposition Σ s_i (x_i − m)(x_i − m)ᵀ = V diag(λ) Vᵀ. With q_i = Vᵀ(x_i − m), leaving one copy of row i
out changes its residual r_i to

    r_i / (1 − h_i),    h_i = 1/Σs + Σ_k q_ik²/(λ_k + (Σs − 1)·alpha).

Here r_i is the residual of the fit with (Σs − 1)·alpha in the place of Σs·alpha: what remains after the
removal has Σs − 1 rows, and alpha multiplies a penalty beside their *mean* loss. So the error is exactly that
of refitting without the row; a weight of 2 is the row twice, and one of the two is left out. Rows of weight
below one are left out whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from certifit._types import Array, Matrix, is_sparse
from certifit.data.gate import check_xy, kept_rows
from certifit.evaluation.losses import Loss, Squared
from certifit.evaluation.penalties import L2, Constraint, Penalty
from certifit.evaluation.splits.choice import Curve, folds_of, over_folds
from certifit.models.linear.model import BaseLinear
from certifit.models.linear.path.path import RidgePath, ridge_alphas
from certifit.optimization.closed_form.magnitudes import in_units
from certifit.optimization.closed_form.spectrum import RidgeSpectrum, row_slices
from certifit.parameters import ALPHAS, CV, FIT_INTERCEPT, ONE_STANDARD_ERROR, Declared, Fitted, check_parameters
from certifit.representation.design.rows import thin_products

__all__ = ["RidgeCV", "left_out"]

TOLERANCE = 1e-9


class RidgeCV(Declared, BaseLinear):
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
    >>> from certifit.models.linear.path.ridge_cv import RidgeCV
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
    one_standard_error: bool = ONE_STANDARD_ERROR

    alpha_: float = Fitted()
    alphas_: Array = Fitted()
    cv_error_path_: Array = Fitted()
    coef_: Array = Fitted()
    intercept_: float = Fitted()

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        return Squared(), L2(), getattr(self, "alpha_", 1.0), None

    def _solver_options(self) -> tuple[Any, float, int]:
        return "auto", TOLERANCE, 1

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeCV:
        """Choose alpha, then fit all rows with it."""
        check_parameters(self)
        given = y
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, min_samples=2)
        free = bool(self.fit_intercept)
        if self.alphas is None:
            alphas = ridge_alphas(X, weight / weight.sum(), RidgePath(fit_intercept=free))[::-1]
        else:
            alphas = np.atleast_1d(np.asarray(self.alphas, dtype=np.float64))
        if self.cv is None:
            curve = _leave_one_out(X, y, weight, alphas, free)
        else:
            folds = folds_of(self.cv, X, y, kept=kept_rows(sample_weight, y.shape[0]), given=given)
            curve = over_folds(folds, weight, alphas.shape[0], partial(_errors, *_ordinary(X, y, weight, alphas), free))
        self.alphas_, self.cv_error_path_ = alphas, curve.mean
        self.alpha_ = float(alphas[curve.best(alphas, one_standard_error=self.one_standard_error)])
        with thin_products(X):
            self._fit_arrays(X, y, weight)
        return self

    @property
    def weights_are_counts(self) -> bool:
        """Whether doubling every weight matters: leave-one-out leaves out one copy of a row, and its twin stays.

        With folds all copies of a row are left out together, and only proportions of weights count.
        """
        return self.cv is None


def _leave_one_out(X: Matrix, y: Array, weight: Array, alphas: Array, fit_intercept: bool) -> Curve:
    """Weighted mean of the squared errors of rows left out one copy at a time, for each alpha."""
    (X, unit), (y, y_unit) = in_units(X), in_units(y)
    spectrum = RidgeSpectrum.of(X, y, weight, fit_intercept)
    removed = np.minimum(weight, 1.0)
    # Equal to one (or to the common weight) in every case where "leaving one out" has one meaning.
    rest = max(spectrum.total - float(weight @ removed) / spectrum.total, 0.0)
    with np.errstate(over="ignore"):
        penalties = np.minimum(alphas / unit / unit, 1e300 / max(rest, 1.0)) * rest
    errors, squares = np.zeros(alphas.shape[0]), np.zeros(alphas.shape[0])
    for rows, left in _left_out(spectrum, X, y, penalties, fit_intercept, removed):
        with np.errstate(invalid="ignore", over="ignore"):
            errors += weight[rows] @ left**2
            squares += weight[rows] @ left**4
    with np.errstate(over="ignore", invalid="ignore"):
        mean = errors / spectrum.total
        spread = np.sqrt(np.maximum(squares / spectrum.total - mean**2, 0.0) / max(spectrum.total - 1.0, 1.0))
        size = y_unit * y_unit
        return Curve(mean * size, spread * size, mean[:, None] * size)


def _left_out(
    spectrum: RidgeSpectrum, X: Matrix, y: Array, penalties: Array, fit_intercept: bool, removed: Array
) -> Iterator[tuple[slice, Array]]:
    """Residuals of blocks of rows by fits from which `removed` of each row's weight is taken, a column for each penalty."""
    shrinkage = spectrum.shrinkage(penalties)
    fitted = spectrum.z[:, None] * shrinkage
    base = 1.0 / spectrum.total if fit_intercept else 0.0
    for rows in row_slices(X, penalties.shape[0]):
        q = spectrum.rotated(X, rows)
        residual = (y[rows] - spectrum.y_mean)[:, None] - q @ fitted
        spare = 1.0 - removed[rows, None] * (base + (q * q) @ shrinkage)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # A row that determines its own fit cannot be predicted without it.
            yield rows, np.where(spare > 1e-10, residual / spare, np.inf)


def left_out(X: Matrix, y: Array, weight: Array, penalties: Array, fit_intercept: bool, *, removed: Array) -> Array:
    """Residual of each row by the ridge fit to the others, of shape (n, n_penalties).

    A penalty is that beside the *sum* of the losses, the same for all the fits; `removed` is how much of each row's
    weight is left out.
    """
    spectrum = RidgeSpectrum.of(X, y, weight, fit_intercept)
    return np.concatenate([left for _, left in _left_out(spectrum, X, y, penalties, fit_intercept, removed)])


def _ordinary(X: Matrix, y: Array, weight: Array, alphas: Array) -> tuple[Matrix, Array, Array, Array, float]:
    """Data and strengths in units whose squares neither overflow nor vanish, and the unit of the errors."""
    (scaled, unit), (target, y_unit) = in_units(X), in_units(y)
    with np.errstate(over="ignore"):
        strengths = np.minimum(alphas / unit / unit, 1e280)
        return scaled.tocsr() if is_sparse(scaled) else scaled, target, weight, strengths, y_unit * y_unit


def _errors(
    X: Matrix,
    y: Array,
    weight: Array,
    strengths: Array,
    unit: float,
    fit_intercept: bool,
    train: Array,
    test: Array,
) -> Array:
    """Weighted mean squared error on the rows left out, for each alpha."""
    spectrum = RidgeSpectrum.of(X[train], y[train], weight[train], fit_intercept)
    held, share, errors = X[test], weight[test] / weight[test].sum(), np.zeros(strengths.shape[0])
    for rows in row_slices(held, strengths.shape[0]):
        miss = y[test][rows, None] - spectrum.predictions(held, rows, strengths * spectrum.total)
        errors += share[rows] @ miss**2
    with np.errstate(over="ignore"):
        return np.asarray(errors * unit)
