"""Small fits whose numbers cancel, and what exact arithmetic says of their certificates.

Columns nearly equal, far from zero, of sizes far apart, weights of any size: every built-in loss with every penalty.
"""

from __future__ import annotations

import numpy as np
from tests.fuzz.fits import HEAD
from tests.fuzz.mutation import chosen

from certifit.evaluation.losses import LOSSES
from certifit.evaluation.penalties import PENALTIES

__all__ = ["code"]

ROWS = [
    "X *= 1e10",
    "X *= 1e-10",
    "X[:, -1] = X[:, 0] * (1 + 10.0 ** rng.uniform(-12, -5) * rng.normal(size=n))",
    "X += 1e6 * np.abs(X).max()",
    "X += 1e9 * np.abs(X).max() * np.sign(rng.normal(size=X.shape[1]))",
    "X *= 10.0 ** rng.uniform(-10, 10, size=X.shape[1])",
    "X[0] *= 1e6",
    "X[:, 0] *= 1e12",
    "X = np.round(X)",
]
VALUES = ["y *= 1e6", "y += 1e6", "y -= 1e6", "y = np.round(y)"]
COUNTS = ["y += 1e6", "y += 1e9", "y *= 1e6"]
WEIGHTS = ["w = rng.random(n)", "w = 10.0 ** rng.uniform(-10, 10, size=n)"]
TARGETS = {"poisson": "rng.poisson(2.0, size=n)", "gamma": "np.exp(rng.normal(size=n))"}
TARGETS["relative"] = TARGETS["gamma"]


def code(rng: np.random.Generator) -> str:
    """A case: a few lines that make data, fit it and prove the certificate."""
    n, d = chosen(rng, [5, 8, 12, 20]), chosen(rng, [1, 2, 2, 3])
    lines = [f"{HEAD}, check_proof", f"rng = np.random.default_rng({int(rng.integers(2**31))})", f"n = {n}"]
    lines.append(f"X = rng.normal(size=(n, {d}))")
    rows = [chosen(rng, ROWS) for _ in range(chosen(rng, [1, 1, 2]))]
    # Far from zero once: what is left of columns in their last digits, rounding may have made, and no proof speaks of it.
    lines += rows[: 1 if all("np.abs(X).max()" in line for line in rows) else 2]
    lines += ["X = X.astype(np.float32)"] if rng.random() < 0.15 else []
    loss = chosen(rng, [name for name in LOSSES if name != "perceptron"])  # whose optimum is no fit
    if LOSSES[loss].task == "binary":
        lines.append("y = 1.0 * (np.arange(n) % 2 if rng.random() < 0.3 else rng.random(n) < 0.5)")
    else:
        lines.append(f"y = 1.0 * {TARGETS.get(loss, 'rng.normal(size=n)')}")
        values = COUNTS if loss == "poisson" else [] if loss in TARGETS else VALUES
        lines += [chosen(rng, values)] if values and rng.random() < 0.5 else []
    lines.append(chosen(rng, WEIGHTS) if rng.random() < 0.4 else "w = None")
    options = f"penalty={chosen(rng, sorted(PENALTIES))!r}, alpha={chosen(rng, ['1e-8', '1e-3', '0.1', '1.0'])}"
    lines.append(f"model = cf.LinearModel({loss!r}, {options}, fit_intercept={chosen(rng, ['True', 'True', 'False'])})")
    lines.append(f"model.fit({'sp.csr_array(X)' if rng.random() < 0.2 else 'X'}, y, sample_weight=w)")
    lines.append("check_proof(model, X, y, w)")
    return "\n".join(lines) + "\n"
