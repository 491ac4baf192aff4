"""Metric scaling: points whose distances are as near as possible to given ones.

    minimize over y₁ … y_n    Σ s_i s_j (d_ij − ‖y_i − y_j‖)² / Σ s_i s_j d_ij²        the normalized stress, between 0 and 1

Every step minimizes a quadratic function that lies above the stress and touches it at the last points (SMACOF, de Leeuw 1977):

    Γ(Y)_i = (1/Σs) Σ_j s_j (d_ij / ‖y_i − y_j‖) (y_i − y_j)

so the stress never rises. Steps of double length, 2Γ(Y) − Y, end where the quadratic is as high as at Y: they do not raise it
either, and take half as many steps (de Leeuw and Heiser 1980).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import like_input
from certifit.models.cluster.around_rows import METRIC
from certifit.models.embedding.classical_mds import ClassicalMDS
from certifit.models.embedding.of_distances import OfDistances
from certifit.parameters import Choice, Either, Fitted, Given, Integer, Parameter
from certifit.parameters.common import MAX_ITER, N_JOBS, RANDOM_STATE, TOL
from certifit.representation.design.rows import over_rows
from certifit.threads import n_threads

__all__ = ["MetricMDS", "Stress"]

NEAR = 0.1  # of the stress: a step that lowers it by no more is near enough to a minimum for long ones
NUDGE = 1e-2  # of the largest distance: what leaves a plane that steps cannot leave by themselves


class MetricMDS(OfDistances):
    """Metric multidimensional scaling by majorization of the stress.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MetricMDS
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = MetricMDS().fit(X)
    >>> bool((np.diff(model.history_) <= 0).all())
    True
    >>> from scipy.spatial.distance import pdist
    >>> D, drawn = pdist(X), pdist(model.embedding_)
    >>> bool(np.isclose(model.stress_, ((D - drawn) ** 2).sum() / (D**2).sum()))
    True
    """

    n_components: int = Parameter(2, Integer(1), "Columns of the map.")
    metric: Any = METRIC
    init: Any = Parameter(
        "classical",
        Either(
            Choice("classical", "random"), Given("array of shape (n_samples, n_components)", wrong=("nearest", [[0.0]]))
        ),
        "First points: classical scaling, drawn at random, or given.",
    )
    n_init: int = Parameter(1, Integer(1), "Starts, of which the best is kept; the second and later ones are drawn.")
    max_iter: int = MAX_ITER.but(1000, "Most steps of a start.")
    tol: float = TOL.but(
        1e-6,
        "A start ends when a step lowers the stress by less than this share of it, or the stress is below its square.",
    )
    random_state: Any = RANDOM_STATE
    n_jobs: int | None = N_JOBS

    stress_: float = Fitted("float", "Normalized stress: Σ s_i s_j (d_ij − ‖y_i − y_j‖)² / Σ s_i s_j d_ij².")
    history_: Array = Fitted("array of shape (n_iter_ + 1,)", "The stress at the start and after each step.")
    n_iter_: int = Fitted("int", "Steps of the start that was kept.")

    def _find(self, X: Array, weight: Array, started: float) -> Certificate:
        given = self._start_given(X.shape[0])
        kept, weight = X[self._kept], weight[self._kept]
        D, self._exponent = self._to_kept(kept)
        stress = self._stress_of(D, weight)
        rng = check_random_state(self.random_state)
        best: _Descent | None = None
        for start in range(self.n_init):
            found = _descend(stress, self._first(D, weight, given, rng, start), self.tol, self.max_iter)
            if best is None or found.history[-1] < best.history[-1]:
                best = found
        assert best is not None
        self._points, self._share = best.points, stress.share
        self._keep_fit(stress)
        self.embedding_ = like_input(X, self._points_of(X))
        self.history_ = np.array(best.history)
        self.stress_, self.n_iter_ = float(best.history[-1]), len(best.history) - 1
        words = (
            "The last step changed the stress by less than tol, or it is below tol²"
            if best.settled
            else f"Stopped after {self.max_iter} steps"
        )
        note = f"No step raised the stress. {words}; other starts may end lower, and no bound is known."
        seconds = time.perf_counter() - started
        return Certificate.absent(self.stress_, note, iterations=self.n_iter_, seconds=seconds)

    def _stress_of(self, D: Array, weight: Array) -> Stress:
        """What is minimized."""
        return Stress(D, weight, n_threads(self.n_jobs))

    def _disparities(self, D: Array) -> Array:
        """The distances that further points should have."""
        return D

    def _keep_fit(self, stress: Stress) -> None:
        """What `_disparities` needs."""

    def _start_given(self, n: int) -> Array | None:
        """The points of `init`, if it gives some."""
        if isinstance(self.init, str):
            return None
        given, shape = np.asarray(self.init, dtype=np.float64), (n, self.n_components)
        if given.shape != shape or not np.isfinite(given).all():
            raise ValueError(
                f"init must hold finite numbers of shape {shape}, a point for each row; got shape {given.shape}."
            )
        return given

    def _first(self, D: Array, weight: Array, given: Array | None, rng: np.random.RandomState, start: int) -> Array:
        """First points of a start."""
        if given is not None and start == 0:
            return np.ldexp(given[self._kept], -self._exponent)
        if start > 0 or (isinstance(self.init, str) and self.init == "random"):
            return np.asarray(rng.uniform(size=(D.shape[0], self.n_components)) * float(D.max(initial=0.0)))
        model = ClassicalMDS(self.n_components, metric="precomputed", n_jobs=self.n_jobs)
        model.judged_elsewhere = True
        points = model.fit(D, sample_weight=weight).embedding_
        flat = ~points.any(axis=0)
        if flat.any():
            points[:, flat] = rng.standard_normal((D.shape[0], int(flat.sum()))) * NUDGE * float(D.max(initial=0.0))
        return points

    def _points_of(self, X: Array) -> Array:
        """Where the stress of a row with those of the fit is least; a row equal to one of these is at its point."""
        D, exponent = self._to_kept(X)
        D = np.ldexp(D, exponent - self._exponent)
        nearest = D.argmin(axis=1)
        points = self._points[nearest]
        moving = np.flatnonzero(D[np.arange(D.shape[0]), nearest] > 0)
        D = self._disparities(D)
        mean = self._share @ self._points
        for _ in range(self.max_iter if moving.size else 0):
            drawn = cdist(points[moving], self._points)
            ratio = np.divide(D[moving], drawn, out=np.zeros_like(drawn), where=drawn > 0) * self._share
            further = mean + ratio.sum(axis=1)[:, None] * points[moving] - ratio @ self._points
            change = np.abs(further - points[moving]).max(axis=1)
            points[moving] = further
            moving = moving[change > self.tol * float(drawn.max(initial=0.0))]
            if not moving.size:
                break
        return np.ldexp(points, self._exponent)


class Stress:
    """The stress of points, and the step Γ."""

    def __init__(self, D: Array, weight: Array, threads: int) -> None:
        self.D, self.share, self.threads = D, weight / weight.sum(), threads
        self.total = float(self.share @ (D * D) @ self.share) or 1.0

    def target(self, Y: Array) -> Callable[[slice], Array]:
        """What the distances of Y should be, for blocks of rows."""
        return lambda rows: self.D[rows]

    def at(self, Y: Array) -> tuple[float, Array]:
        """Normalized stress at Y, and Γ(Y)."""
        step, target = np.empty_like(Y), self.target(Y)

        def block(rows: slice) -> float:
            drawn = cdist(Y[rows], Y)
            wanted = target(rows)
            left = drawn - wanted
            left *= left
            found = float(self.share[rows] @ (left @ self.share))
            np.divide(wanted, drawn, out=left, where=drawn > 0)
            left[drawn == 0] = 0.0  # equal points pull in no direction
            left *= self.share
            step[rows] = left.sum(axis=1)[:, None] * Y[rows] - left @ Y
            return found

        return sum(over_rows(block, Y.shape[0], 4 * Y.shape[0], self.threads)) / self.total, step


class _Descent:
    """Points, the stress on the way to them, and whether the way ended by itself."""

    def __init__(self, points: Array, history: list[float], settled: bool) -> None:
        self.points, self.history, self.settled = points, history, settled


def _descend(stress: Stress, Y: Array, tol: float, max_iter: int) -> _Descent:
    """Steps until the stress stays where it is."""
    value, step = stress.at(Y)
    history = [value]
    for _ in range(max_iter):
        # The first steps have the length of the quadratic's minimum: the start may have another scale than the distances, and
        # long steps far from a minimum tend to end in another one.
        near = len(history) > 1 and history[-2] - value <= NEAR * value
        further = 2.0 * step - Y if near else step
        lower, after = stress.at(further)
        if lower > value:  # rounding, at the bottom
            return _Descent(Y, history, True)
        Y, step = further, after
        history.append(lower)
        if value - lower <= tol * value or lower <= tol * tol:
            # A plain step ends the swings of double ones about the bottom.
            final, _ = stress.at(step)
            if final <= lower:
                Y = step
                history.append(final)
            return _Descent(Y, history, True)
        value = lower
    return _Descent(Y, history, False)
