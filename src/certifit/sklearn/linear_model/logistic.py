"""Logistic regression under scikit-learn's name: C·Σ s_i·loss_i + penalty is ours with alpha = 1/(C·Σs_i).

The solver "liblinear" stands for another problem: it penalizes the intercept, as the coefficient of one more column.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.linear_model as theirs

from certifit.certificate import Certificate
from certifit.models.logistic.model import LogisticRegression as OurLogistic
from certifit.sklearn.linear_model.rows import (
    CLASS_WEIGHT,
    MAX_ITER,
    N_JOBS,
    NO_DRAWS,
    TOL,
    VERBOSE,
    WARM_START,
    liblinear,
    linear,
    weighted_by_class,
)
from certifit.sklearn.translation import By, Data, DropIn, Here, Same, Table, fresh

__all__ = ["LogisticRegression"]

COMPLAINTS = {  # what users of each solver look for
    "newton-cholesky": "Newton solver did not converge after {} iterations.",
    "liblinear": "Liblinear failed to converge, increase the number of iterations.",
    "sag": "The max_iter was reached which means the coef_ did not converge.",
    "saga": "The max_iter was reached which means the coef_ did not converge.",
}
PENALTIES = {"l1": 1.0, "l2": 0.0}


def _strength(C: Any, data: Data) -> float:
    estimator = data.estimator
    unpenalized = np.inf == C or getattr(estimator, "penalty", "deprecated") is None
    return 0.0 if unpenalized else 1.0 / (float(C) * data.total)


def _share(l1_ratio: Any, data: Data) -> dict[str, Any]:
    given = getattr(data.estimator, "penalty", "deprecated")
    if l1_ratio is None:
        if given == "elasticnet":
            raise ValueError("l1_ratio must be specified when penalty is elasticnet.")
        if given == "deprecated":
            _say(
                "'l1_ratio=None' was deprecated in version 1.8 of scikit-learn: use 0 <= l1_ratio <= 1.", FutureWarning
            )
    ratio = PENALTIES.get(given, l1_ratio) or 0.0
    if ratio in (0.0, 1.0):
        return {"penalty": "l1" if ratio == 1.0 else "l2"}
    return {"penalty": "elasticnet", "l1_ratio": float(ratio)}


def _deprecated(penalty: Any, data: Data) -> dict[str, Any]:
    """What scikit-learn says of its old parameter, and of what contradicts it."""
    if penalty == "deprecated":
        return {}
    ratio = data.estimator.l1_ratio
    _say("'penalty' was deprecated in version 1.8 of scikit-learn: use l1_ratio, or C=np.inf for none.", FutureWarning)
    if penalty != "elasticnet" and ratio is not None and 0 < ratio < 1:
        _say(f"l1_ratio parameter is only used when penalty is 'elasticnet'. Got (penalty={penalty})")
    if penalty in PENALTIES and ratio != PENALTIES[penalty]:
        _say(f"Inconsistent values: penalty={penalty} with l1_ratio={ratio}. penalty is deprecated: use l1_ratio only.")
    if penalty is None and data.estimator.C != 1.0:
        _say("Setting penalty=None will ignore the C and l1_ratio parameters")
    return {}


def _say(text: str, kind: type[Warning] = UserWarning) -> None:
    warnings.warn(text, kind, stacklevel=7)


DUAL = Here('the dual is solved where it is the easier one; True is refused beside other solvers than "liblinear"')
INTERCEPT = Here('size of the column that is the intercept, with solver="liblinear"')
SOLVER = Here(
    'ours chooses its own (`model_.solver_`), and the optimum does not depend on it; "liblinear" penalizes the intercept, and '
    "so do we then. Penalties that a solver of scikit-learn lacks are refused beside its name"
)


class LogisticRegression(DropIn, theirs.LogisticRegression):
    """Minimize C·Σ s_i·log loss + l1_ratio·‖w‖₁ + (1 − l1_ratio)·½‖w‖²; more than two classes by the softmax."""

    _ours = OurLogistic
    _table: ClassVar[Table] = {
        "penalty": By(_deprecated, "as l1_ratio", None),
        "C": By(_strength, "alpha is 1/(C·sum of the weights), class weights included", "alpha"),
        "l1_ratio": By(_share, "the penalty", None),
        "dual": DUAL,
        "tol": TOL,
        "fit_intercept": Same(),
        "intercept_scaling": INTERCEPT,
        "class_weight": CLASS_WEIGHT,
        "random_state": NO_DRAWS,
        "solver": SOLVER,
        "max_iter": MAX_ITER,
        "verbose": VERBOSE,
        "warm_start": WARM_START,
        "n_jobs": N_JOBS,
    }

    def _check_set(self) -> None:
        """Refuse what scikit-learn's solvers refuse, so that a search over settings leaves out the same ones."""
        given = getattr(self, "penalty", "deprecated")
        ratio = PENALTIES.get(given, self.l1_ratio) or 0.0
        penalty = None if given is None or np.inf == self.C else {0.0: "l2", 1.0: "l1"}.get(ratio, "elasticnet")
        if self.solver not in ("liblinear", "saga") and penalty not in ("l2", None):
            raise ValueError(f"Solver {self.solver} supports only 'l2' or None penalties, got {penalty} penalty.")
        if self.solver != "liblinear" and self.dual:
            raise ValueError(f"Solver {self.solver} supports only dual=False, got dual={self.dual}")
        if penalty == "elasticnet" and self.solver != "saga":
            raise ValueError(f"Only 'saga' solver supports elasticnet penalty, got solver={self.solver}.")
        if self.solver == "liblinear" and penalty is None:
            raise ValueError("penalty=None is not supported for the liblinear solver")

    def _learn(self, data: Data) -> Any:
        self._check_set()
        data = weighted_by_class(data, self.class_weight)
        if self.solver != "liblinear":
            return super()._learn(data)
        if len(set(np.ravel(data.y).tolist())) > 2:
            raise ValueError(
                "The 'liblinear' solver does not support multiclass classification (n_classes >= 3): use another solver, or "
                "OneVsRestClassifier around this one."
            )
        model = fresh(self._ours, **{**self._settings(data), "fit_intercept": False})
        return liblinear(self, model, data, float(self.intercept_scaling) if self.fit_intercept else None)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        steps = np.array([max(1, int(model.n_iter_))], dtype=np.int32)
        return {**linear(model), "classes_": model.classes_, "n_iter_": steps}

    def _complaint(self, certificate: Certificate) -> str:
        words = COMPLAINTS.get(self.solver, f"{self.solver} failed to converge.")
        return (
            f"{words.format(self.n_iter_.max())} Increase the number of iterations. {super()._complaint(certificate)}"
        )
