"""Rows of the tables that several linear models share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack
from sklearn.utils.class_weight import compute_class_weight

from certifit._types import is_sparse
from certifit.data.gate import check_x
from certifit.sklearn.translation import COPY_X, Data, Free, Here, Of, Same

__all__ = [
    "ANY_SOLVER",
    "CLASS_WEIGHT",
    "COPY_X",
    "MAX_ITER",
    "NARROWEST",
    "NO_DRAWS",
    "N_JOBS",
    "PRECOMPUTE",
    "SELECTION",
    "TOL",
    "VERBOSE",
    "WARM_START",
    "liblinear",
    "linear",
    "narrow",
    "one_row",
    "weighted_by_class",
]

NARROWEST, WIDEST = 1e-16, 1e-9  # a double cannot prove less, and nobody should get more


def narrow(tol: Any, data: Data | None = None) -> float:
    """Their tolerance is of gradients or steps. A gap of its cube has the coefficients right to more than that."""
    return float(min(max(float(tol) ** 3, NARROWEST), WIDEST))


TOL = Of(narrow, "the relative duality gap wanted is its cube, between 1e-16 and 1e-9", "tol")
MAX_ITER = Of(
    lambda value, data: {} if value is None else {"max_iter": max(1, int(value))},
    "most iterations, which are ours",
    None,
)
CLASS_WEIGHT = Here("multiplied into the weights of the rows")
NO_DRAWS = Free("nothing is drawn at random")
ANY_SOLVER = Free("the optimum does not depend on the solver, and ours chooses its own (`model_.solver_`)")
WARM_START = Free("the optimum does not depend on where the search starts")
PRECOMPUTE = Free("what is worth computing beforehand is decided by the shape of X")
SELECTION = Free("the optimum does not depend on the order of the coordinates")
VERBOSE = Of(lambda value, data: max(int(value), 0), "the same", "verbose")
N_JOBS = Same()


def linear(model: Any) -> dict[str, Any]:
    """Coefficients and intercept, both in the type of X."""
    coef, intercept = model.coef_, model.intercept_
    kind = coef.dtype.type
    several = isinstance(intercept, np.ndarray) and intercept.ndim
    return {"coef_": coef, "intercept_": np.asarray(intercept, dtype=kind) if several else kind(intercept)}


def one_row(found: dict[str, Any]) -> dict[str, Any]:
    """Coefficients of a y of one column as a vector; the intercept keeps its dimension."""
    coef = found["coef_"]
    return {**found, "coef_": coef[0] if coef.ndim == 2 and coef.shape[0] == 1 else coef}


def weighted_by_class(data: Data, class_weight: Any) -> Data:
    """The same data with the class weights multiplied into the weights of the rows."""
    if class_weight is None:
        return data
    y = np.asarray(data.y).ravel()
    weight = np.ones(y.shape[0]) if data.sample_weight is None else np.asarray(data.sample_weight, dtype=np.float64)
    classes, codes = np.unique(y, return_inverse=True)
    factor = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=data.sample_weight)
    return Data(data.estimator, data.X, data.y, weight * factor[codes])


def liblinear(estimator: Any, model: Any, data: Data, scaling: float | None) -> Any:
    """Fit a model without intercept as LIBLINEAR does: in double precision, and with the intercept as the coefficient of one
    more column of X, of that size, penalized like the others.
    """
    X = check_x(estimator, data.X, reset=True, dtype=np.float64)
    if scaling is None:
        model.fit(X, data.y, data.sample_weight)
    else:
        column = np.full((X.shape[0], 1), scaling)
        wider = hstack([X, csr_array(column)], format="csr") if is_sparse(X) else np.concatenate((X, column), axis=1)
        model.fit(wider, data.y, data.sample_weight)
        model.intercept_ = model.coef_[..., -1] * scaling
        model.coef_ = np.ascontiguousarray(model.coef_[..., :-1])
    model.n_features_in_ = X.shape[1]
    if hasattr(estimator, "feature_names_in_"):
        model.feature_names_in_ = estimator.feature_names_in_
    return model
