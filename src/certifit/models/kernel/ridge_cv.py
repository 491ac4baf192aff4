"""Kernel ridge regression that chooses its own alpha, by leave-one-out for all alphas from one decomposition.

With √S (K about its weighted center) √S = U diag(λ) Uᵀ and z = Uᵀ√S(y − mean), the residuals of the fit with ridge ρ are

    √S r = U (ρ/(λ + ρ)) z,     and row i weighs  s_i/Σs + Σ_k U_ik² λ_k/(λ_k + ρ)  in its own fit.

ρ is alpha·(Σs − 1) where one copy of a row is left out, and alpha·Σs for the fit to all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.evaluation.losses import Squared
from certifit.evaluation.splits.choice import Curve
from certifit.models.kernel.parameters import KERNEL
from certifit.models.kernel.ridge import GaussianReading
from certifit.optimization.closed_form.spectrum import in_units
from certifit.optimization.objective.forms.gram import GramProblem
from certifit.parameters import (
    ALPHAS,
    FIT_INTERCEPT,
    ONE_STANDARD_ERROR,
    TOL,
    VERBOSE,
    Declared,
    Fitted,
    check_parameters,
)
from certifit.progress import Progress, progress
from certifit.representation.kernels import Kernel
from certifit.representation.kernels.points import Sample, sample_of

__all__ = ["KernelRidgeCV"]

GRID = np.geomspace(1.0, 1e-7, 20)  # of the mean of k(x, x)
SLICE = 256  # rows whose leverages are computed at a time


@dataclass(frozen=True)
class GramSpectrum:
    """√S K √S about the center: eigenvalues, eigenvectors, √s, and the direction that the intercept takes."""

    values: Array
    U: Array
    root: Array
    constant: Array

    @staticmethod
    def of(gram: Array, weight: Array, fit_intercept: bool) -> GramSpectrum:
        """Decompose."""
        root = np.sqrt(weight)
        B = gram * root[:, None]
        B *= root
        constant = root / np.linalg.norm(root) if fit_intercept else np.zeros_like(root)
        if fit_intercept:
            image = B @ constant
            image -= 0.5 * float(constant @ image) * constant
            B -= np.multiply.outer(constant, image)
            B -= np.multiply.outer(image, constant)
        values, U = scipy.linalg.eigh(B, driver="evd", overwrite_a=True, check_finite=False)
        return GramSpectrum(np.maximum(values, 0.0), U, root, constant)

    def rotated(self, y: Array) -> Array:
        """z for each column of targets."""
        scaled = self.root[:, None] * y
        return np.asarray(self.U.T @ (scaled - np.multiply.outer(self.constant, self.constant @ scaled)))

    def residuals(self, z: Array, ridge: float) -> Array:
        """y − f − b for one ridge and each target."""
        return np.asarray(self.U @ (z * (ridge / (self.values + ridge))[:, None]) / self.root[:, None])

    def leverages(self, ridges: Array) -> Array:
        """What all copies of a row weigh in its own fit, one column for each ridge."""
        shares = self.values[:, None] / (self.values[:, None] + ridges)
        found = np.empty((self.root.shape[0], ridges.shape[0]))
        for start in range(0, found.shape[0], SLICE):
            rows = slice(start, start + SLICE)
            found[rows] = self.U[rows] ** 2 @ shares
        return np.asarray(found + (self.constant**2)[:, None])


class KernelRidgeCV(Declared, GaussianReading):
    """Kernel ridge regression with alpha chosen by leave-one-out, exact and for all alphas from one decomposition.

    The decomposition is one call of n³ operations, which Ctrl-C does not cut short; more than 15,000 different rows are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(80, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)
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

    alpha_: float = Fitted("float", "The strength with the least error; the larger one of equals.")
    alphas_: Array = Fitted("array of shape (k,)", "The strengths that were tried.")
    cv_error_path_: Array = Fitted(
        "array of shape (k,)", "Weighted mean squared error on the rows left out, for each strength; of all targets."
    )
    kernel_: Kernel = Fitted("Kernel", "The kernel with all of its parameters numbers.")
    dual_coef_: Array = Fitted("array of shape (n_points,) or (n_points, n_targets)", "β.")
    intercept_: Any = Fitted("float or array of shape (n_targets,)", "b.")
    certificate_: Certificate = Fitted("Certificate", "How far the fit with `alpha_` is from the best possible one.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidgeCV:
        """Choose alpha, then fit all rows with it; y may have several columns, one for each target."""
        check_parameters(self)
        sample = sample_of(self, self._kernel(), X, y, sample_weight, multi_output=True, min_samples=2)
        n = sample.weight.shape[0]
        if n > self.most_rows:
            raise ValueError(
                f"KernelRidgeCV decomposes the matrix of all pairs of rows, and X has {n:,} different ones, more than "
                f"{self.most_rows:,}: take fewer rows, or `KernelRidge`, which goes over to landmarks."
            )
        with progress(self.verbose, type(self).__name__) as clock, np.errstate(over="ignore", under="ignore"):
            gram = sample.gram()
            size = float(sample.p @ np.diagonal(gram)) or 1.0
            spectrum = GramSpectrum.of(gram / size, sample.weight, bool(self.fit_intercept))
            given = self.alphas is not None
            self.alphas_ = np.atleast_1d(np.asarray(self.alphas, dtype=np.float64)) if given else GRID * size
            curve = self._curve(spectrum, sample, np.maximum(self.alphas_ / size, 1e-300))
            self.cv_error_path_ = curve.mean
            best = curve.best(self.alphas_, one_standard_error=self.one_standard_error)
            self.alpha_ = max(float(self.alphas_[best]), 1e-300)
            clock.update(1, 1, 0.0)
            certificate = self._fit_spectrum(spectrum, gram, size, sample, clock)
        self._loss = Squared()
        self._remember(sample)
        self._certify(certificate)
        return self

    @staticmethod
    def _curve(spectrum: GramSpectrum, sample: Sample, alphas: Array) -> Curve:
        """Errors of rows left out one copy at a time, for each alpha."""
        scaled, unit = in_units(sample.y)
        weight, total = sample.weight, float(sample.weight.sum())
        removed = np.minimum(weight, 1.0)
        rest = max(total - float(weight @ removed) / total, 1e-300)
        spare = 1.0 - (removed / weight)[:, None] * spectrum.leverages(alphas * rest)
        z = spectrum.rotated(scaled.reshape(scaled.shape[0], -1))
        squares = np.empty_like(spare)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for k, alpha in enumerate(alphas):
                # A row that determines its own fit cannot be predicted without it.
                missed = np.where(spare[:, [k]] > 1e-10, spectrum.residuals(z, alpha * rest) / spare[:, [k]], np.inf)
                squares[:, k] = (missed * missed).sum(axis=1)
            mean = sample.p @ squares
            spread = np.sqrt(np.maximum(sample.p @ squares**2 - mean**2, 0.0) / max(total - 1.0, 1.0))
            return Curve(mean * unit * unit, spread * unit * unit, mean[:, None] * unit * unit)

    def _fit_spectrum(
        self, spectrum: GramSpectrum, gram: Array, size: float, sample: Sample, clock: Progress
    ) -> Certificate:
        """β = S·residuals/(alpha·Σs) of the chosen alpha, and the proof of each target."""
        targets = sample.y.reshape(sample.y.shape[0], -1)
        total = float(sample.weight.sum())
        scaled, unit = in_units(targets)
        z = spectrum.rotated(scaled)
        ridge = self.alpha_ / size * total
        beta = spectrum.root[:, None] * (spectrum.U @ (z / (spectrum.values + ridge)[:, None]))
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
