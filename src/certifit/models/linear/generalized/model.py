"""Generalized linear models of any family with any map.

minimize over w, b    (1/Σs_i) Σ s_i · d(y_i, g(x_i·w + b + o_i))  +  alpha · penalty(w)

with d the half deviance of the family, g the map from scores to means, and o an offset of each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certifit._types import Array, Matrix
from certifit.data.gate import check_xy, kept_rows
from certifit.data.targets import check_labels
from certifit.evaluation.losses import FAMILIES, MAPS, Family, Logistic, Loss, Map, MeanLoss, Softmax, check_loss
from certifit.evaluation.losses.mean import Shifted, mean_loss
from certifit.evaluation.losses.normalized import Normalized
from certifit.evaluation.penalties import Constraint, Penalty, resolve_penalty
from certifit.models.linear.generalized.kinked_map import linearized
from certifit.models.linear.inference.classes import categorical_inference, names_by_class
from certifit.models.linear.inference.inference import InferenceMixin, Summary
from certifit.models.linear.model import BaseLinear
from certifit.models.linear.parameters import PENALTY, SOLVER
from certifit.optimization.objective.dispatch import INFERENCE_LIMIT, minimize
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer
from certifit.parameters import ALPHA, FIT_INTERCEPT, L1_RATIO, Either, Named, Nothing, Parameter, Stopped
from certifit.parameters.docstrings import takes_as
from certifit.progress import progress
from certifit.representation.design.rows import thin_products
from certifit.threads import n_threads

__all__ = ["GLM"]

SOFTMAX = ("exp", "softmax")  # e^f, normalized over the classes


class GLM(Stopped, InferenceMixin, BaseLinear):
    """A family of distributions with a map from the score to the mean: minimize mean half deviance + alpha·penalty(w).

    Every family goes with every map; a pair is certified where its half deviance is convex in the score, and where it is not
    the certificate says so: the fit is then a stationary point, found by Fisher scoring from the best constant.

    ================== =================================================== =================
    family             half deviance of the mean μ                         convex with map
    ================== =================================================== =================
    gaussian           ½(y − μ)²                                           identity
    laplace            abs(y − μ)                                          identity
    bernoulli          −y·ln μ − (1 − y)·ln(1 − μ), y in [0, 1]            all but softplus
    categorical        −ln μ_y, μ_k = g(f_k)/Σ_j g(f_j)                    softmax (exp)
    poisson            μ − y·ln μ, y ≥ 0                                   identity, exp, softplus
    gamma              y/μ + ln μ, y > 0                                   exp
    inverse_gaussian   (y − μ)²/(2μ²y), y > 0                              none
    ================== =================================================== =================

    With ``alpha=0`` (the default) the fit is maximum likelihood, and `summary()` has standard errors from the expected
    information. `predict` gives means; for ``family="categorical"`` the probabilities of `classes_`, one column each.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The labels, for ``family="categorical"``; `coef_` then has shape (K, n_features).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import GLM
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> model = GLM("bernoulli", "probit").fit(X, np.array([0.0, 0.0, 1.0, 0.0, 1.0, 1.0]))
    >>> model.predict(X).round(3)
    array([0.029, 0.127, 0.352, 0.648, 0.873, 0.971])
    >>> counts, time = np.array([1.0, 3.0, 3.0, 9.0, 18.0, 30.0]), np.array([1.0, 2.0, 1.0, 2.0, 2.0, 2.0])
    >>> rates = GLM("poisson").fit(X, counts, offset=np.log(time))
    >>> rates.predict(X[:2]).round(2), rates.certificate_.certified
    (array([0.89, 1.57]), True)
    >>> print(GLM("gamma", "identity").fit(X, counts).certificate_.kind)
    none
    """

    family: Any = Parameter(
        "gaussian",
        Named("certifit.losses.Family", Family, (*FAMILIES, "categorical")),
        "A name from ``certifit.losses.FAMILIES``, or ``'categorical'``.",
    )
    map: Any = Parameter(
        None,
        Either(Nothing(), Named("certifit.losses.Map", Map, (*MAPS, "softmax"))),
        "A name from ``certifit.losses.MAPS`` or an object of your own; None is identity for gaussian and laplace, logistic for "
        "bernoulli, softmax for categorical, exp for the others.",
        kind="str, Map or None",
    )
    alpha: float = ALPHA.but(
        0.0,
        text="Strength of the penalty; 0 gives the maximum likelihood fit, for which `summary()` has standard errors.",
    )
    penalty: Any = PENALTY
    l1_ratio: float = L1_RATIO
    fit_intercept: bool = FIT_INTERCEPT
    solver: Any = SOLVER

    def _loss_object(self) -> Loss:
        if self.family == "categorical":
            K = len(self.classes_) if hasattr(self, "classes_") else None
            if self.map is None or (isinstance(self.map, str) and self.map in SOFTMAX):
                return Softmax(K)
            return Normalized(self.map if isinstance(self.map, Map) else MAPS[self.map](), K)
        family = self.family if isinstance(self.family, Family) else FAMILIES[self.family]()
        chosen = family.usual if self.map is None else self.map
        if isinstance(chosen, str) and chosen == "softmax":
            raise ValueError(f"map='softmax' is for family='categorical'; got family={family.name!r}.")
        return mean_loss(family, chosen if isinstance(chosen, Map) else MAPS[chosen]())

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        options = {"l1_ratio": self.l1_ratio} if self.penalty == "elasticnet" else {}
        return self._loss_object(), resolve_penalty(self.penalty, **options), float(self.alpha), None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        y : array of shape (n_samples,)
            Target; labels of any type for ``family="categorical"``.
        offset : array of shape (n_samples,), (n_samples, K) for ``family="categorical"``, or None, default=None
            A known part of each score: ``np.log(exposure)`` for counts with the map exp.
        """
        self._check_parameters()
        if self.family == "categorical":
            X, y, weight, self.classes_ = check_labels(self, X, y, sample_weight)
        else:
            X, y, weight = check_xy(self, X, y, sample_weight=sample_weight)
        shift = None
        if offset is not None:
            kept = kept_rows(sample_weight, y.shape[0])
            shift = self._offset(offset, kept.shape[0], len(self.classes_) if self.family == "categorical" else 0)[kept]
        with thin_products(X):
            return self._fit_rows(X, y, weight, shift)

    def _fit_rows(self, X: Matrix, y: Array, weight: Array, offset: Array | None) -> Any:
        """Fit validated data."""
        loss, penalty, alpha, _ = self._objective()
        check_loss(loss, y)
        rows, shifted = y, loss
        if offset is not None:
            shifted = Shifted(loss, y, offset)
            rows = shifted.rows
        regularizer = Regularizer.of(penalty, alpha, None, X.shape[1])
        with progress(self.verbose, type(self).__name__) as clock:
            threads = n_threads(self.n_jobs)
            problem = Problem(X, rows, weight / weight.sum(), shifted, regularizer, self.fit_intercept, threads)
            kinked = isinstance(loss, MeanLoss) and loss.family.name == "laplace"
            solve: Callable[..., Any] = (
                linearized if kinked and self.solver == "auto" else partial(minimize, solver=self.solver)
            )
            limits: dict[str, Any] = {"tol": float(self.tol), "max_iter": int(self.max_iter), "clock": clock}
            solution, certificate = solve(problem, start=self._start(problem), **limits)
        self._loss = loss
        self._keep(problem, solution, weight)
        self._infer(problem, solution, weight)
        if offset is not None and self._inference is not None:  # the table keeps no data
            self._inference = replace(self._inference, loss=loss)
        if alpha == 0.0 and _separated(loss, y, problem.scores(solution.coef, solution.intercept), offset):
            certificate = certificate.withdrawn(
                "No finite optimum exists: a plane separates the zeros from the ones, and coefficients would grow without end. "
                "Add a penalty (alpha > 0)."
            )
        self._certify(certificate)
        return self

    @staticmethod
    def _offset(offset: Any, n: int, n_classes: int = 0) -> Array:
        found = np.asarray(offset, dtype=np.float64)
        if found.shape != ((n, n_classes) if n_classes else (n,)) or not np.isfinite(found).all():
            wanted = (
                f"{n} rows of {n_classes} finite numbers, one for each class" if n_classes else f"{n} finite numbers"
            )
            raise ValueError(f"offset must be {wanted}, a row for each row of X; got an array of shape {found.shape}.")
        return found

    def _start(self, problem: Problem) -> Any:
        """None for the best constant; where that has no finite loss, scores near one that has."""
        if np.isfinite(problem.at(*problem.start()).risk):
            return None
        K = problem.shape[1]
        dense = np.asarray(problem.X.todense() if hasattr(problem.X, "todense") else problem.X, dtype=np.float64)
        for level in (1.0, 0.5, -1.0):  # a mean inside every bound: of counts, of shares, of shares with the map exp
            w = np.linalg.lstsq(dense, np.full(dense.shape[0], level), rcond=None)[0].reshape(K)
            if np.isfinite(problem.at(w, 0.0).risk):
                return w, 0.0
        raise ValueError(
            f"family={self.family!r} with map={self.map!r} found no coefficients whose means are all possible: fit an "
            "intercept, or use a map whose means always are ('exp' or 'softplus' for positive ones, 'logistic' for shares)."
        )

    def _infer(self, problem: Problem, solution: Solution, weight: Array) -> None:
        super()._infer(problem, solution, weight)
        small = solution.coef.size <= INFERENCE_LIMIT and bool(np.isfinite(solution.coef).all())
        if problem.loss.coupled and not problem.regularizer.active and small:
            self._inference = categorical_inference(problem, solution.coef, solution.intercept, weight)

    def summary(self, level: float = 0.95) -> Summary:
        """Estimates with standard errors, tests and confidence intervals.

        For the softmax the scores of the classes are those that sum to zero, and the errors are theirs.

        Parameters
        ----------
        level : float, default=0.95
            Level of the confidence intervals.
        """
        if not hasattr(self, "classes_"):
            return super().summary(level)
        return self._known("summary").summary(level, names_by_class(self))

    @takes_as(InferenceMixin.prediction_interval)
    def prediction_interval(self, X: Any, level: float = 0.95, kind: str = "mean") -> Array:
        """Intervals for the means of new rows; see `LinearRegression.prediction_interval`.

        Parameters
        ----------
        kind : {"observation", "mean"}
            Interval for a new observation (Gaussian with the map identity only), or for the mean.
        """
        if hasattr(self, "classes_"):
            raise ValueError("prediction_interval is for one mean a row; family='categorical' has one for each class.")
        return super().prediction_interval(X, level, kind)

    def predict(self, X: Any, offset: Any = None) -> Array:
        """Means of y: the map of the scores x·w + b, plus the offset of each row if there is one."""
        scores = self._scores(X)
        if offset is not None:
            scores = scores + self._offset(offset, scores.shape[0], scores.shape[1] if scores.ndim == 2 else 0)
        return self._loss.predict(scores)


def _separated(loss: Loss, y: Array, f: Array, offset: Array | None) -> bool:
    """Whether hard labels lie on their own sides of the score: then a larger score is always better."""
    bernoulli = isinstance(loss, Logistic) or (
        isinstance(loss, MeanLoss) and loss.family.name == "bernoulli" and loss.map.name in ("probit", "cloglog")
    )
    if not bernoulli or offset is not None or not ((y == 0) | (y == 1)).all():
        return False
    high, low = f[y == 1], f[y == 0]
    return bool(high.size and low.size and high.min() > low.max())
