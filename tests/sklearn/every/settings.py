"""Random settings of every drop-in, for comparisons with the class it stands in for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["SAME_OPTIMUM", "Draw"]

RNG_ROWS, COLUMNS = 90, 6


@dataclass(frozen=True)
class Draw:
    """A class of scikit-learn, the values its parameters are drawn from, and its target."""

    name: str
    target: str
    values: Mapping[str, Sequence[Any]]
    tight: Mapping[str, Any] = field(default_factory=dict)
    """What makes scikit-learn's own solver exact enough to compare with."""

    def settings(self, count: int) -> Iterator[dict[str, Any]]:
        """Random settings, always the same ones."""
        rng = np.random.default_rng(len(self.name))
        for _ in range(count):
            drawn = {name: values[int(rng.integers(len(values)))] for name, values in self.values.items()}
            yield {**drawn, **self.tight}

    def data(self, seed: int) -> tuple[Any, Any, Any]:
        """Rows, target and weights (or None)."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(RNG_ROWS, COLUMNS)) * rng.uniform(0.3, 3.0, COLUMNS)
        score = X @ rng.normal(size=COLUMNS) + 0.5 * rng.standard_t(3, RNG_ROWS) + 1.0
        y = {
            "real": score,
            "pair": np.column_stack([score, X[:, 0] - 0.5 * score + 0.2 * rng.normal(size=RNG_ROWS)]),
            "positive": np.abs(score) + 0.05,
            "two": np.where(score > 0.5, "yes", "no"),
            "three": np.digitize(score, [-0.5, 2.0]),
        }[self.target]
        return X, y, rng.uniform(0.2, 2.0, RNG_ROWS) if seed % 2 else None


ALPHA = (1e-3, 1e-2, 0.1, 1.0, 10.0)
BOTH = (True, False)
CS = (1e-2, 0.1, 1.0, 10.0)
EXACT = {"tol": 1e-10, "max_iter": 200_000}

SAME_OPTIMUM = (
    Draw("linear_model.LinearRegression", "real", {"fit_intercept": BOTH, "positive": BOTH}),
    Draw(
        "linear_model.Ridge", "real",
        {"alpha": ALPHA, "fit_intercept": BOTH, "solver": ("auto", "svd", "cholesky", "lsqr", "saga")}, EXACT,
    ),
    Draw("linear_model.RidgeCV", "real", {"alphas": ((0.1, 1.0, 10.0), (1e-3, 5.0)), "cv": (None, 3), "fit_intercept": BOTH}),
    Draw(
        "linear_model.Lasso", "real",
        {"alpha": ALPHA, "fit_intercept": BOTH, "positive": BOTH, "selection": ("cyclic", "random")}, EXACT,
    ),
    Draw("linear_model.ElasticNet", "real", {"alpha": ALPHA, "l1_ratio": (0.1, 0.5, 0.9), "fit_intercept": BOTH}, EXACT),
    Draw("linear_model.LassoCV", "real", {"alphas": (10, 25), "fit_intercept": BOTH, "cv": (3, 5, None)}, EXACT),
    Draw(
        "linear_model.ElasticNetCV", "real",
        {"alphas": (10, 20), "l1_ratio": (0.3, [0.2, 0.8]), "fit_intercept": BOTH, "cv": (3, None)}, EXACT,
    ),
    Draw("linear_model.MultiTaskLasso", "pair", {"alpha": ALPHA, "fit_intercept": BOTH}, EXACT),
    Draw(
        "linear_model.MultiTaskElasticNet", "pair",
        {"alpha": ALPHA, "l1_ratio": (0.1, 0.5, 0.9), "fit_intercept": BOTH}, EXACT,
    ),
    Draw("linear_model.MultiTaskLassoCV", "pair", {"alphas": (10, 25), "fit_intercept": BOTH, "cv": (3, None)}, EXACT),
    Draw(
        "linear_model.MultiTaskElasticNetCV", "pair",
        {"alphas": (10,), "l1_ratio": (0.3, [0.2, 0.8]), "fit_intercept": BOTH, "cv": (3, None)}, EXACT,
    ),
    Draw(
        "linear_model.HuberRegressor", "real",
        {"alpha": ALPHA, "epsilon": (1.1, 1.35, 2.0), "fit_intercept": BOTH}, {"tol": 1e-9, "max_iter": 20_000},
    ),
    Draw("linear_model.QuantileRegressor", "real", {"alpha": (1e-3, 1e-2, 0.1), "quantile": (0.1, 0.35, 0.8)}),
    Draw("linear_model.PoissonRegressor", "positive", {"alpha": ALPHA, "fit_intercept": BOTH}, EXACT),
    Draw("linear_model.GammaRegressor", "positive", {"alpha": ALPHA, "fit_intercept": BOTH}, EXACT),
    Draw(
        "linear_model.LogisticRegression", "two",
        {
            "C": CS, "class_weight": (None, "balanced", {"yes": 3.0}), "solver": ("lbfgs", "liblinear"),
            "intercept_scaling": (1.0, 5.0),
        },
        EXACT,
    ),
    Draw(
        "linear_model.LogisticRegression", "three",
        {"C": CS, "l1_ratio": (0.0, 0.5, 1.0), "class_weight": (None, "balanced"), "solver": ("saga",)}, EXACT,
    ),
    *(
        Draw(
            "linear_model.LogisticRegressionCV", target,
            {
                "Cs": ([0.01, 1.0], [0.1, 3.0, 30.0]), "l1_ratios": ((0.0,),), "cv": (3, 4), "fit_intercept": BOTH,
                "class_weight": (None, "balanced"), "scoring": ("neg_log_loss", "neg_brier_score"), "refit": BOTH,
            },
            {"tol": 1e-10, "max_iter": 20_000, "use_legacy_attributes": False},
        )
        for target in ("two", "three")
    ),
    Draw(
        "svm.LinearSVC", "two",
        {"C": CS, "loss": ("hinge", "squared_hinge"), "fit_intercept": BOTH, "class_weight": (None, "balanced")}, EXACT,
    ),
    Draw(
        "svm.LinearSVC", "three",
        {"C": CS[:3], "penalty": ("l1", "l2"), "class_weight": (None, "balanced"), "intercept_scaling": (1.0, 3.0)}, EXACT,
    ),
    Draw("svm.LinearSVC", "three", {"C": CS[:3], "multi_class": ("crammer_singer",), "fit_intercept": BOTH}, EXACT),
    Draw(
        "svm.LinearSVR", "real",
        {
            "C": CS[:3], "epsilon": (0.0, 0.2), "loss": ("epsilon_insensitive", "squared_epsilon_insensitive"),
            "fit_intercept": BOTH,
        },
        EXACT,
    ),
)  # fmt: skip
