"""Nested cross-validation: what choosing is worth, on rows that had no say in the choice.

The best of many scores is too good: it was chosen for being high. So every outer part makes its own choice from its own training
rows, and is judged on rows that neither the fits nor the choice have seen.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from certifit.evaluation.resampling.cross_validation import CrossValidation, Score, cross_validate
from certifit.names import stored

__all__ = ["NestedValidation", "nested_cv"]


@stored("NestedValidation")
@dataclass(frozen=True, eq=False)
class NestedValidation:
    """What `nested_cv` found.

    Parameters
    ----------
    outer : CrossValidation
        Scores on rows that had no say.
    choices : tuple of dict or None
        `best_params_` of each outer part; None where it failed.
    inner_scores : tuple of float
        `best_score_` of each: what the search believed.
    """

    outer: CrossValidation
    choices: tuple[dict[str, Any] | None, ...]
    inner_scores: tuple[float, ...]

    def __getitem__(self, metric: str) -> Score:
        return self.outer[metric]

    @property
    def agreement(self) -> float:
        """The share of the parts that made the most frequent choice: one if the choice does not depend on the sample."""
        made = Counter(repr(sorted(choice.items())) for choice in self.choices if choice is not None)
        return max(made.values()) / sum(made.values())

    def __str__(self) -> str:
        return f"{self.outer}\n  {100 * self.agreement:.0f} % of the parts chose the same setting"


def nested_cv(search: Any, X: Any, y: Any, metrics: Any = "auto", cv: Any = 5, **options: Any) -> NestedValidation:
    """Judge a search, its choice included, on rows it has not seen.

    Parameters
    ----------
    search : estimator with `best_params_` and `best_score_` after its fit
        `Search`, or one of scikit-learn's.
    X, y, metrics, cv
        As in `cross_validate`; the inner folds are the search's own.
    **options
        Of `cross_validate`.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Ridge, Search, nested_cv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 30))
    >>> y = X[:, 0] + rng.normal(size=60)
    >>> found = nested_cv(Search(Ridge(), {"alpha": [1e-3, 0.1, 1.0]}), X, y, "mse")
    >>> len(found.choices), found["mse"].low < found["mse"].value < found["mse"].high
    (5, True)
    """
    for method in ("fit", "predict", "get_params"):
        if not hasattr(search, method):
            raise TypeError(f"search must be an estimator that chooses, such as Search(Ridge(), …); got {search!r}.")
    if "keep_models" in options:
        raise TypeError("nested_cv keeps the choices, not the models: leave out keep_models.")
    outer = cross_validate(search, X, y, metrics, cv, keep_models=True, **options)
    models = outer.models
    if not models or not all(hasattr(model, "best_params_") for model in models if model is not None):
        raise TypeError(f"{type(search).__name__} leaves no best_params_: give a search, or use cross_validate.")
    choices = tuple(None if model is None else dict(model.best_params_) for model in models)
    believed = tuple(float("nan") if model is None else float(model.best_score_) for model in models)
    return NestedValidation(outer, choices, believed)
