"""Logistic regression: two classes by the logistic loss, more by the softmax.

    minimize over w, b    (1/Σs_i) Σ s_i ln(1 + exp(−t_i (x_i·w + b)))  +  alpha · penalty(w),        t_i = ±1
    minimize over W, b    (1/Σs_i) Σ s_i (ln Σ_k exp(f_ik) − f_iy_i)  +  alpha · Σ_k penalty(w_k),    f_i = W x_i + b

The second form is that of more than two classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.evaluation.penalties import Penalty, resolve_penalty
from certifit.models.linear.classifier import LinearClassifier
from certifit.models.linear.inference.classes import categorical_inference, names_by_class
from certifit.models.linear.inference.inference import Inference, Summary, make_inference
from certifit.models.linear.parameters import PENALTY, SOLVER
from certifit.models.linear.path.path import RegularizationPath
from certifit.models.logistic.fit import LogisticData, LogisticFit, logistic_data, solve_logistic
from certifit.models.logistic.parameters import SOFT_LABELS
from certifit.models.logistic.path import LogisticPath
from certifit.models.logistic.probabilities import LogisticScores
from certifit.models.margin.separability import Separability
from certifit.optimization.objective.dispatch import INFERENCE_LIMIT, check_solver
from certifit.parameters import ALPHA, CLASS_WEIGHT, FIT_INTERCEPT, L1_RATIO, Stopped, check_parameters
from certifit.progress import progress
from certifit.threads import n_threads

__all__ = ["BaseLogistic", "LogisticRegression"]


class BaseLogistic(LogisticScores, LinearClassifier):
    """Parameters, predictions and evidence that the plain and the cross-validated model share."""

    separability_: Separability | None
    _inference: Inference | None

    def _parameters(self) -> tuple[Penalty, bool, float, int, int]:
        """Penalty, fit_intercept, tol, max_iter and threads; raises on what makes no sense before data is read."""
        check_parameters(self)
        options = {"l1_ratio": float(self.l1_ratio)} if self.penalty == "elasticnet" else {}
        penalty = resolve_penalty(self.penalty, **options)
        return penalty, bool(self.fit_intercept), float(self.tol), int(self.max_iter), n_threads(self.n_jobs)

    def _data(self, X: Any, y: Any, sample_weight: Any) -> LogisticData:
        """Validated data; keeps `classes_`."""
        data, self.classes_ = logistic_data(self, X, y, sample_weight, self.class_weight, self.soft_labels)
        return data

    def _keep(self, data: LogisticData, fit: LogisticFit) -> None:
        """Fitted attributes."""
        self.coef_ = fit.coef.astype(data.X.dtype)
        self.intercept_ = np.asarray(fit.intercept, dtype=np.float64)
        self.n_iter_ = max(1, fit.iterations)
        self.solver_ = fit.solver
        self.separability_ = fit.separability
        self._infer(data, fit)
        self._certify(fit.certificate)

    def _infer(self, data: LogisticData, fit: LogisticFit) -> None:
        """Covariance of the estimates of an unpenalized fit whose optimum exists."""
        self._inference = None
        l2 = fit.problem.regularizer.smooth()
        separable = fit.separability is not None and fit.separability.separable
        if l2 is None or l2.any() or l2.shape[0] * fit.coef.shape[0] > INFERENCE_LIMIT or separable:
            return
        with np.errstate(all="ignore"):
            if data.n_classes > 2:
                self._inference = categorical_inference(fit.problem, fit.coef, fit.intercept, data.weight)
                return
            self._inference = make_inference(
                data.X, data.y, data.weight, data.loss, fit.coef[0], float(fit.intercept[0]), self.fit_intercept
            )

    def summary(self, level: float = 0.95) -> Summary:
        """Estimates with standard errors, z tests and confidence intervals, where there is no penalty.

        Of more than two classes the scores are those that sum to zero, and the errors are theirs.

        Parameters
        ----------
        level : float, default=0.95
            Level of the confidence intervals.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        if self._inference is None:
            raise ValueError(
                f"summary is not available for this {type(self).__name__}: standard errors need classes that "
                "overlap and no penalty (a penalty biases the estimates by an unknown amount), and at most "
                f"{INFERENCE_LIMIT} coefficients. Fit with alpha=0, or use the bootstrap."
            )
        if self.classes_.shape[0] > 2:
            return self._inference.summary(level, names_by_class(self))
        names = getattr(self, "feature_names_in_", None)
        return self._inference.summary(level, None if names is None else [str(name) for name in names])


