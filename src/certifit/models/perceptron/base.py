"""What the perceptrons share: signed rows, the witness of separability, and the certificate made of it.

For two classes with signs s_i = ±1 and rows x̃ = (x, c) (c = 0 without an offset), exactly one of these exists (Gordan):

    a separating w̃ with s_i·x̃_i·w̃ > 0 for all i,          or          λ ≥ 0, Σλ = 1 with Σ λ_i s_i x̃_i = 0.

The first is found by the perceptron itself, after at most R²/γ² mistakes (Novikoff 1962), with R the largest ‖x̃_i‖ and γ the
margin of any separating w̃ of norm one; the second proves that none will ever be found. The constant c is the power of two
next to the largest ‖x_i‖, so that the offset moves as fast as the rest and the unit of X changes no decision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from certifit._types import Array, Matrix, is_sparse
from certifit.certificate import Certificate
from certifit.data.equal_rows import content_order
from certifit.data.gate import check_xy
from certifit.data.targets import class_weights, several_classes
from certifit.models.linear.classifier import LinearClassifier
from certifit.models.margin.separability import strictly_separable
from certifit.models.sgd.base import by_rows
from certifit.optimization.closed_form.least_squares import solve_least_squares
from certifit.optimization.closed_form.magnitudes import power_of_two
from certifit.optimization.stochastic.engines import native_rows
from certifit.parameters import FIT_INTERCEPT, TOL, Choice, Either, Given, Parameter, Real
from certifit.representation.design.products import matvec
from certifit.threads import n_threads

__all__ = ["OFFSET", "START", "STEP", "STOP", "BasePerceptron", "ScaledRows", "Separator", "largest_norm"]

OFFSET = FIT_INTERCEPT.but(
    text="Whether there is an offset; it is the coefficient of a constant column of the size of the rows."
)
STOP = TOL.but(
    0.0,
    "Share of the training error of the best constant decision at which to stop; 0 stops only without a mistake.",
)
START = Parameter(
    "zeros",
    Either(Choice("zeros", "regression"), Given("pair of coefficients and intercepts", wrong=((), (1.0,), ("a", "b")))),
    "Where to start: at zero, at the least-squares fit of the signs, or at a pair (coef, intercept) shaped like `coef_` and "
    "`intercept_`.",
)
STEP = Parameter(
    1.0,
    Real(0, open_low=True),
    "Size of a step, η in w ← w + η·s·x. Only its ratio to the start matters; from zero it just scales w. "
    "(Beyond magnitudes of 1e±10, x is in the unit of the largest entry of X.)",
)
SPARE = 34  # powers of two from the ends of the range at which coefficients are kept that were beyond it: scores are sums of them
PROOF_LIMIT = 200_000  # entries of X up to which the linear program of the proof is cheap


@dataclass(frozen=True)
class ScaledRows:
    """Validated rows in ordinary units; coefficients of the user's units are w·unit."""

    X: Matrix
    native: Any
    unit: float
    offset: float
    """The constant column c of the offset, 0 without one."""
    weight: Array

    @property
    def p(self) -> Array:
        """Weights that sum to one."""
        return self.weight / self.weight.sum()


@dataclass(frozen=True)
class Separator:
    """One binary fit, in the units of `ScaledRows`."""

    w: Array
    b: float
    error: float
    """Weighted share of the rows on the wrong side (or on the plane)."""
    constant: float
    """The same of the best constant decision."""
    epochs: int
    mistakes: float = 0.0
    bound: float = np.inf
    margin: float = 0.0
    note: str = ""
    history: tuple[float, ...] = ()
    """The error after each epoch."""


