"""The perceptron under scikit-learn's name: rows that are on the wrong side move the plane, others do not.

With a penalty the plane is drawn toward zero at every row, whether it moves the plane or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import sklearn.linear_model as theirs

from certifit._types import Array
from certifit.models.perceptron.base import ScaledRows
from certifit.models.perceptron.model import Perceptron as OurPerceptron
from certifit.models.perceptron.penalized import Mistakes, PenalizedPerceptron
from certifit.sklearn.linear_model.rows import CLASS_WEIGHT, N_JOBS, VERBOSE, linear, weighted_by_class
from certifit.sklearn.translation import Data, DropIn, Free, Here, Of, Only, Same, Table, fresh, same

__all__ = ["Perceptron"]


class _OfUnitOffset(OurPerceptron):
    """The intercept moves by one at each mistake, as scikit-learn's; ours moves by the size of the rows."""

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[ScaledRows, Array]:
        rows, codes = super()._rows(X, y, sample_weight)
        return replace(rows, offset=1.0 if self.fit_intercept else 0.0), codes


_OfUnitOffset.__name__ = "Perceptron"  # as messages call it


class Perceptron(DropIn, theirs.Perceptron):
    """Rosenblatt's perceptron; more than two classes each against the rest.

    It ends when no row is on the wrong side; with a penalty, when the loss no longer falls.
    """

    _ours = _OfUnitOffset
    _table: ClassVar[Table] = {
        "penalty": Here("with one, the perceptron's steps and the penalty's are taken by `certifit.SGDClassifier`"),
        "alpha": Here("the strength of the penalty, where there is one"),
        "l1_ratio": Here('the share of the absolute values in the penalty "elasticnet"'),
        **same("fit_intercept", "max_iter"),
        "tol": Of(
            lambda value, data: 0.0,
            "passes go on while a row is on the wrong side, up to max_iter of them; with a penalty, while the mean loss falls by "
            "more than this",
        ),
        "shuffle": Same(),
        "verbose": VERBOSE,
        "eta0": Here("the size of a step beside a penalty; without one it would only scale the plane"),
        "n_jobs": N_JOBS,
        "random_state": Same(),
        "early_stopping": Only((False,), "the perceptron has no loss to watch"),
        "validation_fraction": Free("of early stopping"),
        "n_iter_no_change": Here("passes without a fall of the loss after which a perceptron with a penalty ends"),
        "class_weight": CLASS_WEIGHT,
        "warm_start": Only((False,), "the perceptron starts at zero"),
    }
    class_weight: Any
    penalty: str | None
    eta0: float
    tol: float | None

    def fit(  # type: ignore[override]  # the order of the arguments is scikit-learn's
        self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> Any:
        """As `DropIn.fit`; the plane starts at zero, and other starts are refused."""
        if coef_init is not None or intercept_init is not None:
            raise NotImplementedError("Perceptron starts at zero: coef_init and intercept_init are not offered.")
        return super().fit(X, y, sample_weight)

    @property
    def partial_fit(self) -> Any:
        """Not there: our perceptron reads all rows."""
        raise AttributeError("Perceptron.partial_fit is not offered: use SGDClassifier(loss='hinge'), which has it.")

    def _learn(self, data: Data) -> Any:
        data = weighted_by_class(data, self.class_weight)
        if self.penalty is None:
            return super()._learn(data)
        settings = {name: value for name, value in self._settings(data).items() if name != "tol"}
        asked = {name: getattr(self, name) for name in ("penalty", "alpha", "l1_ratio", "n_iter_no_change")}
        steps = {"schedule": "constant", "step": self.eta0, "average": False, "stall": self.tol}
        return fresh(PenalizedPerceptron, loss=Mistakes(), **settings, **asked, **steps).fit(
            data.X, data.y, data.sample_weight
        )

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        found = {**linear(model), "classes_": model.classes_, "n_iter_": int(model.n_iter_)}
        return {**found, "intercept_": np.atleast_1d(found["intercept_"]), "t_": 1.0 + model.n_iter_ * data.rows}
