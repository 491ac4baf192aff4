"""The stacked blend: a weighted average of the other entrants, the weights chosen on predictions of rows left out.

    classes    min over the simplex   −mean log Σ_k w_k p_k(y_i | x_i)
    numbers    min over the simplex   mean ½ (y_i − Σ_k w_k f_k(x_i))²

Both are convex in the few weights and solved to a proven gap.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.contest.entrants import Conditions, Entrant
from certifit.contest.record.model import Blend, Chain
from certifit.contest.standing import Standing
from certifit.contest.table.encoded import Training
from certifit.contest.verdict.scoring import Scoring
from certifit.optimization.programs.simplex import mixture_weights, simplex_gap, simplex_quadratic

__all__ = ["BLEND", "BlendWeights", "blend", "blend_weights"]

LEAST_PROBABILITY = 1e-9  # one sure and wrong member must not rule the average
LEAST_WEIGHT = 0.02  # members below this are left out of the shipped blend
TOL = 1e-6


BLEND = Entrant(
    "blend",
    "Blend",
    "A weighted average of the other entrants, the weights chosen on rows their models had not seen.",
    lambda conditions, data: [],
    richness=5,
    family="blend",
)


@dataclass(frozen=True)
class BlendWeights:
    """Weights of the members that count, their proof, and the blended predictions of the rows left out."""

    weights: dict[str, float]
    certificate: Certificate
    predicted: Array


def blend_weights(predictions: Mapping[str, Array], y: Array, n_classes: int) -> BlendWeights:
    """The best weights for predictions of the same rows: probabilities (n, K) of codes y, or values (n,).

    Members that hardly count are left out, and those that are left are weighed anew, so that the proof is of the weights
    that are used.
    """
    started = time.perf_counter()
    names, steps = list(predictions), 0
    while True:
        w, proof = _weigh([predictions[name] for name in names], y, n_classes)
        steps += proof["iterations"]
        kept = [name for name, w_k in zip(names, w, strict=True) if w_k >= LEAST_WEIGHT]
        if len(kept) == len(names):
            break
        names = kept
    certificate = Certificate(
        "duality gap",
        **proof | {"iterations": steps},
        tol=TOL,
        seconds=time.perf_counter() - started,
        note="Of the weights of the blend, given its members.",
        claim="best weights of these members",
    )
    weights = {name: float(w_k) for name, w_k in zip(names, w, strict=True)}
    predicted = np.asarray(sum(w_k * predictions[name] for name, w_k in weights.items()))
    return BlendWeights(weights, certificate, predicted)


def _weigh(members: list[Array], y: Array, n_classes: int) -> tuple[Array, dict[str, Any]]:
    """Weights of these members, and what proves them."""
    n = y.shape[0]
    if n_classes:
        P = np.column_stack([p[np.arange(n), y] for p in members]).astype(np.float64)
        P = np.maximum(P, LEAST_PROBABILITY)
        w, gap, steps = mixture_weights(P, np.full(n, 1.0 / n))
        objective = float(-np.mean(np.log(P @ w)))
        share = np.bincount(y, minlength=n_classes) / n
        scale = float(-(share[share > 0] @ np.log(share[share > 0])))
    else:
        F = np.column_stack(members).astype(np.float64) - y[:, None]
        # Σw = 1, so the residual of the blend is the blend of the residuals.
        unit = float(np.abs(F).max()) or 1.0
        H = (F / unit).T @ (F / unit) / n
        w = simplex_quadratic(H, np.zeros(len(members)))
        gap, steps = simplex_gap(H @ w, w) * unit**2, 1
        objective = 0.5 * float(np.mean((F @ w) ** 2))
        scale = 0.5 * float(np.var(y))
    return w / w.sum(), {"objective": objective, "bound": objective - gap, "scale": scale, "iterations": steps}


def blend(standings: list[Standing], training: Training, conditions: Conditions, scoring: Scoring) -> Standing | None:
    """The stacked blend of the fitted entrants that were judged on all folds."""
    members = {}
    for standing in standings:
        if standing.fitted and standing.found and standing.found.best.folds and not standing.entrant.baseline:
            rows, predicted = standing.found.left_out()
            members[standing.name] = (standing, rows, predicted)
    most = max((rows.shape[0] for _, rows, _ in members.values()), default=0)
    members = {name: m for name, m in members.items() if m[1].shape[0] == most}
    if len(members) < 2:
        return None
    started = time.perf_counter()
    rows = next(iter(members.values()))[1]
    y = training.y[rows]
    found = blend_weights({name: m[2] for name, m in members.items()}, y, len(conditions.classes))
    if len(found.weights) < 2:
        label = members[next(iter(found.weights))][0].entrant.label
        return Standing(BLEND, "not applicable", f"no average of the entrants is better than {label} alone")
    chosen = {name: members[name][0] for name in found.weights}
    chains = {name: s.model for name, s in chosen.items() if isinstance(s.model, Chain)}
    shown = {f"weight of {chosen[name].entrant.label}": weight for name, weight in found.weights.items()}
    standing = Standing(BLEND, "fitted", model=Blend(chains, found.weights, found.certificate), setting=shown)
    standing.search_seconds = time.perf_counter() - started
    standing.fit_seconds = sum(s.fit_seconds for s in chosen.values())
    standing.memory_mib = max(s.memory_mib or 0.0 for s in chosen.values())
    standing.inner_score = scoring.score(y, found.predicted)
    standing.inner_folds = max(s.inner_folds for s in chosen.values())
    return standing