class BasePerceptron(LinearClassifier):
    """Parameters, rows and certificate; a subclass fits one pair of classes, or all classes together."""

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[ScaledRows, Array]:
        """Rows and class numbers."""
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, numeric_target=False)
        classes, codes = several_classes(self, y)
        if self.class_weight is not None:
            weight = weight * class_weights(self.class_weight, classes, codes, weight)[codes]
        self.classes_ = classes
        dtype = X.dtype
        X = by_rows(X)
        order = content_order(X, codes) if self.shuffle else None
        if order is not None:
            X, codes, weight = X[order], codes[order], weight[order]
        unit = _unit(X)
        if unit != 1.0:
            X = X.astype(np.float64) * unit
        self._dtype = dtype
        norm = largest_norm(X)
        offset = power_of_two(norm)
        return ScaledRows(X, native_rows(X), unit, offset if self.fit_intercept else 0.0, weight), codes

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1, size=4))

    def _each_class(self, rows: ScaledRows, codes: Array, one: Any) -> list[Separator]:
        """One fit for two classes, one for each class against the rest for more."""
        K = self.classes_.shape[0]
        positive = [1] if K == 2 else list(range(K))
        seeds = self._generator().integers(2**63, size=len(positive))
        signs = [np.where(codes == k, 1.0, -1.0) for k in positive]
        jobs = [
            (sign, begin, np.random.default_rng(int(seed)))
            for sign, begin, seed in zip(signs, self._begins(rows, signs), seeds, strict=True)
        ]
        threads = 1 if self.n_jobs is None else min(n_threads(self.n_jobs), len(jobs))
        if threads == 1:
            return [one(rows, *job) for job in jobs]
        return list(Parallel(n_jobs=threads, require="sharedmem")(delayed(one)(rows, *job) for job in jobs))

    def _begins(self, rows: ScaledRows, signs: list[Array]) -> list[tuple[Array, float]]:
        """Where each fit starts, in the units of `rows` and of the step: w₀/η moves by s·x as w₀ does by η·s·x."""
        d, step = rows.X.shape[1], float(self.step)
        if isinstance(self.start, str):
            if self.start == "zeros":
                return [(np.zeros(d), 0.0) for _ in signs]
            fits = [
                solve_least_squares(rows.X, sign, rows.p, l2=np.zeros(d), fit_intercept=rows.offset > 0)
                for sign in signs
            ]
            given = [(np.array(fit.coef, dtype=np.float64), float(fit.intercept)) for fit in fits]
        else:
            coef, intercept = self._given_start(len(signs), d)
            with np.errstate(over="ignore", under="ignore"):
                given = [(w / rows.unit, float(b)) for w, b in zip(coef, intercept, strict=True)]
        return [(w / step, b / (rows.offset * step) if rows.offset else 0.0) for w, b in given]

    def _given_start(self, count: int, d: int) -> tuple[Array, Array]:
        """Coefficients of shape (count, d) and as many intercepts, checked."""
        try:
            coef, intercept = (np.asarray(part, dtype=np.float64) for part in self.start)
            coef, intercept = np.atleast_2d(coef), np.atleast_1d(intercept)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"start must be a name or a pair (coef, intercept) of numbers; got {self.start!r}."
            ) from error
        finite = np.isfinite(coef).all() and np.isfinite(intercept).all()
        if coef.shape != (count, d) or intercept.shape != (count,) or not finite:
            raise ValueError(
                f"start must be a pair of finite coefficients of shape ({count}, {d}) and {count} intercepts; got shapes "
                f"{coef.shape} and {intercept.shape}{'' if finite else ', not all of it finite'}."
            )
        if not self.fit_intercept and intercept.any():
            raise ValueError("start has intercepts, but fit_intercept=False leaves none: give zeros for them.")
        return coef, intercept

    def _keep_separators(self, rows: ScaledRows, parts: list[Separator], step: float = 1.0) -> None:
        """Coefficients in the user's units and precision."""
        coef, intercept = np.vstack([part.w for part in parts]), np.array([part.b for part in parts])
        (step, of_step), (unit, of_unit) = math.frexp(step), math.frexp(rows.unit)
        coef, intercept = coef * step * unit, intercept * step
        # A positive factor changes no decision: coefficients and scores beyond the range are measured in another unit.
        size, late = (math.frexp(float(np.abs(part).max(initial=0.0)))[1] + of_step for part in (coef, intercept))
        high, low = max(size, size + of_unit, late), min(size, size + of_unit)
        limits, beyond = np.finfo(self._dtype), 0
        if high >= limits.maxexp:
            beyond = high - limits.maxexp + SPARE
        elif low < limits.minexp and coef.any():
            beyond = max(low - limits.minexp, high - limits.maxexp) - SPARE
        with np.errstate(under="ignore"):
            coef = np.ldexp(coef, of_step + of_unit - beyond)
            intercept = np.ldexp(intercept, of_step - beyond)
        self.coef_ = coef.astype(self._dtype)
        self.intercept_ = intercept
        self.n_iter_ = max(part.epochs for part in parts)

    def _certificate(self, parts: list[Separator], seconds: float) -> Certificate:
        """A witness if all classes are separated; else the error reached, and what is known about separability."""
        separated = all(part.error == 0.0 for part in parts)
        error = float(np.mean([part.error for part in parts]))
        return Certificate(
            "witness" if separated else "none",
            objective=error,
            bound=0.0,
            scale=float(np.mean([part.constant for part in parts])),
            tol=float(self.tol),
            iterations=max(part.epochs for part in parts),
            seconds=seconds,
            note=" ".join(dict.fromkeys(part.note for part in parts if part.note)),
        )


