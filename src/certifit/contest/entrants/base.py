"""What an entrant is: a name, an encoding of the table, and the settings it wants to try.

A setting is a value for each hyperparameter of a model. An entrant gives *paths*: lists of settings that one fit per fold can
try together, such as the alphas of a regularization path, each fit started from the last, or the stages of a boosted model. A
method without such a shortcut has paths of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from certifit._types import Array, Matrix

__all__ = ["Conditions", "Encoded", "Entrant", "NotApplicable", "Path", "Predict", "predictor"]

Predict = Callable[[Matrix], Array]
"""From encoded rows to class probabilities (n, K), or to values (n,)."""

CLASSIFICATION = frozenset({"binary", "multiclass"})
ANY = frozenset({"binary", "multiclass", "regression"})


class NotApplicable(Exception):  # noqa: N818 - a reason, not a mistake
    """The entrant cannot take part on this table; the message says why."""


@dataclass(frozen=True)
class Conditions:
    """The conditions of a contest: what every entrant may know before it sees a row."""

    task: str
    metric: str
    classes: tuple[str, ...] = ()
    seed: int = 0
    jobs: int = 1

    @property
    def classifies(self) -> bool:
        """Whether classes are predicted."""
        return self.task != "regression"


@dataclass(frozen=True)
class Encoded:
    """Rows as numbers."""

    X: Matrix
    y: Array
    names: tuple[str, ...] = ()
    categorical: tuple[int, ...] = ()
    """Columns whose numbers are codes of categories."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])


@dataclass(frozen=True)
class Path:
    """Settings tried together, and how to build the model of one of them."""

    settings: tuple[Mapping[str, Any], ...]
    build: Callable[[Mapping[str, Any], Encoded], Any]
    """An unfitted estimator of one setting."""
    predictors: Callable[[Sequence[Mapping[str, Any]], Encoded], Iterator[Predict]] | None = None
    """One fit for all settings: their predictors in turn. Without it, each setting is fitted by itself."""

    def fitted(self, data: Encoded, n_classes: int) -> Iterator[Predict]:
        """A predictor for each setting, in turn."""
        if self.predictors is not None:
            yield from self.predictors(self.settings, data)
            return
        for setting in self.settings:
            yield predictor(self.build(setting, data).fit(data.X, data.y), n_classes)

    def only(self, keep: Sequence[int]) -> Path:
        """The same path with some of its settings."""
        return replace(self, settings=tuple(self.settings[j] for j in keep))


@dataclass(frozen=True)
class Entrant:
    """A method that takes part in the contest."""

    name: str
    label: str
    description: str
    paths: Callable[[Conditions, Encoded], list[Path]]
    tasks: frozenset[str] = ANY
    encoding: str = "matrix"
    """"matrix": standardized numbers, categories one-hot, gaps filled; "codes": raw numbers, category codes, gaps kept;
    "none": no columns at all."""
    weight: float = 1.0
    """Share of the time budget."""
    baseline: bool = False
    expand: Callable[[Conditions, Encoded], list[Any]] = field(default=lambda conditions, data: [])
    """Transformers between the encoder and the model."""
    richness: int = 1
    """How much its models can express: 0 a constant, 1 a weighted sum or one tree, 2 products of columns, 3 and more ensembles.
    The ledger of a winner asks the richest entrant what a richer model would gain."""
    readable: bool = False
    """Whether a page of text explains a fitted model: such an entrant is named where it cannot be told apart from the winner."""
    family: str = "guest"
    """Filled in by the registry."""


def predictor(model: Any, n_classes: int) -> Predict:
    """The prediction function of a fitted estimator: probabilities of the classes 0 … n_classes − 1, or values."""
    if not hasattr(model, "predict_proba"):
        return lambda X: np.asarray(model.predict(X), dtype=np.float64)

    def probabilities(X: Matrix) -> Array:
        p = np.asarray(model.predict_proba(X), dtype=np.float64)
        if p.shape[1] == n_classes:
            return p
        # A training part without a rare class knows nothing of it.
        full = np.zeros((p.shape[0], n_classes))
        full[:, np.asarray(model.classes_, dtype=np.intp)] = p
        return full

    return probabilities
