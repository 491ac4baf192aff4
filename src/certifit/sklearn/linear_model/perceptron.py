"""The perceptron under scikit-learn's name: rows that are on the wrong side move the plane, others do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import sklearn.linear_model as theirs

from certifit._types import Array
from certifit.models.perceptron.base import Rows
from certifit.models.perceptron.model import Perceptron as OurPerceptron
from certifit.sklearn.linear_model.rows import CLASS_WEIGHT, N_JOBS, VERBOSE, linear, weighted_by_class
from certifit.sklearn.translation import By, Data, DropIn, Free, Only, Same, Table

__all__ = ["Perceptron"]


class _OfUnitOffset(OurPerceptron):
    """The intercept moves by one at each mistake, as scikit-learn's; ours moves by the size of the rows."""

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, Array]:
        rows, codes = super()._rows(X, y, sample_weight)
        return replace(rows, offset=1.0 if self.fit_intercept else 0.0), codes


class Perceptron(DropIn, theirs.Perceptron):
    """Rosenblatt's perceptron; more than two classes each against the rest. It ends when no row is on the wrong side."""

    _ours = _OfUnitOffset
    _table: ClassVar[Table] = {
        "penalty": Only((None,), "the perceptron has no penalty; SGDClassifier has"),
        "alpha": Free("the strength of no penalty"),
        "l1_ratio": Free("the kind of no penalty"),
        "fit_intercept": Same(),
        "max_iter": Same(),
        "tol": By(lambda value, data: 0.0, "passes go on while a row is on the wrong side, up to max_iter of them"),
        "shuffle": Same(),
        "verbose": VERBOSE,
        "eta0": Free("started at zero, the step only scales the plane"),
        "n_jobs": N_JOBS,
        "random_state": Same(),
        "early_stopping": Only((False,), "the perceptron has no loss to watch"),
        "validation_fraction": Free("of early stopping"),
        "n_iter_no_change": Free("of early stopping"),
        "class_weight": CLASS_WEIGHT,
        "warm_start": Only((False,), "the perceptron starts at zero"),
    }
    class_weight: Any

    def fit(  # type: ignore[override]  # the order of the arguments is scikit-learn's
        self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> Any:
        """As `DropIn.fit`; the plane starts at zero, and other starts are refused."""
        if coef_init is not None or intercept_init is not None:
            raise NotImplementedError("Perceptron starts at zero: coef_init and intercept_init are not offered.")
        return super().fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Refused: our perceptron reads all rows."""
        raise NotImplementedError(
            "Perceptron.partial_fit is not offered: use SGDClassifier(loss='hinge'), which has it."
        )

    def _learn(self, data: Data) -> Any:
        return super()._learn(weighted_by_class(data, self.class_weight))

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        found = {**linear(model), "classes_": model.classes_, "n_iter_": int(model.n_iter_)}
        return {**found, "intercept_": np.atleast_1d(found["intercept_"]), "t_": 1.0 + model.n_iter_ * data.rows}
