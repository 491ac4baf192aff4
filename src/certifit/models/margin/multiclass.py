"""The multiclass support vector machine of Crammer and Singer with any table of misclassification costs.

minimize over W, b    (1/Σs_i) Σ s_i · max_k (Δ(y_i, k) + f_ik − f_iy_i)  +  alpha·½‖W‖²,     f_ik = w_k·x_i + b_k

With alpha=0 the hard margin: minimize ½‖W‖² subject to f_iy_i − f_ik ≥ Δ(y_i, k) for every row and every other class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize

from certifit._types import Array, Matrix, is_sparse
from certifit.certificate import Certificate
from certifit.data.gate import kept_rows
from certifit.data.targets import check_labels
from certifit.models.linear.classifier import LinearClassifier
from certifit.models.margin.hard import hard_certificate
from certifit.models.margin.multiclass_hard import multiclass_hard_margin
from certifit.models.margin.parameters import VisitsRows
from certifit.models.margin.svm import draw_seed
from certifit.optimization.dual.hinge import multiclass_dual
from certifit.parameters import ALPHA, CLASS_WEIGHT, FIT_INTERCEPT, MAX_ITER, N_JOBS, Any_, Parameter, check_parameters
from certifit.progress import progress

__all__ = ["MulticlassSVC", "check_delta", "constant_objective"]

SMALL = 1 << 13  # n·d·K up to which the passes run until nothing moves any more


class MulticlassSVC(VisitsRows, LinearClassifier):
    """All classes in one margin problem, with costs Δ(y, y') of taking y' for y.

    Minimizes ``mean max_k (Δ(y, k) + f_k − f_y) + alpha·½‖W‖²``. Intercepts, one for each class, are not penalized;
    they are determined up to a common constant, and reported with sum zero. Two classes give two rows of coefficients too.

    ``alpha=0`` asks for the hard margin: the least ½‖W‖² with every class ahead of all others by its cost,
    ``f_y − f_k ≥ Δ(y, k)``, or an error that carries the proof that no scores do that.

    The solver is dual block coordinate descent with shrinking; intercepts enter by the method of multipliers
    (native/dual/multiclass.hpp), the bound is taken at a feasible dual point.

    Attributes
    ----------
    classes_ : array of shape (K,)
    coef_ : array of shape (K, d)
    intercept_ : array of shape (K,)
    dual_coef_ : array of shape (n, K)
        θ_ik = β_ik − [k = y_i] with β_i a mixture of classes: ``coef_ = -(p·θ)ᵀX/alpha`` (the hard margin: ``coef_ = -θᵀX``).
    support_ : array of int
        Rows, numbered as they were given, whose mixture is not their own class alone.
    support_vectors_ : array or sparse matrix of shape (n_support, d)
        These rows themselves.
    certificate_ : Certificate
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MulticlassSVC
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]), ["a", "a", "b", "b", "c", "c"]
    >>> model = MulticlassSVC(alpha=0.001).fit(X, y)
    >>> model.predict(X).tolist(), model.certificate_.certified
    (['a', 'a', 'b', 'b', 'c', 'c'], True)
    """

    alpha: float = ALPHA.but(1e-3, "Strength of the penalty; 0 asks for the hard margin.")
    delta: Any = Parameter(
        None,
        Any_("array of shape (K, K) or None", wrong=(0.0, -1.0, np.nan, np.inf, "a")),
        "Costs Δ(y, y') ≥ 0 with zero diagonal, rows and columns in the order of ``classes_``; None: 1 for every error.",
    )
    fit_intercept: bool = FIT_INTERCEPT
    class_weight: Any = CLASS_WEIGHT
    max_iter: int = MAX_ITER.but(10_000, "Most passes over the rows.")
    n_jobs: int | None = N_JOBS.but(
        text="Accepted for the common interface; the method visits one row after the other."
    )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MulticlassSVC:
        """Fit the model."""
        check_parameters(self)
        alpha, tol, max_iter = float(self.alpha), float(self.tol), int(self.max_iter)
        seed = draw_seed(self.random_state)
        X, codes, weight, self.classes_ = check_labels(self, X, y, sample_weight, self.class_weight)
        delta = check_delta(self.delta, self.classes_)
        kept = kept_rows(sample_weight, codes.shape[0])
        if alpha == 0:
            return self._fit_hard(X, codes, kept, delta, tol)
        p = weight / weight.sum()
        scale = constant_objective(codes, p, delta, bool(self.fit_intercept))
        scaled, strength, unit = _in_units(X, alpha)
        # A small problem costs nothing to solve to the last digits, and then does not depend on the order of its rows.
        small = X.shape[0] * X.shape[1] * delta.shape[0] <= SMALL
        with progress(self.verbose, "MulticlassSVC") as clock:
            found = multiclass_dual(
                scaled,
                codes,
                p,
                delta,
                alpha=strength,
                fit_intercept=bool(self.fit_intercept),
                tol=0.0 if small else tol * scale,
                max_iter=max_iter,
                seed=seed,
            )
        with np.errstate(over="ignore", under="ignore"):
            self.coef_ = (found.coef / unit).astype(X.dtype)
        self.intercept_ = (found.intercept - found.intercept.mean()).astype(X.dtype)
        self._keep_duals(X, found.theta - np.eye(self.classes_.shape[0])[codes], kept, 1e-12)
        self.n_iter_ = found.iterations
        coef, intercept = self.coef_.astype(np.float64) * unit, self.intercept_.astype(np.float64)
        objective = _objective(scaled, codes, p, delta, strength, coef, intercept)
        self._certify(Certificate.of(found, objective, scale=scale, tol=tol, seconds=clock.seconds))
        return self

    def _keep_duals(self, X: Matrix, theta: Array, kept: Array, least: float) -> None:
        """Duals and support vectors; rows of weight zero support nothing."""
        supports = np.flatnonzero(np.abs(theta).max(axis=1) > least)
        self.support_, self.support_vectors_ = np.flatnonzero(kept)[supports], X[supports]
        self.dual_coef_ = np.zeros((kept.shape[0], theta.shape[1]))
        self.dual_coef_[kept] = theta

    def _fit_hard(self, X: Matrix, codes: Array, kept: Array, delta: Array, tol: float) -> MulticlassSVC:
        if not (delta + np.eye(delta.shape[0]) > 0).all():
            raise ValueError("alpha=0 needs a delta > 0 off the diagonal: an error that costs nothing has no margin.")
        with progress(self.verbose, "MulticlassSVC") as clock:
            found = multiclass_hard_margin(
                X, codes, delta, fit_intercept=bool(self.fit_intercept), tol=tol, max_iter=int(self.max_iter)
            )
        self.coef_ = found.coef.astype(X.dtype)
        self.intercept_ = (found.intercept - found.intercept.mean()).astype(X.dtype)
        self._keep_duals(X, found.theta, kept, 1e-6 * float(np.abs(found.theta).max(initial=0.0)))
        self.n_iter_ = found.iterations
        self._certify(hard_certificate(found, tol, clock.seconds, "every class is ahead by its cost"))
        return self

    def predict(self, X: Any) -> Array:
        """The class of the highest score."""
        return super().predict(X)

    def decision_function(self, X: Any) -> Array:
        """Scores of the classes: shape (n, K); for two classes their difference, positive for the second one."""
        scores = super().decision_function(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def check_delta(delta: Any, classes: Array) -> Array:
    """The table of costs, checked."""
    K = classes.shape[0]
    if delta is None:
        return 1.0 - np.eye(K)
    try:
        table = np.asarray(delta, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"delta must be a table of numbers or None; got {delta!r}.") from error
    if table.shape != (K, K):
        raise ValueError(
            f"delta must have shape ({K}, {K}), one row for each class {classes.tolist()!r}; got {delta!r}."
        )
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise ValueError("delta must be finite and >= 0: it holds the costs of errors.")
    if np.diag(table).any():
        raise ValueError("delta must have a zero diagonal: the right class costs nothing.")
    if not table.any():
        raise ValueError("delta is zero everywhere: every classifier is optimal; give some error a cost > 0.")
    return table


def _in_units(X: Matrix, alpha: float) -> tuple[Matrix, float, float]:
    """X of extreme magnitude divided by a power of two, the strength that means the same there, and that power.

    One power for all columns keeps the shape of the penalty: alpha changes by its square.
    """
    size = float(abs(X).max())
    unit = float(2.0 ** np.round(np.log2(size))) if size > 0 and not 1e-20 < size < 1e20 else 1.0
    with np.errstate(over="ignore", under="ignore"):
        strength = float(min(max(alpha / unit / unit, 1e-250), 1e250))
        return X if unit == 1.0 else X.astype(np.float64) * (1.0 / unit), strength, unit


def _objective(X: Any, codes: Array, p: Array, delta: Array, alpha: float, coef: Array, intercept: Array) -> float:
    """The value that is minimized, in double precision."""
    scores = (
        np.asarray((X.astype(np.float64) if is_sparse(X) else np.asarray(X, dtype=np.float64)) @ coef.T) + intercept
    )
    rows = np.arange(codes.shape[0])
    loss = (scores + delta[codes]).max(axis=1) - scores[rows, codes]
    return float(p @ loss) + 0.5 * alpha * float(np.sum(coef * coef))


def constant_objective(codes: Array, p: Array, delta: Array, fit_intercept: bool) -> float:
    """The least mean loss of a constant model, the unit of relative gaps: a linear program in the K intercepts."""
    K = delta.shape[0]
    share = np.bincount(codes, weights=p, minlength=K)
    if not fit_intercept:
        return float(share @ delta.max(axis=1))
    # min Σ_y share_y t_y with t_y ≥ Δ(y, k) + b_k − b_y
    A, bound = np.zeros((K * K, 2 * K)), np.zeros(K * K)
    for y in range(K):
        for k in range(K):
            A[y * K + k, k] += 1.0
            A[y * K + k, y] -= 1.0
            A[y * K + k, K + y] = -1.0
            bound[y * K + k] = -delta[y, k]
    found = scipy.optimize.linprog(
        np.concatenate([np.zeros(K), share]), A_ub=A, b_ub=bound, bounds=[(None, None)] * K + [(0, None)] * K
    )
    return max(float(found.fun or 0.0), 1e-15) if found.status == 0 else float(share @ delta.max(axis=1))
