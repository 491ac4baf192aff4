"""Linear support vector machines: soft and hard margin classification, and ε-insensitive regression.

    minimize over w, b    (1/Σs_i) Σ s_i · max(0, 1 − m_i)  +  alpha · ½‖w‖²,     m_i = ±(x_i·w + b)

The intercept b is not penalized. Dual: for θ_i in the slopes of the loss with Σ p_i θ_i = 0, w = −Σ p_iθ_i x_i/alpha.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.certificate import Certificate
from certifit.data.gate import kept_rows
from certifit.data.targets import check_labels
from certifit.evaluation.losses import EpsilonInsensitive, Hinge, Loss, SquaredHinge
from certifit.evaluation.losses.numbers.squared_epsilon import SquaredEpsilonInsensitive
from certifit.evaluation.penalties import L2, Constraint, Penalty
from certifit.models.linear.classifier import LinearClassifier
from certifit.models.linear.model import BaseLinear
from certifit.models.margin.hard import NotSeparableError, hard_certificate, hard_margin
from certifit.models.margin.kkt import KKT, kkt_classes
from certifit.models.margin.parameters import VisitsRows
from certifit.optimization.objective.dispatch import minimize
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer
from certifit.optimization.stochastic.pegasos import Pegasos
from certifit.parameters import (
    ALPHA,
    CLASS_WEIGHT,
    FIT_INTERCEPT,
    MAX_ITER,
    RANDOM_STATE,
    Choice,
    Flag,
    OneOf,
    Parameter,
    Real,
    check_parameters,
)
from certifit.progress import Progress, progress
from certifit.representation.design.rows import thin_products
from certifit.threads import n_threads

__all__ = ["LinearSVC", "LinearSVR", "NotSeparableError", "draw_seed"]

LOSSES: dict[str, type[Loss]] = {"hinge": Hinge, "squared_hinge": SquaredHinge}
TUBES: dict[str, Any] = {
    "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
}


class LinearSVC(VisitsRows, LinearClassifier):
    """Linear support vector classification with an exact, unpenalized intercept.

    Minimizes ``mean hinge loss + alpha·½‖w‖²``; with ``alpha=0`` the hard margin: the separating hyperplane with the
    widest margin, or an error that carries the proof that none exists. More than two classes: one against the rest.

    ``alpha = alpha_from_C(C, n)`` is scikit-learn's C for the hinge loss, and half of that for the squared hinge, which
    is ½max(0, 1 − m)² here. (LIBLINEAR penalizes the intercept; this class does not, `certifit.sklearn.svm` does.)

    Attributes
    ----------
    classes_ : array of shape (K,)
    coef_ : array of shape (1, d) for two classes, (K, d) for more
    intercept_ : array of shape (1,) or (K,)
    dual_coef_ : array of shape (n,) or (K, n)
        θ, the slope of each loss: ``coef_ = -Xᵀ(p·θ)/alpha`` with p the weights divided by their sum (the hard margin:
        ``coef_ = -Xᵀθ``).
    support_ : array of int
        Rows with θ ≠ 0 (in some class).
    support_vectors_ : array or sparse matrix of shape (n_support, d)
        These rows themselves.
    kkt_ : array of str of shape (n,) or (K, n)
        "none": not a support vector, margin ≥ 1; "free": 0 < |θ| < 1, margin exactly 1; "bound": |θ| = 1, margin ≤ 1.
    margin_ : float, or array of shape (K,)
        1/‖w‖, half the width of the street.
    certificate_ : Certificate
        How far the fit is from the best possible one; for K > 2 classes that of the worst class.
    certificates_ : list of Certificate
        One for each hyperplane.
    solver_ : str
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LinearSVC
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), ["no", "no", "yes", "yes"]
    >>> model = LinearSVC(alpha=0.01).fit(X, y)
    >>> model.coef_.round(4), model.intercept_.round(4), model.kkt_
    (array([[1.]]), array([-2.]), array(['none', 'free', 'free', 'none'], dtype='<U5'))
    >>> model.predict([[1.5], [2.5]])
    array(['no', 'yes'], dtype='<U3')
    """

    alpha: float = ALPHA.but(1e-3, "Strength of the penalty; 0 asks for the hard margin.")
    loss: str = Parameter("hinge", Choice(*LOSSES), "The loss of the margin.")
    fit_intercept: bool = FIT_INTERCEPT
    class_weight: Any = CLASS_WEIGHT
    solver: str = OneOf(
        ("auto", "interior_point", "dual", "newton", "pegasos"),
        '"newton" (the only one for the squared hinge): Newton steps on the method of multipliers, for tall dense data. '
        '"interior_point": few iterations of O(n d²) to any precision. "dual": coordinate descent, for sparse or wide data. '
        '"pegasos": stochastic subgradient steps. The choice made is in `solver_`.',
    )
    average: bool = Parameter(False, Flag(), "Pegasos only: return the mean of the iterates.")
    max_iter: int = MAX_ITER.but(
        text="Most iterations: Newton steps, interior point iterations, or passes over the rows."
    )
    random_state: Any = RANDOM_STATE.but(
        0, 'Order of the rows in "dual", draws of "pegasos"; the other solvers are deterministic.'
    )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        """Fit the model."""
        alpha, solver, seed = self._check_parameters()
        tol, max_iter = float(self.tol), int(self.max_iter)
        X, codes, weight, self.classes_ = check_labels(self, X, y, sample_weight, self.class_weight)
        kept = kept_rows(sample_weight, codes.shape[0])
        positives = [1] if self.classes_.shape[0] == 2 else range(self.classes_.shape[0])
        fits = []
        with thin_products(X), progress(self.verbose, "LinearSVC") as clock:
            for k in positives:
                sides = (codes == k).astype(np.float64)
                if alpha == 0:
                    fits.append(self._fit_hard(X, sides, tol, max_iter, clock, k))
                else:
                    problem = self._problem(X, sides, weight, alpha)
                    solution, certificate = minimize(problem, solver, tol, max_iter, clock, seed=seed)
                    fits.append((solution, certificate, *kkt_classes(problem, solution)))
        self._keep(fits, kept, X.dtype)
        self.support_vectors_ = X[self.support_ if kept.all() else np.isin(np.flatnonzero(kept), self.support_)]
        note = f"The worst of {len(self.certificates_)} one-against-the-rest fits."
        self._certify(Certificate.worst(self.certificates_, note))
        return self

    def _check_parameters(self) -> tuple[float, Any, int]:
        """alpha, the solver, and the seed of what it draws."""
        check_parameters(self)
        alpha, solver = float(self.alpha), self.solver
        if self.loss == "squared_hinge" and solver not in ("auto", "newton"):
            raise ValueError(f"solver={solver!r} needs loss='hinge'; use solver='newton' for loss='squared_hinge'.")
        if alpha == 0 and solver not in ("auto", "interior_point"):
            raise ValueError(f"solver={solver!r} needs alpha > 0; the hard margin is found by 'interior_point'.")
        seed = draw_seed(self.random_state)
        if self.loss == "squared_hinge":
            return alpha, "auto", seed  # Newton, with conjugate gradients when X is wide
        return alpha, Pegasos(seed, self.average) if solver == "pegasos" else solver, seed

    def _problem(self, X: Matrix, y: Array, weight: Array, alpha: float) -> Problem:
        """One hyperplane: mean loss + alpha·½‖w‖²."""
        regularizer = Regularizer.of(L2(), alpha, None, X.shape[1])
        loss, threads = LOSSES[self.loss](), n_threads(self.n_jobs)
        return Problem(X, y, weight / weight.sum(), loss, regularizer, bool(self.fit_intercept), threads)

    def _fit_hard(
        self, X: Matrix, y: Array, tol: float, max_iter: int, clock: Progress, k: int
    ) -> tuple[Solution, Certificate, Array, Array]:
        try:
            found = hard_margin(X, 2.0 * y - 1.0, fit_intercept=bool(self.fit_intercept), tol=tol, max_iter=max_iter)
        except NotSeparableError as error:
            if self.classes_.shape[0] == 2:
                raise
            raise NotSeparableError(
                f"alpha=0 asks for a hard margin of each class against the rest, but no hyperplane separates class "
                f"{self.classes_.tolist()[k]!r} from the others (error.witness; residual {error.residual:.1e}), "
                "although each pair of classes may be separable (`is_separable`). Use alpha > 0.",
                error.witness,
                error.residual,
            ) from None
        certificate = hard_certificate(found, tol, clock.seconds, "every row is on its side")
        solution = Solution(found.coef, found.intercept, found.iterations, "interior_point", dual=found.theta)
        # There is no upper limit for the multipliers: a row supports the street or it does not.
        supports = np.abs(found.theta) > 1e-6 * float(np.abs(found.theta).max(initial=0.0))
        return solution, certificate, found.theta, supports.astype(np.int8)

    def _keep(self, fits: list[tuple[Solution, Certificate, Array, Array]], kept: Array, dtype: Any) -> None:
        """Fitted attributes; rows of weight zero support nothing."""
        K, n = len(fits), kept.shape[0]
        self.coef_ = np.array([solution.coef for solution, *_ in fits]).astype(dtype)
        self.intercept_ = np.array([solution.intercept for solution, *_ in fits]).astype(dtype)
        theta, kkt = np.array([slopes for _, _, slopes, _ in fits]), np.array([classes for *_, classes in fits])
        if theta.shape[1] < n:
            some, theta, kkt = (theta, kkt), np.zeros((K, n)), np.zeros((K, n), dtype=np.int8)
            theta[:, kept], kkt[:, kept] = some
        self.support_ = np.flatnonzero(kkt[0] if K == 1 else kkt.any(axis=0))
        with np.errstate(divide="ignore", over="ignore"):
            margin = 1.0 / np.linalg.norm(self.coef_.astype(np.float64), axis=1)
        one = K == 1
        self.dual_coef_: Array = theta[0] if one else theta
        self._kkt = kkt[0] if one else kkt
        self.margin_ = float(margin[0]) if one else margin
        self.certificates_ = [certificate for _, certificate, *_ in fits]
        self.n_iter_ = max(1, max(solution.iterations for solution, *_ in fits))
        self.solver_ = fits[0][0].solver

    @property
    def kkt_(self) -> Array:
        """Class of each row: "none", "free" or "bound"."""
        check_is_fitted(self)
        return np.asarray(KKT[self._kkt])

    def predict(self, X: Any) -> Array:
        """The class of the highest score; of scores that differ by rounding only, the first."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.asarray(self.classes_[(scores > 0).astype(np.intp)])
        # A row on the margin of two classes has the score −1 in both: exact ties do happen, and rounding must not
        # decide them.
        top = scores.max(axis=1, keepdims=True)
        rounding = 16 * np.finfo(scores.dtype).eps * (1.0 + np.abs(scores).max(axis=1, keepdims=True))
        return np.asarray(self.classes_[(scores >= top - rounding).argmax(axis=1)])

    def slack(self, X: Any, y: Any) -> Array:
        """How far each row is inside the street or on the wrong side: max(0, 1 − margin).

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.
        y : array of shape (n_samples,)
            Labels.

        Returns
        -------
        array of shape (n_samples,) for two classes, (n_samples, K) for more
        """
        scores = self.decision_function(X)
        labels = np.asarray(y)
        unknown = ~np.isin(labels, self.classes_)
        if labels.shape != scores.shape[:1] or unknown.any():
            raise ValueError(f"y must have {scores.shape[0]} labels out of {self.classes_.tolist()!r}.")
        if scores.ndim == 1:
            sign = np.where(labels == self.classes_[1], 1.0, -1.0)
        else:
            sign = np.where(labels[:, None] == self.classes_, 1.0, -1.0)
        return np.maximum(0.0, 1.0 - sign * scores)