class LogisticRegression(Stopped, BaseLogistic):
    """Logistic regression: minimize mean log loss + alpha·penalty(w), certified by a duality gap.

    Two classes have one row of coefficients, K > 2 classes have K rows under the softmax (symmetric: the rows sum to
    zero unless an L1 penalty decides otherwise). The intercepts are not penalized.
    ``alpha = certifit.alpha_from_C(C, n)`` gives the objective of other libraries' ``C``, which `certifit.sklearn.linear_model`
    takes itself.

    Without a penalty (``alpha=0``) the likelihood has a finite maximum only if no plane separates the classes. A fit
    then proves that they overlap, or warns, names the separating function and is not certified; see `separability_`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    certificate_ : Certificate
        How far the fit is from the best possible one.
    separability_ : Separability or None
        For unpenalized fits: the test that was needed to decide whether a finite optimum exists.
    solver_ : str
        The solver that was used.
    n_iter_ : int
        Its iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> y = np.array(["no", "no", "yes", "no", "yes", "yes"])
    >>> model = LogisticRegression(alpha=0.1).fit(X, y)
    >>> model.predict([[0.0], [5.0]]), model.certificate_.certified
    (array(['no', 'yes'], dtype='<U3'), True)
    >>> model.predict_proba([[2.5]]).round(2)
    array([[0.5, 0.5]])
    >>> LogisticRegression(alpha=0.1, soft_labels=True).fit(X, [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]).coef_.round(2)
    array([[0.7]])
    >>> shares = [[0.8, 0.1, 0.1], [0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6], [0.0, 0.2, 0.8]]
    >>> LogisticRegression(alpha=0.1, soft_labels=True).fit(X, shares).predict(X)
    array([0, 0, 1, 2, 2, 2])
    """

    alpha: float = ALPHA.but(
        0.01, "Strength of the penalty; 0 gives maximum likelihood, for which `summary()` has standard errors."
    )
    penalty: Any = PENALTY.but(text="Penalty of each row of coefficients; None is no penalty.")
    l1_ratio: float = L1_RATIO
    fit_intercept: bool = FIT_INTERCEPT
    class_weight: Any = CLASS_WEIGHT
    soft_labels: bool = SOFT_LABELS
    solver: Any = SOLVER

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegression:
        """Fit the model.

        Parameters
        ----------
        y : array of shape (n_samples,) or (n_samples, K)
            Labels of two or more classes; with ``soft_labels=True`` probabilities of the second class, or an array of shape
            (n_samples, K) with those of all classes.
        """
        penalty, fit_intercept, tol, max_iter, threads = self._parameters()
        check_solver(
            self.solver, LogisticData(None, np.empty(0), np.empty(0), 2).loss, penalty, float(self.alpha), None
        )
        data = self._data(X, y, sample_weight)
        check_solver(self.solver, data.loss, penalty, float(self.alpha), None)
        with progress(int(self.verbose), type(self).__name__) as clock:
            fit = solve_logistic(
                data,
                penalty,
                float(self.alpha),
                fit_intercept,
                threads=threads,
                solver=self.solver,
                tol=tol,
                max_iter=max_iter,
                clock=clock,
                names=getattr(self, "feature_names_in_", None),
            )
        self._keep(data, fit)
        return self

    @staticmethod
    def path(X: Any, y: Any, *, sample_weight: Any = None, **options: Any) -> RegularizationPath:
        """Solutions for a sequence of alphas; the options are those of `certifit.models.logistic.path.LogisticPath`."""
        return LogisticPath(**options).solve(X, y, sample_weight)