def _unit(X: Matrix) -> float:
    """A power of two that brings data of extreme magnitude to ordinary numbers; 1 for all other data."""
    values = X.data if is_sparse(X) else X
    largest = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
    if largest == 0.0 or 1e-10 < largest < 1e10:
        return 1.0
    return float(np.exp2(np.clip(-np.floor(np.log2(largest)), -1000, 1000)))


def largest_norm(X: Matrix) -> float:
    """The largest norm of a row."""
    double = X.astype(np.float64)
    squares = double.multiply(double).sum(axis=1) if is_sparse(X) else np.einsum("ij,ij->i", double, double)
    return float(np.sqrt(np.max(squares)))


def scores_of(rows: ScaledRows, w: Array, b: float) -> Array:
    """X·w + c·b in double precision."""
    return matvec(rows.X, w, exact=True) + rows.offset * b


def margin_and_bound(
    rows: ScaledRows, sign: Array, w: Array, b: float, begin: tuple[Array, float]
) -> tuple[float, float]:
    """Distance of the nearest row from the plane, and the most mistakes that its margin on the rows (x, c) allows.

    With u of norm one and margin γ, M mistakes from w₀ give u·w₀ + Mγ ≤ ‖w‖ ≤ √(‖w₀‖² + MR²), of which M is at most the larger
    root: R²/γ² from zero.
    """
    least = float((sign * scores_of(rows, w, b)).min())
    if not least > 0:
        return 0.0, np.inf
    norm = float(np.sqrt(w @ w + (b * b if rows.offset else 0.0)))
    gamma = least / norm
    radius = np.hypot(largest_norm(rows.X), rows.offset)
    size = float(np.sqrt(w @ w))
    first, late = begin
    along = float(first @ w + (late * b if rows.offset else 0.0)) / norm
    across = max(float(first @ first + late * late) - along * along, 0.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        half = 0.5 * np.float64((radius / np.float64(gamma)) ** 2) - along / np.float64(gamma)
        root = np.sqrt(half * half + across / np.float64(gamma) ** 2)
        # Of a start that points the right way the sum cancels; the product of the roots does not.
        bound = half + root if half >= 0 else across / np.float64(gamma) ** 2 / (root - half)
        bound = float(bound) if np.isfinite(bound) else np.inf
    return (least / size if size > 0 else np.inf), bound


def describe(rows: ScaledRows, sign: Array, error: float, margin: float, epochs: int) -> str:
    """What is known about the separation, in a sentence."""
    if error == 0.0:
        return f"A separating plane was found, at distance {margin / rows.unit:.2g} from the nearest row."
    small = rows.X.shape[0] * rows.X.shape[1] <= PROOF_LIMIT
    separable = strictly_separable(rows.X, (sign > 0).astype(np.intp), rows.offset > 0) if small else None
    if separable is False:
        return "No separating plane exists: a convex combination of the signed rows is zero."
    if separable is True:
        return f"A separating plane exists, but {epochs} epochs did not find one."
    return f"No separating plane was found in {epochs} epochs."
