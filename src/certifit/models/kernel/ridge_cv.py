"""Kernel ridge regression that chooses its own alpha, by leave-one-out for all alphas from one decomposition.

With B = √S (K about its weighted center) √S and R = ρ(B + ρ)⁻¹, the residuals of the fit with ridge ρ are

    √S r = R √S(y − mean),     and row i weighs  1 − R_ii + s_i/Σs  in its own fit.

ρ is alpha·(Σs − 1) where one copy of a row is left out, and alpha·Σs for the fit to all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.evaluation.losses import Squared
from certifit.evaluation.splits.choice import Curve
from certifit.models.kernel.parameters import KERNEL
from certifit.models.kernel.ridge import GaussianReading
from certifit.optimization.closed_form.resolvent import Resolvent
from certifit.optimization.closed_form.spectrum import in_units
from certifit.optimization.objective.forms.gram import GramProblem
from certifit.parameters import ALPHAS, FIT_INTERCEPT, ONE_STANDARD_ERROR, TOL, VERBOSE, ChosenAlpha, Fitted
from certifit.progress import Progress, progress
from certifit.representation.kernels.points import Sample

__all__ = ["KernelRidgeCV"]

GRID = np.geomspace(1.0, 1e-7, 20)  # of the mean of k(x, x)
COLUMNS = 64  # of residuals that are computed at a time


@dataclass(frozen=True)
class GramForm:
    """√S K √S about the center, ready for every ridge, √s, and the direction that the intercept takes.

    In that direction the matrix about the center is zero, and ρ(0 + ρ)⁻¹ = 1 would hide what little a small ridge leaves
    elsewhere. So it gets the eigenvalue `lifted` there: targets about their mean do not see it, and the diagonals are rid of it.
    """

    resolvent: Resolvent
    root: Array
    constant: Array
    lifted: float

    @staticmethod
    def of(gram: Array, weight: Array, fit_intercept: bool, ridges: Array) -> GramForm:
        """Decompose."""
        root = np.sqrt(weight)
        B = gram * root[:, None]
        B *= root
        constant = root / np.linalg.norm(root) if fit_intercept else np.zeros_like(root)
        lifted = float(np.trace(B)) / root.shape[0] or 1.0
        if fit_intercept:
            image = B @ constant
            image -= 0.5 * (float(constant @ image) + lifted) * constant
            B -= np.multiply.outer(constant, image)
            B -= np.multiply.outer(image, constant)
        return GramForm(Resolvent.of(B, ridges), root, constant, lifted)

    def residuals(self, y: Array, ridges: Array) -> Iterator[Array]:
        """y − f − b of each row and target, for one ridge after the other."""
        scaled = self.root[:, None] * y
        z = self.resolvent.turned(scaled - np.multiply.outer(self.constant, self.constant @ scaled))
        step = max(1, COLUMNS // y.shape[1])
        for start in range(0, ridges.shape[0], step):
            damped = [self.resolvent.damped(z, float(ridge)) for ridge in ridges[start : start + step]]
            back = self.resolvent.rotation @ np.hstack(damped) / self.root[:, None]
            yield from np.split(back, len(damped), axis=1)

    def spare(self, ridges: Array) -> Array:
        """One less what all copies of a row weigh in its own fit, one column for each ridge."""
        own = np.multiply.outer(self.constant**2, ridges / (self.lifted + ridges))
        return np.maximum(self.resolvent.diagonals(ridges) - own, 0.0)


class KernelRidgeCV(ChosenAlpha, GaussianReading):
    """Kernel ridge regression with alpha chosen by leave-one-out, exact and for all alphas from one decomposition.

    More than 15,000 different rows are refused. With more alphas than a hundredth of the rows the decomposition is one call of n³
    operations, which Ctrl-C does not cut short.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import KernelRidgeCV
    >>> X = np.linspace(-3, 3, 80)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=80)
    >>> model = KernelRidgeCV(alphas=[1.0, 1e-3, 1e-9]).fit(X, y)
    >>> model.alpha_, model.certificate_.certified
    (0.001, True)
    """

    most_rows = 15_000  # different ones: their matrix and its eigenvectors take 8 GiB
    weights_are_counts = True  # of a row with weight 2 one copy is left out, and its twin stays

    kernel: Any = KERNEL
    alphas: Any = ALPHAS.but(text="Strengths to try. None is a logarithmic grid scaled to the mean of k(x, x).")
    fit_intercept: bool = FIT_INTERCEPT
    one_standard_error: bool = ONE_STANDARD_ERROR
    tol: float = TOL
    verbose: int = VERBOSE

    cv_error_path_: Array = Fitted(
        "array of shape (n_alphas,)",
        "Weighted mean squared error on the rows left out, for each strength; of all targets.",
    )
    certificate_: Certificate = Fitted("Certificate", "How far the fit with `alpha_` is from the best possible one.")

    def _check_given(self) -> None:
        raise ValueError("alpha is chosen by all rows, and might be another without one of them: take KernelRidge.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidgeCV:
        """Choose alpha, then fit all rows with it; y may have several columns, one for each target."""
        sample = self._sample(X, y, sample_weight, multi_output=True, min_samples=2)
        n = sample.weight.shape[0]
        if n > self.most_rows:
            raise ValueError(
                f"KernelRidgeCV decomposes the matrix of all pairs of rows, and X has {n:,} different ones, more than "
                f"{self.most_rows:,}: take fewer rows, or `KernelRidge`, which goes over to landmarks."
            )
        with progress(self.verbose, type(self).__name__) as clock, np.errstate(over="ignore", under="ignore"):
            gram = sample.gram()
            size = float(sample.p @ np.diagonal(gram)) or 1.0
            given = self.alphas is not None
            self.alphas_ = np.atleast_1d(np.asarray(self.alphas, dtype=np.float64)) if given else GRID * size
            weight, total = sample.weight, float(sample.weight.sum())
            removed = np.minimum(weight, 1.0)
            rest = max(total - float(weight @ removed) / total, 1e-300)
            ridges = np.maximum(self.alphas_ / size * rest, 1e-300)
            form = GramForm.of(gram / size, weight, bool(self.fit_intercept), ridges)
            curve = self._curve(form, sample, removed / weight, ridges)
            self.cv_error_path_ = curve.mean
            best = curve.best(self.alphas_, one_standard_error=self.one_standard_error)
            self.alpha_ = max(float(self.alphas_[best]), 1e-300)
            clock.update(1, 1, 0.0)
            certificate = self._fit_form(form, gram, size, sample, clock)
        self._loss = Squared()
        self._remember(sample)
        self._certify(certificate)
        return self

    @staticmethod
    def _curve(form: GramForm, sample: Sample, removed: Array, ridges: Array) -> Curve:
        """Errors of rows of which a share is left out, one row at a time, for each ridge."""
        scaled, unit = in_units(sample.y)
        total = float(sample.weight.sum())
        spare = 1.0 - removed[:, None] + removed[:, None] * form.spare(ridges)
        squares = np.empty_like(spare)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for k, residuals in enumerate(form.residuals(scaled.reshape(scaled.shape[0], -1), ridges)):
                # A row that determines its own fit cannot be predicted without it.
                missed = np.where(spare[:, [k]] > 1e-10, residuals / spare[:, [k]], np.inf)
                squares[:, k] = (missed * missed).sum(axis=1)
            mean = sample.p @ squares
            spread = np.sqrt(np.maximum(sample.p @ squares**2 - mean**2, 0.0) / max(total - 1.0, 1.0))
            return Curve(mean * unit * unit, spread * unit * unit, mean[:, None] * unit * unit)

    def _fit_form(self, form: GramForm, gram: Array, size: float, sample: Sample, clock: Progress) -> Certificate:
        """β = S·residuals/(alpha·Σs) of the chosen alpha, and the proof of each target."""
        targets = sample.y.reshape(sample.y.shape[0], -1)
        total = float(sample.weight.sum())
        scaled, unit = in_units(targets)
        ridge = max(self.alpha_ / size * total, 1e-300)
        beta = sample.weight[:, None] * next(form.residuals(scaled, np.array([ridge])))
        beta /= ridge
        beta *= unit / size
        image = gram @ beta
        intercept = sample.p @ (targets - image) if self.fit_intercept else np.zeros(targets.shape[1])
        certificates = []
        for k in range(targets.shape[1]):
            problem = GramProblem(gram, targets[:, k], sample.p, Squared(), self.alpha_, bool(self.fit_intercept))
            state = problem.state(image[:, k] + intercept[k], intercept[k])
            certificates.append(
                Certificate(
                    "closed form",
                    objective=problem.value(beta[:, k], image[:, k], intercept[k]),
                    bound=max(problem.dual(state, beta[:, k], image[:, k]), 0.0),
                    scale=problem.scale,
                    tol=float(self.tol),
                    iterations=1,
                    seconds=clock.seconds,
                )
            )
        self.n_iter_, self.solver_ = 1, "closed_form"
        single = sample.y.ndim == 1
        self._keep(sample.points, beta[:, 0] if single else beta, intercept[0] if single else intercept)
        return Certificate.total(certificates, seconds=clock.seconds)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
