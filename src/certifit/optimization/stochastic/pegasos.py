"""Pegasos: stochastic subgradient steps for the linear support vector machine.

    minimize over w, b    Σ p_i max(0, 1 − s_i (x_i·w + b)) + (λ/2)‖w‖²

Step t draws row i with probability p_i and sets w ← (1 − ηλ)w + η s_i x_i [margin < 1] with η = 1/(λt). Rows are drawn
by weight, so a weight of 2 and a row given twice are the same in distribution. Shalev-Shwartz, Singer and Srebro (2007),
Pegasos: primal estimated sub-gradient solver for SVM. The steps are in native/dual/pegasos.hpp.

The iterate is Σ s_i c_i x_i/(λT) with c_i the number of times row i was added, so c_i/(T p_i), cut to [0, 1] and
balanced between the classes, is a dual point: the run proves its own gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import certifit._native.dual as native
from certifit._types import Array
from certifit.optimization.dual.hinge import best_intercept, row_matrix
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.stochastic.bounds import balanced
from certifit.progress import Progress
from certifit.representation.design.products import matvec, rmatvec

__all__ = ["Pegasos"]


@dataclass
class _Run:
    """Sums that the steps update in place."""

    V: Array
    U: Array
    count: Array
    early: Array
    position: tuple[float, float, float]

    @staticmethod
    def start(n: int, d: int, intercept: float) -> _Run:
        return _Run(np.zeros(d), np.zeros(d), np.zeros(n), np.zeros(n), (0.0, 0.0, intercept))

    def point(self, alpha: float, average: bool) -> tuple[Array, Array]:
        """w and the number of additions behind it, each for the last iterate or the mean of all."""
        steps, harmonic, _ = self.position
        if not average:
            return self.V / (alpha * steps), self.count / steps
        return (harmonic * self.V - self.U) / (alpha * steps), (harmonic * self.count - self.early) / steps


@dataclass(frozen=True)
class Pegasos:
    """Steps until the gap is below tol, or for max_iter · n steps.

    Parameters
    ----------
    seed : int, default=0
        Of the draws.
    average : bool, default=False
        Return the mean of all iterates instead of the last.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LinearModel
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0.0, 0.0, 1.0, 1.0])
    >>> model = LinearModel("hinge", alpha=0.1, solver=Pegasos(average=True), tol=0.05, max_iter=4096).fit(X, y)
    >>> model.solver_, model.certificate_.certified
    ('pegasos', True)
    """

    seed: int = 0
    average: bool = False

    def __call__(
        self, problem: Problem, start: tuple[Array, float], tol: float, max_iter: int, clock: Progress
    ) -> Solution:
        """The best point and the best bound that were seen; the gap is looked at after 1, 2, 4, … passes."""
        (n, d), p, alpha = problem.shape, problem.p, _strength(problem)
        terms = problem.loss.hinge_terms(problem.y)
        assert terms is not None
        rows, sign = row_matrix(problem.X), 2.0 * problem.y - 1.0
        draw, share = np.random.default_rng(self.seed), np.cumsum(p) / float(np.sum(p))
        run = _Run.start(n, d, problem.constant)
        level = problem.risk(np.full(n, problem.constant))  # no step is better than a bad one
        theta = np.zeros(n)
        best = Solution(np.zeros(d), problem.constant, 0, "pegasos", -np.inf, level, dual=theta)
        check, done = 1, 0
        while done < max_iter:
            for _ in range(min(check, max_iter) - done):
                drawn = np.searchsorted(share, draw.random(n), side="right").clip(max=n - 1)
                run.position = native.pegasos(
                    rows, sign, drawn.astype(np.int64), alpha, problem.fit_intercept,
                    run.V, run.U, run.count, run.early, run.position,
                )  # fmt: skip
            done = min(check, max_iter)
            check *= 2
            w, added = run.point(alpha, self.average)
            f = matvec(problem.X, w, exact=True)
            b = best_intercept(terms, p, f) if problem.fit_intercept else 0.0
            objective = problem.risk(f + b) + 0.5 * alpha * float(w @ w)
            slopes = -sign * np.clip(added / p, 0.0, 1.0)
            slopes = balanced(slopes, p) if problem.fit_intercept else slopes
            pull = rmatvec(problem.X, p * slopes, exact=True)
            bound = -float(p @ problem.loss.conjugate(problem.y, slopes)) - 0.5 * float(pull @ pull) / alpha
            if bound > best.bound:
                theta = slopes
            if objective >= best.objective:
                w, b, objective = best.coef, best.intercept, best.objective
            best = Solution(w, b, done, "pegasos", max(bound, best.bound), objective, dual=theta)
            clock.update(done, max_iter, (best.objective - best.bound) / max(problem.scale, 1e-300))
            if best.objective - best.bound <= tol:
                break
        return best


def _strength(problem: Problem) -> float:
    """λ; the steps know one for all columns."""
    l2 = problem.regularizer.smooth()
    assert l2 is not None
    alpha = float(l2.max(initial=0.0)) or 1.0
    if (l2 != alpha).any():
        raise ValueError(
            "solver='pegasos' cannot take X of such extreme magnitude: scale its columns, or use solver='auto'."
        )
    return alpha
