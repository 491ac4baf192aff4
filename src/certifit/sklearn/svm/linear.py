"""Linear support vector machines under scikit-learn's names.

Theirs: C·Σ s_i·loss_i + ½‖w‖², with max(0, 1 − m)² for the squared hinge, is ours with alpha = 1/(C·Σs_i), and half of that for a
squared loss, since ours is ½max(0, 1 − m)². LIBLINEAR penalizes the intercept, as the coefficient of one more column, and
so does the drop-in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.svm as theirs

from certifit.certificate import Certificate
from certifit.models.linear.model import LinearModel
from certifit.models.margin.multiclass import MulticlassSVC
from certifit.models.margin.svm import LinearSVC as OurSVC
from certifit.models.margin.svm import LinearSVR as OurSVR
from certifit.sklearn.linear_model.rows import MAX_ITER, TOL, VERBOSE, liblinear, linear, weighted_by_class
from certifit.sklearn.translation import By, Data, DropIn, Free, Here, Of, Same, Several, Table, fresh

__all__ = ["LinearSVC", "LinearSVR"]


def _strength(C: Any, data: Data) -> float:
    squared = (
        str(data.estimator.loss).startswith("squared")
        and getattr(data.estimator, "multi_class", "") != "crammer_singer"
    )
    return 1.0 / (float(C) * data.total * (2.0 if squared else 1.0))


C = By(_strength, "alpha is 1/(C·sum of the weights), half of it for squared losses", "alpha")
DUAL = Free("the dual is solved where it is the easier one")
SCALING = Here("size of the column that is the intercept")
SEED = Free("the optimum does not depend on the order of the rows")


class _Liblinear(DropIn):
    """The intercept is a coefficient like the others."""

    fit_intercept: bool
    intercept_scaling: float

    def _fit_one(self, model: Any, data: Data) -> Any:
        return liblinear(self, model, data, float(self.intercept_scaling) if self.fit_intercept else None)


class LinearSVC(_Liblinear, theirs.LinearSVC):
    """Minimize C·Σ s_i·loss_i + penalty(w, b); more than two classes one against the rest, or Crammer and Singer's problem."""

    _ours = OurSVC
    _table: ClassVar[Table] = {
        "penalty": Here("the penalty of each hyperplane"),
        "loss": Same(),
        "dual": Here(
            "the dual is solved where it is the easier one; sets that LIBLINEAR has no solver for are refused"
        ),
        "tol": TOL,
        "C": C,
        "multi_class": Here('"crammer_singer" is `MulticlassSVC`, with 10,000 passes or more'),
        "fit_intercept": Of(lambda value, data: False, "the coefficient of one more column"),
        "intercept_scaling": SCALING,
        "class_weight": Here(
            "multiplied into the weights of the rows; of more than two classes those of each against the rest, as by LIBLINEAR"
        ),
        "verbose": VERBOSE,
        "random_state": SEED,
        "max_iter": MAX_ITER,
    }

    def _learn(self, data: Data) -> Any:
        self._check_set()
        weighted = self.class_weight is not None
        if self.multi_class == "ovr" and (self.penalty == "l1" or (weighted and np.unique(np.ravel(data.y)).size > 2)):
            return self._one_by_one(data)
        data = weighted_by_class(data, self.class_weight)
        settings = self._settings(data)
        if self.multi_class == "ovr":
            return self._fit_one(fresh(OurSVC, **settings), data)
        options = {name: value for name, value in settings.items() if name != "loss"}
        # Passes that are allowed, but no fewer than ours has by default: 1000, which theirs has, seldom prove much.
        options["max_iter"] = max(options.get("max_iter", 0), MulticlassSVC().max_iter)
        return self._fit_one(fresh(MulticlassSVC, **options), data)

    def _check_set(self) -> None:
        """Refuse what scikit-learn refuses, so that a search over settings leaves out the same ones."""
        if self.multi_class == "crammer_singer" or (
            self.dual == "auto" and (self.penalty, self.loss) != ("l1", "hinge")
        ):
            return
        if self.penalty == "l1" and self.loss == "hinge":
            why = "no L1 penalty beside the hinge loss"
        elif self.penalty == "l1" and self.dual:
            why = "no dual of the L1 penalty"
        elif self.loss == "hinge" and not self.dual:
            why = "the hinge loss has no curvature for a primal solver"
        else:
            return
        raise ValueError(
            f"Unsupported set of arguments: {why}; got penalty={self.penalty!r}, loss={self.loss!r}, dual={self.dual!r}."
        )

    def _one_by_one(self, data: Data) -> Any:
        """One hyperplane for each class, where classes have penalties ‖w‖₁ or weights.

        The weight of a class is that of its rows in its own problem; among the rest, LIBLINEAR counts every row alike.
        """
        y = np.ravel(data.y)
        classes = np.unique(y)
        if classes.shape[0] < 2:
            raise ValueError(
                f"LinearSVC needs at least 2 classes, but the data has one class only: {classes.tolist()!r}."
            )
        all_weighted = weighted_by_class(data, self.class_weight).sample_weight
        models = []
        for label in classes[1:] if classes.shape[0] == 2 else classes:
            weight = all_weighted
            if classes.shape[0] > 2 and self.class_weight is not None:
                own = np.ones(y.shape[0]) if data.sample_weight is None else data.sample_weight
                weight = np.where(y == label, all_weighted, own)
            one = Data(self, data.X, (y == label).astype(np.float64), weight)
            models.append(self._fit_one(fresh(LinearModel, **self._settings(one), penalty=self.penalty), one))
        joined = Several(models)
        joined.classes_ = classes
        joined.certificate_ = Certificate.worst(
            [model.certificate_ for model in models], f"The worst of {len(models)} one-against-the-rest fits."
        )
        return joined

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        found = linear(model)
        if self.multi_class == "crammer_singer" and model.classes_.shape[0] == 2:  # theirs has one row then
            found = {name: value[1:] - value[:1] for name, value in found.items() if np.ndim(value)}
        if not self.fit_intercept:
            found["intercept_"] = 0.0
        return {**found, "classes_": model.classes_, "n_iter_": max(1, int(model.n_iter_))}


class LinearSVR(_Liblinear, theirs.LinearSVR):
    """Minimize C·Σ s_i·max(0, |y_i − x_i·w − b| − epsilon) + ½‖w‖² + ½b², or the square of the loss."""

    _ours = OurSVR
    _table: ClassVar[Table] = {
        "epsilon": Same(),
        "tol": TOL,
        "C": C,
        "loss": Same(),
        "fit_intercept": Of(lambda value, data: False, "the coefficient of one more column"),
        "intercept_scaling": SCALING,
        "dual": DUAL,
        "verbose": VERBOSE,
        "random_state": SEED,
        "max_iter": MAX_ITER,
    }

    def _learn(self, data: Data) -> Any:
        return self._fit_one(fresh(OurSVR, **self._settings(data)), data)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        found = linear(model)
        if self.fit_intercept:
            found["intercept_"] = np.atleast_1d(found["intercept_"])
        return {**found, "n_iter_": max(1, int(model.n_iter_))}
