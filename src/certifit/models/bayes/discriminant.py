"""Discriminants: a Gaussian for each class, and Bayes' rule.

    P(y = k | x)  ∝  π_k · N(x; m_k, Σ_k)              QDA: each class its own Σ_k        LDA: all share Σ

The shares π_k, means m_k and covariances are those of greatest likelihood, in closed form; a shrinkage replaces Σ by
(1 − γ)Σ + γ(trace Σ/d)I, and `pooling` replaces Σ_k by (1 − λ)Σ_k + λΣ (Friedman 1989). Directions in which no class varies
are left out.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.gate import check_x, check_xy, like_input
from certifit.data.targets import encode_labels
from certifit.evaluation.decisions.bayes import bayes_action
from certifit.models.bayes.gaussian import Form, ledoit_wolf, log_posterior, shrunk
from certifit.parameters import Choice, Declared, Either, Given, Integer, Nothing, Parameter, Real
from certifit.representation.design.moments import Moments

__all__ = ["LDA", "QDA", "NearestCentroid"]

SIMULATED = 20_000  # draws that turn a density into the probability of one as low

COVARIANCE = Parameter(
    "full",
    Choice("full", "diagonal", "isotropic"),
    "Shape of the covariance: any, one variance for each column, or one variance for all columns.",
)
PRIORS = Parameter(
    None,
    Either(Nothing(), Given("array of shape (K,)", wrong=([0.5, 0.6], [1.5, -0.5], "a", 3))),
    "Probabilities of the classes in sorted order; None takes their shares of the weight.",
)


class _Discriminant(Declared, ClassifierMixin, CertifiedEstimator):
    """What LDA and QDA share: moments of the classes, Bayes' rule, densities, priors and costs changed after the fit."""

    n_features_in_: int
    classes_: Array
    priors_: Array
    means_: Array
    covariance_: Array

    def _covariances(self, moments: Moments, X: Array | None, group: Array | None, weight: Array | None) -> list[Array]:
        """One covariance, or one for each class."""
        raise TypeError(f"{type(self).__name__} must say which covariances it fits.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the Gaussians.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Features.
        y : array of shape (n_samples,)
            Labels, of any type.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts a row twice, a weight of 0 drops it.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, accept_sparse=False, numeric_target=False)
        classes, group = encode_labels(y)
        if classes.shape[0] < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 classes, but y has one class only: {classes.tolist()[0]!r}. "
                "(Rows of weight zero do not count.)"
            )
        self.classes_ = classes
        self._dtype = X.dtype
        moments = Moments.of(X, weight, group, classes.shape[0], full=self._full)
        self._settle(moments, X, group, weight, started)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Add rows to those already seen: the same fit as on all of them at once.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array, optional
            All labels that will ever come; needed in the first call.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        started = time.perf_counter()
        if getattr(self, "shrinkage", None) == "ledoit-wolf":
            raise ValueError(
                "shrinkage='ledoit-wolf' needs all rows at once and cannot be used with partial_fit: give a number."
            )
        first = not hasattr(self, "_moments")
        seen = {} if first else {"n": self.n_features_in_}
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, accept_sparse=False, numeric_target=False)
        if seen and seen["n"] != X.shape[1]:
            found, self.n_features_in_ = self.n_features_in_, seen["n"]
            raise ValueError(
                f"X has {found} features, but {type(self).__name__} is expecting {seen['n']} features as input."
            )
        if first:
            if classes is None:
                raise ValueError(
                    "classes must be given in the first call of partial_fit: all labels that will ever come."
                )
            self.classes_ = np.unique(np.asarray(classes))
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(f"y holds labels that are not in classes: {unknown.tolist()!r}.")
        group = np.searchsorted(self.classes_, y)
        self._dtype = X.dtype
        block = Moments.of(X, weight, group, self.classes_.shape[0], full=self._full)
        self._settle(block if first else self._moments + block, None, None, None, started)
        return self

    @property
    def _full(self) -> bool:
        return bool(getattr(self, "covariance", "full") == "full")

    def _settle(
        self, moments: Moments, X: Array | None, group: Array | None, weight: Array | None, started: float
    ) -> None:
        """The fitted attributes from the moments."""
        self._moments = moments
        share = moments.weight / moments.weight.sum()
        self.priors_ = share if self.priors is None else self._checked_priors(self.priors)
        self.class_weight_ = moments.weight
        self.means_ = moments.mean
        covariances = self._covariances(moments, X, group, weight)
        self.covariance_ = covariances[0] if len(covariances) == 1 else np.array(covariances)
        forms = [Form.of(np.zeros(moments.mean.shape[1]), one) for one in covariances]
        self._forms = forms if len(forms) > 1 else forms * self.classes_.shape[0]
        objective = self._mean_deviance(moments, share)
        self._certify(
            Certificate(
                "closed form",
                objective=objective,
                bound=objective,
                scale=1.0,
                tol=0.0,
                iterations=1,
                seconds=time.perf_counter() - started,
                note=self._note(),
            )
        )

    def _mean_deviance(self, moments: Moments, share: Array) -> float:
        """−mean ln P(x, y) of the training rows, from the moments alone."""
        value = 0.0
        for k, form in enumerate(self._forms):
            if share[k] == 0.0:
                continue
            scatter = moments.covariance()[k]
            spread = form.whitening if scatter.ndim == 2 else form.whitening * np.sqrt(scatter)
            square = float((spread @ scatter * spread).sum()) if scatter.ndim == 2 else float((spread**2).sum())
            value -= share[k] * (np.log(max(self.priors_[k], 1e-300)) + form.constant - 0.5 * square)
        return float(value)

    def _note(self) -> str:
        d, least = self.means_.shape[1], min(form.rank for form in self._forms)
        shrunken = getattr(self, "shrinkage_", 0.0)
        text = "The greatest likelihood, in closed form."
        if shrunken:
            text = f"The covariance of greatest likelihood, shrunk by {shrunken:.3g}."
        return f"{text} {d - least} directions without variance are left out." if least < d else text

    def _checked_priors(self, priors: Any) -> Array:
        try:
            share = np.asarray(priors, dtype=np.float64)
        except (TypeError, ValueError):
            share = np.zeros(0)
        K = self.classes_.shape[0]
        if share.shape != (K,) or not (
            np.isfinite(share).all() and (share >= 0).all() and abs(share.sum() - 1.0) < 1e-6
        ):
            raise ValueError(
                f"priors must be {K} probabilities that sum to 1, one for each of the classes "
                f"{self.classes_.tolist()!r}; got {priors!r}."
            )
        return np.asarray(share / share.sum())

    def _joint(self, X: Any) -> tuple[Array, Any]:
        """ln π_k + ln N(x; m_k, Σ_k) in double precision, shape (n, K), and the precision of the rows."""
        check_is_fitted(self, "means_")
        X = check_x(self, X, reset=False, accept_sparse=False)
        return self._of_rows(X.astype(np.float64, copy=False)), X.dtype

    def _shared_scores(self, z: Array) -> Array:
        """All classes share Σ: rows and means are whitened once, and distances come from one product."""
        form, center = self._forms[0], self.means_.mean(axis=0)
        u, m = (z - center) @ form.whitening.T, (self.means_ - center) @ form.whitening.T
        cross = u @ m.T
        own = np.einsum("ij,ij->i", u, u)
        return form.constant - 0.5 * (own[:, None] - 2.0 * cross + np.einsum("ij,ij->i", m, m))

    def decision_function(self, X: Any) -> Array:
        """Logarithms of π_k·N(x; m_k, Σ_k); for two classes the log odds of the second.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
        """
        joint, dtype = self._joint(X)
        return np.asarray(joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint, dtype=dtype)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the posterior probabilities, shape (n_samples, n_classes)."""
        joint, dtype = self._joint(X)
        return log_posterior(joint, dtype)

    def predict_proba(self, X: Any) -> Array:
        """Posterior probabilities of the classes, shape (n_samples, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """The most probable class, or the least costly one after `with_costs`."""
        joint, _ = self._joint(X)
        if getattr(self, "costs_", None) is not None:
            action = bayes_action(np.exp(log_posterior(joint, np.float64)), self.costs_)
        else:
            action = joint.argmax(axis=1)
        return np.asarray(self.classes_[action])

    def log_density(self, X: Any) -> Array:
        """ln P(x) = ln Σ_k π_k N(x; m_k, Σ_k): low for outliers.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        joint, dtype = self._joint(X)
        return np.asarray(logsumexp(joint, axis=1), dtype=dtype)

    def outlier_probability(self, X: Any, random_state: Any = 0) -> Array:
        """The probability that a row drawn from the fitted model has a density as low as each row's.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        random_state : int or RandomState, default=0
            Of the 20,000 draws that the probabilities are counted from.

        Returns
        -------
        array of shape (n_samples,)
            0.01: only one in a hundred rows of the model is as unlikely.
        """
        density = self.log_density(X)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        count = rng.multinomial(SIMULATED, self.priors_)
        drawn = np.vstack([m + form.sample(n, rng) for m, form, n in zip(self.means_, self._forms, count, strict=True)])
        known = np.sort(logsumexp(self._of_rows(drawn), axis=1))
        below = np.searchsorted(known, np.asarray(density, dtype=np.float64), side="right")
        return np.asarray((below + 1.0) / (SIMULATED + 1.0))

    def _of_rows(self, z: Array) -> Array:
        with np.errstate(divide="ignore"):
            prior = np.log(self.priors_)
        if len({id(form) for form in self._forms}) == 1:
            return prior + self._shared_scores(z)
        return prior + np.column_stack(
            [form.log_density(z - mean) for form, mean in zip(self._forms, self.means_, strict=True)]
        )

    def with_priors(self, priors: Any) -> Any:
        """The same Gaussians under other shares of the classes; nothing is fitted again.

        Parameters
        ----------
        priors : array of shape (K,)
            In the order of `classes_`; sums to 1.

        Returns
        -------
        A copy of the model.
        """
        copy = self._copy()
        copy.priors_ = self._checked_priors(priors)
        return copy

    def with_costs(self, costs: Any) -> Any:
        """The same model deciding by cost: ``costs[k, a]`` is the cost of saying class a when class k is true.

        Parameters
        ----------
        costs : array of shape (K, K)

        Returns
        -------
        A copy of the model.
        """
        from certifit.evaluation.decisions.costs import CostMatrix

        copy = self._copy()
        copy.costs_ = CostMatrix(costs, classes=self.classes_).matrix
        return copy

    def _copy(self) -> Any:
        check_is_fitted(self, "means_")
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy


class LDA(TransformerMixin, _Discriminant):
    """Linear discriminant: Gaussians with one covariance for all classes.

    Minimizes −mean ln [π_y N(x; m_y, Σ)] in closed form. The boundaries are planes; `transform` projects onto the directions
    in which the class means differ most beside the spread within the classes.

    Attributes
    ----------
    classes_, priors_, means_, covariance_ : arrays
    coef_, intercept_ : arrays
        The linear scores: for two classes of the second against the first.
    scalings_ : array of shape (n_features, components)
        Directions of `transform`, most telling first.
    explained_variance_ratio_ : array
        Share of the variance between classes along each of them.
    shrinkage_ : float
        The shrinkage used.
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LDA
    >>> X = np.array([[0.0, 0.0], [1.0, 0.5], [0.5, 1.0], [4.0, 4.0], [5.0, 4.5], [4.5, 5.0]])
    >>> y = np.array(["low", "low", "low", "high", "high", "high"])
    >>> model = LDA().fit(X, y)
    >>> model.predict([[0.4, 0.4], [4.2, 4.1]]).tolist()
    ['low', 'high']
    >>> model.certificate_.kind
    'closed form'
    """

    covariance: str = COVARIANCE
    shrinkage: Any = Parameter(
        None,
        Either(Nothing(), Choice("ledoit-wolf"), Real(0, 1)),
        'Share of the identity in the covariance; "ledoit-wolf" estimates the best one, None is 0.',
    )
    priors: Any = PRIORS
    n_components: int | None = Parameter(
        None, Either(Nothing(), Integer(1)), "Directions of `transform`; None takes min(K − 1, n_features)."
    )

    def _covariances(self, moments: Moments, X: Array | None, group: Array | None, weight: Array | None) -> list[Array]:
        within = moments.pooled().covariance()[0]
        if self.covariance == "isotropic":
            within = np.full(within.shape[0], within.mean())
        self.shrinkage_ = 0.0
        if self.shrinkage == "ledoit-wolf":
            if within.ndim == 2:
                assert X is not None
                assert group is not None
                assert weight is not None
                unit = np.sqrt(np.where(np.diag(within) > 0, np.diag(within), 1.0))
                scaled = within / np.outer(unit, unit)
                self.shrinkage_ = ledoit_wolf(X / unit, weight, group, moments.mean / unit, scaled)
                within = shrunk(scaled, self.shrinkage_) * np.outer(unit, unit)
        elif self.shrinkage is not None:
            self.shrinkage_ = float(self.shrinkage)
            within = shrunk(within, self.shrinkage_)
        return [within]

    def _settle(
        self, moments: Moments, X: Array | None, group: Array | None, weight: Array | None, started: float
    ) -> None:
        super()._settle(moments, X, group, weight, started)
        K, d = self.means_.shape
        if self.n_components is not None and self.n_components > min(K - 1, d):
            raise ValueError(
                f"n_components must be at most min(classes − 1, n_features) = {min(K - 1, d)}; got {self.n_components}."
            )
        form = self._forms[0]
        center = self.priors_ @ self.means_
        between = np.sqrt(self.priors_)[:, None] * ((self.means_ - center) @ form.whitening.T)
        _, strength, directions = np.linalg.svd(between, full_matrices=False)
        k = min(K - 1, d) if self.n_components is None else int(self.n_components)
        energy = strength**2
        self.xbar_ = center
        self.scalings_ = form.whitening.T @ directions[:k].T
        self.explained_variance_ratio_ = energy[:k] / energy.sum() if energy.sum() > 0 else energy[:k]
        precision = form.whitening.T @ form.whitening
        with np.errstate(divide="ignore"):
            linear = self.means_ @ precision
            constant = np.log(self.priors_) - 0.5 * np.einsum("kj,kj->k", linear, self.means_)
        self.coef_ = (linear[[1]] - linear[[0]] if K == 2 else linear).astype(self._dtype)
        self.intercept_ = (constant[[1]] - constant[[0]] if K == 2 else constant).astype(self._dtype)

    def transform(self, X: Any) -> Array:
        """Coordinates along the discriminant directions, in which every class has unit variance.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, components)
        """
        check_is_fitted(self, "scalings_")
        rows = check_x(self, X, reset=False, accept_sparse=False)
        return like_input(rows, (rows.astype(np.float64, copy=False) - self.xbar_) @ self.scalings_)

    @property
    def _n_features_out(self) -> int:
        return int(self.scalings_.shape[1])

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the directions: lda0, lda1, …"""
        check_is_fitted(self, "scalings_")
        return np.array([f"lda{j}" for j in range(self._n_features_out)], dtype=object)


