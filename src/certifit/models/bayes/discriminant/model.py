"""Discriminants: a Gaussian for each class, and Bayes' rule.

    P(y = k | x)  ∝  π_k · N(x; m_k, Σ_k)              QDA: each class its own Σ_k        LDA: all share Σ

The shares π_k, means m_k and covariances are those of greatest likelihood, in closed form; a shrinkage replaces Σ by
(1 − γ)Σ + γ(trace Σ/d)I, and `pooling` replaces Σ_k by (1 − λ)Σ_k + λΣ (Friedman 1989). Directions in which no class varies
are left out.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.columns import known_columns, same_columns
from certifit.data.gate import check_x, check_xy, like_input
from certifit.data.targets import announced_classes, codes_of, several_classes
from certifit.evaluation.decisions.bayes import bayes_action
from certifit.models.bayes.gaussian import Form, PosteriorMixin, from_afar, log_posterior
from certifit.models.bayes.shares import checked_priors
from certifit.parameters import Declared, Fitted, OneOf
from certifit.parameters.methods import DENSE
from certifit.representation.design.moments import Moments

__all__ = ["COVARIANCE", "Discriminant"]

SIMULATED = 20_000  # draws that turn a density into the probability of one as low

FAR = 1e140  # deviations between means, of which squares are numbers

COVARIANCE = OneOf(
    ("full", "diagonal", "isotropic"),
    "Shape of the covariance: any, one variance for each column, or one variance for all columns.",
)


class Discriminant(Declared, PosteriorMixin, ClassifierMixin, CertifiedEstimator, takes={"X": DENSE}):
    """What LDA and QDA share: moments of the classes, Bayes' rule, densities, priors and costs changed after the fit."""

    n_features_in_: int
    classes_: Array = Fitted("array of shape (K,)", "The labels.")
    priors_: Array = Fitted("array of shape (K,)", "Probabilities of the classes.")
    means_: Array = Fitted("array of shape (K, n_features)", "Their means.")
    covariance_: Array = Fitted("array", "The covariance of all classes or of each, as matrices or as variances.")

    def _covariances(self, moments: Moments, X: Array | None, group: Array | None, weight: Array | None) -> list[Array]:
        """One covariance, or one for each class."""
        raise TypeError(f"{type(self).__name__} must say which covariances it fits.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the Gaussians."""
        started = time.perf_counter()
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, accept_sparse=False, numeric_target=False)
        classes, group = several_classes(self, y)
        self.classes_ = classes
        self._dtype = X.dtype
        moments = Moments.of(X, weight, group, classes.shape[0], full=self._full)
        self._settle(moments, X, group, weight, started)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Add rows to those already seen: the same fit as on all of them at once.

        Parameters
        ----------
        classes : array, optional
            All labels that will ever come; needed in the first call.
        """
        started = time.perf_counter()
        if getattr(self, "shrinkage", None) == "ledoit-wolf":
            raise ValueError(
                "shrinkage='ledoit-wolf' needs all rows at once and cannot be used with partial_fit: give a number."
            )
        first = not hasattr(self, "_moments")
        known = known_columns(self, first)
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, accept_sparse=False, numeric_target=False)
        same_columns(self, known)
        self.classes_ = announced_classes(self, classes, first, fewest=1)
        group = codes_of(self.classes_, y)
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
        self._moments = moments.checked()
        share = moments.weight / moments.weight.sum()
        self.priors_ = share if self.priors is None else checked_priors(self.priors, self.classes_)
        self.class_weight_ = moments.weight
        self.means_ = moments.mean
        covariances = self._covariances(moments, X, group, weight)
        self.covariance_ = covariances[0] if len(covariances) == 1 else np.array(covariances)
        forms = [Form.of(np.zeros(moments.mean.shape[1]), one) for one in covariances]
        self._forms = forms if len(forms) > 1 else forms * self.classes_.shape[0]
        objective = self._mean_deviance(moments, share)
        self._certify(Certificate.exact(objective, self._note(), seconds=time.perf_counter() - started))

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
        if least == d:
            return text
        left = "1 direction without variance is" if d - least == 1 else f"{d - least} directions without variance are"
        return f"{text} {left} left out."

    def _joint(self, X: Any) -> tuple[Array, Any]:
        """ln π_k + ln N(x; m_k, Σ_k) up to what all classes share, in double precision, and the precision of the rows."""
        rows = self._rows(X)
        return self._of_rows(rows.astype(np.float64, copy=False), whole=False), rows.dtype

    def _rows(self, X: Any) -> Array:
        check_is_fitted(self, "means_")
        return check_x(self, X, reset=False, accept_sparse=False)

    def _shared_scores(self, z: Array, *, whole: bool) -> Array:
        """All classes share Σ: rows and means are whitened once, and distances come from one product.

        The row's own square says nothing of its class, and far from all means it would drown what does.
        """
        form, center = self._forms[0], self.means_.mean(axis=0)
        u, m = (z - center) @ form.whitening.T, (self.means_ - center) @ form.whitening.T
        far = float(np.abs(m).max(initial=0.0))
        if far > FAR:  # classes so far apart that squares are no numbers: in any unit as large, one of them is certain
            u, m = u * (FAR / far), m * (FAR / far)
        own = np.einsum("ij,ij->i", u, u)[:, None] if whole else 0.0
        return form.constant - 0.5 * (own - 2.0 * (u @ m.T) + np.einsum("ij,ij->i", m, m))

    def decision_function(self, X: Any) -> Array:
        """Logarithms of π_k·N(x; m_k, Σ_k); for two classes the log odds of the second."""
        rows = self._rows(X)
        two = self.classes_.shape[0] == 2
        joint = self._of_rows(rows.astype(np.float64, copy=False), whole=not two)
        return like_input(rows, joint[:, 1] - joint[:, 0] if two else joint)

    def predict(self, X: Any) -> Array:
        """The most probable class, or the least costly one after `with_costs`."""
        joint, _ = self._joint(X)
        if getattr(self, "costs_", None) is not None:
            action = bayes_action(np.exp(log_posterior(joint, np.float64)), self.costs_)
        else:
            action = joint.argmax(axis=1)
        return np.asarray(self.classes_[action])

    def log_density(self, X: Any) -> Array:
        """ln P(x) = ln Σ_k π_k N(x; m_k, Σ_k): low for outliers."""
        rows = self._rows(X)
        joint = self._of_rows(rows.astype(np.float64, copy=False))
        return like_input(rows, np.asarray(logsumexp(joint, axis=1)))

    def outlier_probability(self, X: Any, random_state: Any = 0) -> Array:
        """The probability that a row drawn from the fitted model has a density as low as each row's.

        Parameters
        ----------
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

    def _of_rows(self, z: Array, *, whole: bool = True) -> Array:
        with np.errstate(divide="ignore"):
            prior = np.log(self.priors_)
        shared = len({id(form) for form in self._forms}) == 1
        scores = partial(self._shared_scores, whole=whole) if shared else self._own_scores
        return prior + from_afar(scores, z, self.means_.mean(axis=0))

    def _own_scores(self, z: Array) -> Array:
        """Each class has its own Σ."""
        parts = zip(self._forms, self.means_, strict=True)
        return np.column_stack([form.log_density(z - mean) for form, mean in parts])

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
        copy.priors_ = checked_priors(priors, self.classes_)
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