class LinearSVR(VisitsRows, BaseLinear):
    """Linear support vector regression with an exact, unpenalized intercept.

    Minimizes ``mean max(|y − Xw − b| − epsilon, 0) + alpha·½‖w‖²``: residuals inside the tube are free, and only
    rows on its edge or outside support the fit. ``alpha = alpha_from_C(C, n)`` is scikit-learn's C.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    dual_coef_ : array of shape (n,)
        θ, the slope of each loss: ``coef_ = -Xᵀ(p·θ)/alpha``.
    support_ : array of int
        Rows on the edge of the tube or outside.
    support_vectors_ : array or sparse matrix of shape (n_support, d)
        These rows themselves.
    kkt_ : array of str of shape (n,)
        "none": inside the tube; "free": on its edge; "bound": outside.
    certificate_ : Certificate
    solver_ : str
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LinearSVR
    >>> X, y = np.arange(5.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 30.0])
    >>> model = LinearSVR(epsilon=0.0, alpha=1e-6).fit(X, y)
    >>> model.coef_.round(3), model.kkt_
    (array([1.]), array(['free', 'free', 'free', 'free', 'bound'], dtype='<U5'))
    """

    epsilon: float = Parameter(0.1, Real(0), "Half width of the tube, in units of y.")
    alpha: float = ALPHA.but(1e-3, domain=Real(0, open_low=True))
    loss: str = Parameter(
        "epsilon_insensitive", Choice(*TUBES), "The loss outside the tube; the squared one is ½(|r| − epsilon)²."
    )
    fit_intercept: bool = FIT_INTERCEPT
    solver: str = OneOf(
        ("auto", "interior_point", "dual", "newton"),
        "As for `LinearSVC`; the choice made is in `solver_`.",
    )
    random_state: Any = RANDOM_STATE.but(0, 'Order of the rows in "dual".')

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        return TUBES[self.loss](float(self.epsilon)), L2(), float(self.alpha), None

    def _check_parameters(self) -> None:
        check_parameters(self)
        loss, *_ = self._objective()
        if loss.smooth and self.solver not in ("auto", "newton"):
            raise ValueError(f"solver={self.solver!r} needs loss='epsilon_insensitive'; use solver='newton'.")

    def _solver_options(self) -> tuple[Any, float, int]:
        solver, tol, max_iter = super()._solver_options()
        return "auto" if self.loss == "squared_epsilon_insensitive" else solver, tol, max_iter

    def _seed(self) -> int:
        return draw_seed(self.random_state)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVR:
        """Fit the model."""
        self.dual_coef_: Array
        self._kkt: Array
        super().fit(X, y, sample_weight)
        kept = kept_rows(sample_weight, self.dual_coef_.shape[0])
        theta, kkt = np.zeros(kept.shape[0]), np.zeros(kept.shape[0], dtype=np.int8)
        theta[kept], kkt[kept] = self.dual_coef_, self._kkt
        self.dual_coef_, self._kkt, self.support_ = theta, kkt, np.flatnonzero(kkt)
        return self

    def _keep(self, problem: Problem, solution: Solution, weight: Array) -> None:
        super()._keep(problem, solution, weight)
        self.dual_coef_, self._kkt = kkt_classes(problem, solution)
        self.support_vectors_ = problem.X[np.flatnonzero(self._kkt)]

    @property
    def kkt_(self) -> Array:
        """Class of each row: "none", "free" or "bound"."""
        check_is_fitted(self)
        return np.asarray(KKT[self._kkt])


def draw_seed(random_state: Any) -> int:
    """A seed of the native kernels."""
    return _drawn(random_state) if type(random_state) is int else _draw(random_state)


def _draw(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


_drawn = lru_cache(_draw)  # to make a generator of a number takes longer than a small fit
