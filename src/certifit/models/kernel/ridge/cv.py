"""Kernel ridge regression that chooses its own alpha: by leave-one-out, for all alphas from one decomposition (`GramForm`), or by
folds, for all folds and alphas from the same products with K (`Parts`).

ρ is alpha·(Σs − 1) where one copy of a row is left out, and alpha·Σs, the weights of the rows fit, otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import check_sample_weight, kept_rows
from certifit.evaluation.losses import Squared
from certifit.evaluation.splits.choice import Curve, Fold, folds_of
from certifit.models.kernel.gram_form import GramForm
from certifit.models.kernel.parameters import KERNEL
from certifit.models.kernel.ridge.folds import Part, Parts
from certifit.models.kernel.ridge.model import GaussianReading
from certifit.optimization.closed_form.magnitudes import in_units
from certifit.optimization.objective.forms.gram import GramProblem
from certifit.parameters import ALPHAS, CV, FIT_INTERCEPT, ONE_STANDARD_ERROR, TOL, VERBOSE, ChosenAlpha, Fitted
from certifit.progress import Progress, progress
from certifit.representation.kernels.points import Sample

__all__ = ["KernelRidgeCV"]

Chosen = tuple[Curve, Callable[[int], Array]]

# Times the rows and the mean of k(x, x): a ridge below the rounding of the matrix is none, and residuals that are rounding are
# not divided by less.
LEAST = float(np.finfo(np.float64).eps)

GRID = np.geomspace(1.0, 1e-7, 20)  # of the mean of k(x, x)


class KernelRidgeCV(ChosenAlpha, GaussianReading):
    """Kernel ridge regression with alpha chosen by leave-one-out, exact and for all alphas from one decomposition, or by folds.

    More than 15,000 different rows are refused. With more alphas than a hundredth of the rows the decomposition is one call of n³
    operations, which Ctrl-C does not cut short. Folds of many rows are faster: all of them and all alphas share products with the
    Gram matrix, and their errors are those of refits to 1e-8 of themselves.

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
    cv: Any = CV.but(
        None,
        text="None leaves out one row at a time. " + CV.text,
    )

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
            if self.cv is None:
                curve, beta = self._leave_one_out(gram, size, sample)
            else:
                curve, beta = self._over_folds(gram, size, sample, self._folds(sample, y, sample_weight))
            self.cv_error_path_ = curve.mean
            best = curve.best(self.alphas_, one_standard_error=self.one_standard_error)
            self.alpha_ = max(float(self.alphas_[best]), 1e-300)
            clock.update(1, 1, 0.0)
            certificate = self._finish(beta(best), gram, sample, clock)
        self._loss = Squared()
        self._remember(sample)
        self._certify(certificate)
        return self

    def _leave_one_out(self, gram: Array, size: float, sample: Sample) -> Chosen:
        """The curve, and β of the strength with a given number."""
        weight, total = sample.weight, float(sample.weight.sum())
        removed = np.minimum(weight, 1.0)
        rest = max(total - float(weight @ removed) / total, 1e-300)
        strengths = np.maximum(self.alphas_ / size, LEAST * weight.shape[0])
        ridges = np.maximum(strengths * rest, 1e-300)
        form = GramForm.of(gram / size, weight, bool(self.fit_intercept), ridges)
        scaled, unit = in_units(sample.y.reshape(sample.y.shape[0], -1))

        def beta(best: int) -> Array:
            ridge = max(float(strengths[best]) * total, 1e-300)
            return weight[:, None] * next(form.residuals(scaled, np.array([ridge]))) / ridge * (unit / size)

        return self._curve(form, sample, removed / weight, ridges), beta

    def _over_folds(self, gram: Array, size: float, sample: Sample, folds: list[Part]) -> Chosen:
        """The same by folds."""
        scaled, unit = in_units(sample.y.reshape(sample.y.shape[0], -1))
        everything = Part(sample.weight, np.zeros_like(sample.weight))
        strengths = np.maximum(self.alphas_ / size, LEAST * sample.weight.shape[0])
        parts = Parts(gram, size, [*folds, everything], scaled.T, strengths, bool(self.fit_intercept))
        dual, predictions = parts.solve()
        errors = [part.error(found - scaled.T).sum(axis=1) for part, found in zip(folds, predictions, strict=False)]
        weight = np.array([float(part.tested.sum()) for part in folds])
        return Curve.of(np.stack(errors, axis=1) * unit * unit, weight), lambda best: dual[-1, best].T * (unit / size)

    def _folds(self, sample: Sample, y: Any, sample_weight: Any) -> list[Part]:
        """Weights of the distinct rows that are fit and left out, fold by fold."""
        n, given = sample.weight.shape[0], sample.which.shape[0]
        kept = kept_rows(sample_weight, given)
        if isinstance(self.cv, (int, np.integer)):
            if n < 2:
                raise ValueError(
                    "Cross-validation needs at least 2 distinct rows; the data has 1, once copies are counted once."
                )
            fold = sample.which % min(int(self.cv), n)  # distinct rows are in an order of their content
            folds = [Fold(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(int(fold.max()) + 1)]
        else:
            folds = folds_of(self.cv, np.empty((given, 0)), np.zeros(given), kept=kept, given=np.asarray(y))
        weight = check_sample_weight(sample_weight, kept.shape[0])[kept]

        def of(rows: Array) -> Array:
            return np.bincount(sample.which[rows], weights=weight[rows], minlength=n)

        return [Part(of(fold.train), of(fold.test)) for fold in folds]

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

    def _finish(self, beta: Array, gram: Array, sample: Sample, clock: Progress) -> Certificate:
        """The model of β, and the proof of each target."""
        targets = sample.y.reshape(sample.y.shape[0], -1)
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
