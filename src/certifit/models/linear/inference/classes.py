"""Standard errors of models with one score for each class.

With scores f_i = Wx̃_i, x̃ = (1, x), and weights s_i that count repetitions, the expected information of all coefficients is
Σ s_i H_i ⊗ x̃_i x̃_iᵀ with H_i the expected curvature of the loss in the scores of row i: diag π − ππᵀ of the softmax. Where a
common shift of the scores changes nothing, it is inverted on scores that sum to zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.models.linear.inference.inference import Inference
from certifit.optimization.objective.problem import Problem

__all__ = ["categorical_inference", "names_by_class"]

FLAT = 1e-12  # of the largest curvature: what rounding leaves of none


def categorical_inference(problem: Problem, coef: Array, intercept: Array, weight: Array) -> Inference:
    """Estimates, class after class, each with its intercept first, and their covariance."""
    state = problem.at(coef, intercept, exact=True)
    f, loss, y = state.parts[0].f, problem.loss, problem.y
    K = problem.n_scores
    D = problem.shape[1] + problem.fit_intercept
    information = float(weight.sum()) * state.hessian().reshape(K, D, K, D)
    finite = bool(np.isfinite(information).all())
    covariance, rank = _inverse(information) if finite else (np.full((K * D, K * D), np.nan), K * D)
    estimate = problem.join(coef, intercept)
    estimate = problem.centered(estimate) if loss.shift_invariant else estimate
    n = float(weight.sum())
    null = loss.value(y, np.tile(problem.constant, (f.shape[0], 1)))
    shares = y.ndim == 2 and bool(((y > 0) & (y < 1)).any())  # they have a quasi-likelihood only
    notes = ["Scores of the classes sum to zero."] if loss.shift_invariant else []
    if not finite:
        notes.append("The scores are at the edge of what is possible, where there are no standard errors.")
    if rank < K * D - (D if loss.shift_invariant else 0):
        notes.append("The likelihood is flat in some directions; errors are those of the others.")
    return Inference(
        loss=loss,
        estimate=np.asarray(estimate).ravel(),
        covariance=covariance,
        fit_intercept=False,  # the intercepts are among the estimates, one for each class
        kind="z",
        covariance_kind="expected information",
        n=n,
        rank=rank,
        dof=n - rank,
        dispersion=1.0,
        deviance=2.0 * float(weight @ loss.value(y, f)),
        null_deviance=2.0 * float(weight @ null),
        log_likelihood=np.nan if shares else -float(weight @ loss.value(y, f)),
        note=" ".join(notes),
    )


def _inverse(information: Array) -> tuple[Array, int]:
    """The pseudo-inverse and the rank, in units of the columns that are the same for all classes: sums over them stay sums."""
    K, D = information.shape[:2]
    size = np.sqrt(np.einsum("kdkd->d", information))
    unit = np.tile(np.where(size > 0, size, 1.0), K)
    values, vectors = np.linalg.eigh(information.reshape(K * D, K * D) / np.outer(unit, unit))
    kept = values > FLAT * float(values.max(initial=0.0))
    half = vectors[:, kept] / np.sqrt(values[kept]) / unit[:, None]
    return half @ half.T, int(kept.sum())


def names_by_class(model: Any) -> list[str]:
    """Names of the rows of such a table."""
    d = model.coef_.shape[1]
    columns = [str(name) for name in getattr(model, "feature_names_in_", [f"x{j}" for j in range(d)])]
    columns = ["intercept", *columns] if model.fit_intercept else columns
    return [f"{k}: {name}" for k in model.classes_ for name in columns]