class QDA(_Discriminant):
    """Quadratic discriminant: a Gaussian with its own covariance for each class.

    Minimizes −mean ln [π_y N(x; m_y, Σ_y)] in closed form; the boundaries are quadrics. A class with too few rows for a
    covariance of its own, one that varies in fewer directions than all classes together, takes that of all (see `pooling_`).

    Attributes
    ----------
    classes_, priors_, means_, covariance_ : arrays
    pooling_ : array of shape (K,)
        Share of the covariance of all classes in each one's.
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import QDA
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(50, 2)), rng.normal(scale=4.0, size=(50, 2))])
    >>> y = np.repeat([0, 1], 50)
    >>> QDA().fit(X, y).predict([[0.1, 0.1], [6.0, 6.0]])
    array([0, 1])
    """

    covariance: str = COVARIANCE
    shrinkage: Any = Parameter(
        None, Either(Nothing(), Real(0, 1)), "Share of the identity in each covariance; None is 0."
    )
    pooling: float = Parameter(0.0, Real(0, 1), "Share of the covariance of all classes in each one's own: 1 is LDA.")
    priors: Any = PRIORS

    def _covariances(self, moments: Moments, X: Array | None, group: Array | None, weight: Array | None) -> list[Array]:
        within = moments.pooled().covariance()[0]
        self.shrinkage_ = 0.0 if self.shrinkage is None else float(self.shrinkage)
        own = []
        for one in moments.covariance():
            mixed = (1.0 - self.pooling) * one + self.pooling * within
            if self.covariance == "isotropic":
                mixed = np.full(mixed.shape[0], mixed.mean())
            own.append(shrunk(mixed, self.shrinkage_))
        # A class of few rows varies in fewer directions than all classes together: its own density would not be one on the
        # same plane as the others', and the likelihood has no maximum. It takes the covariance of all classes, as in LDA.
        wanted = Form.of(moments.mean[0], within).rank
        lacking = [k for k, one in enumerate(own) if Form.of(moments.mean[k], one).rank < wanted]
        self.pooling_ = np.full(len(own), float(self.pooling))
        self.pooling_[lacking] = 1.0
        lent = shrunk(
            np.full(within.shape[0], within.mean()) if self.covariance == "isotropic" else within, self.shrinkage_
        )
        return [lent if k in lacking else one for k, one in enumerate(own)]

    def _note(self) -> str:
        names = [
            repr(label) for label, share in zip(self.classes_.tolist(), self.pooling_, strict=True) if share == 1.0
        ]
        if not names or self.pooling == 1.0:
            return super()._note()
        return (
            f"{super()._note()} Classes that vary in fewer directions than all classes together have the covariance of all: "
            f"{', '.join(names[:5])}{', …' if len(names) > 5 else ''}."
        )


class NearestCentroid(_Discriminant):
    """The class with the nearest mean: Gaussians with one variance for all columns and classes, and equal shares.

    Attributes
    ----------
    classes_, means_ : arrays
    centroids_ : array of shape (K, n_features)
    certificate_ : Certificate

    Examples
    --------
    >>> from certifit import NearestCentroid
    >>> model = NearestCentroid().fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])
    >>> model.predict([[2.0], [4.0]])
    array([0, 1])
    """

    priors: Any = PRIORS.but(text="Probabilities of the classes; None takes them as equally probable.")

    def _covariances(self, moments: Moments, X: Array | None, group: Array | None, weight: Array | None) -> list[Array]:
        if self.priors is None:
            self.priors_ = np.full(self.classes_.shape[0], 1.0 / self.classes_.shape[0])
        self.centroids_ = moments.mean
        within = moments.pooled().covariance()[0]
        mean = float(within.mean())
        return [np.full(within.shape[0], mean if mean > 0.0 else 1.0)]

    @property
    def _full(self) -> bool:
        return False
