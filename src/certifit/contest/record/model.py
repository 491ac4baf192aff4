"""What a contest fits and ships: models that take a table as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from certifit._types import Array, Matrix
from certifit.certificate import Certificate
from certifit.contest.entrants.base import predictor
from certifit.contest.record.promise import Promise
from certifit.data.gate import check_real
from certifit.evaluation.decisions.costs import least_costly
from certifit.names import stored

if TYPE_CHECKING:
    import polars as pl

    from certifit.contest.table.table import TableSchema

__all__ = ["Blend", "Chain", "TableModel"]


@stored("Chain")
@dataclass(eq=False)
class Chain:
    """An encoder, the transformers after it, and a fitted estimator, from feature columns to predictions."""

    encoder: Any
    steps: list[Any]
    estimator: Any
    n_classes: int

    def encoded(self, features: pl.DataFrame) -> Matrix:
        """The rows as the estimator sees them."""
        X = self.encoder.transform(features)
        for step in self.steps:
            X = step.transform(X)
        return X

    def predict(self, features: pl.DataFrame) -> Array:
        """Probabilities of the classes, or values."""
        return predictor(self.estimator, self.n_classes)(self.encoded(features))

    @property
    def certificate(self) -> Certificate | None:
        """Of the estimator, where it has one."""
        return getattr(self.estimator, "certificate_", None)

    @property
    def names(self) -> list[str]:
        """Names of the columns the estimator sees."""
        names: Any = self.encoder.get_feature_names_out()
        for step in self.steps:
            names = step.get_feature_names_out(names)
        return [str(name) for name in names]


@stored("Blend")
@dataclass(eq=False)
class Blend:
    """A weighted average of the predictions of other models."""

    members: dict[str, Chain]
    weights: dict[str, float]
    proof: Certificate

    def predict(self, features: pl.DataFrame) -> Array:
        """The weighted average."""
        parts = [weight * self.members[name].predict(features) for name, weight in self.weights.items()]
        return np.asarray(sum(parts))

    @property
    def certificate(self) -> Certificate | None:
        """Of the weights, given the members."""
        return self.proof


@stored("TableModel")
@dataclass(eq=False)
class TableModel:
    """The winner of a contest: takes a table with the columns of the training table, gives labels, probabilities or values.

    Attributes
    ----------
    schema : TableSchema
        Columns, their kinds, the target and the task.
    core : Chain or Blend
        The fitted model.
    name, label : str
        The entrant.
    threshold : float or None
        For two classes: the positive class is said from this probability on.
    origin : str
        Which rows it was fitted on and what can be expected of it, in a sentence.
    costs : array of shape (K, K) or None
        For more classes: costs of saying each (columns) when another is true (rows); the class of least expected cost is said.
    promise : Promise or None
        What intervals and sets are made of; None where no row was left out in the search.
    """

    schema: TableSchema
    core: Chain | Blend
    name: str
    label: str
    classes: tuple[str, ...]
    threshold: float | None = None
    origin: str = ""
    costs: Array | None = None
    promise: Promise | None = None

    def predict_features(self, features: pl.DataFrame) -> Array:
        """Probabilities of `classes`, or values, of rows already in the shape of the schema."""
        return self.core.predict(features)

    def predict_proba(self, table: Any) -> Array:
        """Probabilities of `classes`; `table` is a frame, the path of a file, or "-" for standard input."""
        if not self.classes:
            raise ValueError(f"predict_proba needs classes, and {self.schema.target!r} is a number: use predict.")
        return self.predict_features(self.schema.conform(table).features)

    def predict(self, table: Any) -> Array:
        """Labels, or values; `table` is a frame, the path of a file, or "-" for standard input."""
        return self.decide(self.predict_features(self.schema.conform(table).features))

    def predict_interval(self, table: Any, level: float = 0.9) -> Array:
        """Lower and upper ends that hold the value in a share `level` of new rows like those of the contest, shape (n, 2)."""
        if self.classes:
            raise ValueError(
                f"predict_interval needs a number, and {self.schema.target!r} is a class: use predict_set."
            )
        return self.promised().intervals(self.predict_features(self.schema.conform(table).features), level)

    def predict_set(self, table: Any, level: float = 0.9) -> list[tuple[str, ...]]:
        """The likeliest labels of each row, as many as hold the truth in a share `level` of new rows like the contest's."""
        return self.label_sets(self.predict_proba(table), level)

    def label_sets(self, predicted: Array, level: float) -> list[tuple[str, ...]]:
        """The same, from probabilities; the likeliest label first."""
        inside = self.promised().sets(predicted, level)
        order = np.argsort(-predicted, axis=1, kind="stable")
        return [tuple(self.classes[k] for k in row if held[k]) for row, held in zip(order, inside, strict=True)]

    def promised(self) -> Promise:
        """The promise, or an error where there is none."""
        if self.promise is None:
            raise ValueError(
                "interval is not offered by this model: no rows were left out in its search, or an earlier version of certifit "
                "wrote it. Hold the contest again, with more time."
            )
        return self.promise

    def decide(self, predicted: Array) -> Array:
        """From probabilities to labels, by the threshold, the costs or the largest; values stay as they are."""
        if not self.classes:
            return predicted
        if self.threshold is not None and len(self.classes) == 2:
            choice = (predicted[:, 1] >= self.threshold).astype(np.intp)
        elif self.costs is not None:
            choice = least_costly(predicted, self.costs)
        else:
            choice = np.argmax(predicted, axis=1)
        return np.asarray(self.classes, dtype=object)[choice]

    def with_threshold(self, threshold: float) -> TableModel:
        """The same model with another threshold, for two classes."""
        if len(self.classes) != 2:
            what = f"{len(self.classes)} classes" if self.classes else "a number"
            raise ValueError(f"threshold is for two classes, and {self.schema.target!r} is {what}: leave it out.")
        return replace(self, threshold=float(check_real("threshold", threshold, low=0, high=1)))

    @property
    def certificate_(self) -> Certificate | None:
        """How far the fit is from the best possible one."""
        return self.core.certificate
