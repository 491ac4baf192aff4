"""Kernel support vector machines under scikit-learn's names: the same C and nu, gamma and coef0, the same dual problem."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.svm as theirs
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

import certifit as ours
from certifit._types import Array, is_sparse
from certifit.sklearn.translation import By, Data, Free, Of, Only, Row, Same, Table, fresh, same
from certifit.sklearn.translation.asking import AsksForValues

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]

TOLD = ("support_", "support_vectors_", "dual_coef_", "intercept_", "fit_status_", "shape_fit_", "n_iter_")
NARROWER = 1e-2
HARD = 1e10


def _gamma(value: Any, data: Data) -> Any:
    """Scale is 1/(d·variance of the entries), without weights; ours counts rows by weight."""
    if value != "scale" or data.sample_weight is None or data.estimator.kernel in ("precomputed", "linear"):
        return value
    entries = data.X.toarray() if is_sparse(data.X) else np.asarray(data.X, dtype=np.float64)
    spread = float(entries.var())
    return 1.0 / (entries.shape[1] * spread) if spread > 0 else 1.0


def _kernel(value: Any, data: Data) -> Any:
    """The same; a function of rows that hold no numbers has been called already."""
    return "precomputed" if data.estimator._judges_things else value


def _probability(value: Any, data: Data) -> dict[str, Any]:
    if isinstance(value, str):
        return {}
    warnings.warn(
        "The `probability` parameter was deprecated in scikit-learn 1.9: use CalibratedClassifierCV around the model.",
        FutureWarning,
        stacklevel=5,
    )
    return {}


def _finite(C: Any, data: Data) -> float:
    """No slack at all is a price that no row can pay."""
    return min(float(C), HARD)


PRICE = Of(_finite, "the same; infinity is 1e10")
KERNEL: dict[str, Row] = {
    "kernel": By(_kernel, "the same; a function may take rows of any kind"),
    "degree": Same(),
    "gamma": By(_gamma, 'the same; "scale" is by the variance of the rows as they are, without weights'),
    "coef0": Same(),
    "tol": Of(
        lambda tol, data: NARROWER * float(tol), "a hundredth of it, so that what is proven is what was asked for"
    ),
    "shrinking": Free("which rows are looked at does not change the optimum"),
    "cache_size": Of(lambda value, data: float(value), "the same"),
    "verbose": Of(lambda value, data: int(bool(value)), "a progress bar"),
    "max_iter": Same(),
}
CLASSES: dict[str, Row] = {
    **KERNEL,
    "probability": By(_probability, "Platt's map of scores to probabilities, learned on five folds", None),
    **same("decision_function_shape", "break_ties"),
    "random_state": Free("nothing is drawn at random"),
}


def _weights(value: Any, data: Data) -> dict[Any, float] | None:
    """Factor of C of each class that is there."""
    if value is None:
        return None
    y = np.ravel(data.y)
    there = set(np.unique(y).tolist())
    given = {label: value[label] for label in value if label in there} if isinstance(value, dict) else value
    found = compute_class_weight(given, classes=np.unique(y), y=y)
    return dict(zip(np.unique(y).tolist(), found.tolist(), strict=True))


def _are_numbers(X: Any) -> bool:
    """Whether rows are vectors; strings, graphs and the like are for a function of the user's alone."""
    return is_sparse(X) or (np.ndim(X) == 2 and np.asarray(X).dtype.kind in "biuf")


class _KernelMachine(AsksForValues):
    """What all of them tell: the rows that matter, and how much."""

    kernel: Any
    class_weight: Any
    _sparse: bool
    _things: Any
    """Rows of the fit that hold no numbers, which the user's function compares with new ones."""
    _one_side: ClassVar[str] = "Invalid input - all samples with positive weights belong to the same class."

    def _learn(self, data: Data) -> Any:
        """Rows of negative weight are absent, as for LIBSVM."""
        if is_sparse(data.X) and self.kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported.")
        self.__dict__.pop("_things", None)
        if callable(self.kernel) and not _are_numbers(data.X):
            self._things = data.X
            data = Data(self, self._asked(data.X), data.y, data.sample_weight)
        if data.sample_weight is None or np.ndim(data.sample_weight) != 1:
            return self._learned(data)
        weight = np.maximum(np.asarray(data.sample_weight, dtype=np.float64), 0.0)
        if weight.size and not weight.any():
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        labels = np.ravel(data.y) if is_classifier(self) else np.empty(0)
        if labels.shape == weight.shape and np.unique(labels[weight > 0]).size < min(2, np.unique(labels).size):
            raise ValueError(self._one_side)
        return self._learned(Data(self, data.X, data.y, weight))

    def _learned(self, data: Data) -> Any:
        """The model; where X overflows, scikit-learn's words come first."""
        try:
            return super()._learn(data)
        except ValueError as error:
            if not str(error).startswith("gamma='scale'"):
                raise
            raise ValueError(f"The dual coefficients or intercepts are not finite. {error}") from error

    @property
    def _judges_things(self) -> bool:
        return "_things" in vars(self)

    def _asked(self, X: Any) -> Any:
        """Rows for our model: as they are, or what the user's function says of them and of those of the fit."""
        if self._judges_things:
            return np.asarray(self.kernel(X, self._things), dtype=np.float64)
        if is_sparse(X) and not self._sparse:
            raise ValueError(f"cannot use sparse input in {type(self).__name__!r} trained on dense data")
        return super()._asked(X)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        found = {name: getattr(model, name) for name in TOLD} | {"_sparse": is_sparse(data.X)}
        if is_sparse(data.X):
            found |= {name: csr_array(found[name]) for name in ("support_vectors_", "dual_coef_")}
        if not hasattr(model, "classes_"):
            return found
        factors = _weights(self.class_weight, data) or {}
        weights = np.array([factors.get(label, 1.0) for label in model.classes_.tolist()])
        return {**found, "classes_": model.classes_, "class_weight_": weights}

    @property
    def n_support_(self) -> Array:
        """Support vectors of each class."""
        check_is_fitted(self)
        return np.asarray(self.model_.n_support_, dtype=np.int32)

    @property
    def coef_(self) -> Array:
        """Coefficients of the features, for the linear kernel."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        coef = np.array(self.model_.coef_)
        coef.flags.writeable = False  # it is computed from the dual: a change would be lost
        return coef


class _Scores(_KernelMachine):
    """Scores of the classes."""

    def decision_function(self, X: Any) -> Array:
        """How far each row is on the side of a class, or of each of two."""
        check_is_fitted(self)
        return self.model_.decision_function(self._asked(X))


def _asks_for_probabilities(self: Any) -> bool:
    """Raises what scikit-learn raises, if probabilities were not asked for."""
    if self.probability is not True:
        raise AttributeError(f"predict_proba is not available when {type(self).__name__}.probability is not True")
    return True


class _Classes(_Scores):
    """Classes, and their probabilities where they are asked for."""

    probability: Any

    def _learn(self, data: Data) -> Any:
        model = super()._learn(data)
        self.__dict__.pop("calibrated_", None)
        if self.probability is not True:
            self._probA = self._probB = np.empty(0)  # of Platt's map, as scikit-learn's without one
        else:
            if self._judges_things:
                raise NotImplementedError(
                    "probability=True needs rows of numbers, which can be dealt into folds: use CalibratedClassifierCV."
                )
            inner = clone(model).set_params(decision_function_shape="ovr", verbose=0)
            self.calibrated_ = fresh(ours.CalibratedClassifier, estimator=inner).fit(data.X, data.y, data.sample_weight)
        return model

    @available_if(_asks_for_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, by Platt's map of the scores of rows left out."""
        check_is_fitted(self)
        if not hasattr(self, "calibrated_"):
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        return self.calibrated_.predict_proba(X)  # type: ignore[no-any-return]

    @available_if(_asks_for_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`."""
        return np.asarray(np.log(self.predict_proba(X)))


class SVC(_Classes, theirs.SVC):
    """Classes apart by a margin in the space of a kernel: ½‖w‖² + C·Σ s_i·hinge."""

    _ours = ours.SVC
    _table: ClassVar[Table] = {
        **CLASSES,
        "C": PRICE,
        "class_weight": By(_weights, "factors of C for each class"),
    }


class NuSVC(_Classes, theirs.NuSVC):
    """The same with nu, a bound for the share of errors, in the place of C."""

    _ours = ours.NuSVC
    _one_side = "specified nu is infeasible: all samples with positive weights belong to the same class."
    _table: ClassVar[Table] = {
        **CLASSES,
        "nu": Same(),
        "class_weight": Only((None,), "our nu-SVC has no weights of classes; give sample_weight"),
    }


class SVR(_KernelMachine, theirs.SVR):
    """Numbers within a tube of half width epsilon, in the space of a kernel."""

    _ours = ours.SVR
    _table: ClassVar[Table] = {**KERNEL, "C": PRICE, "epsilon": Same()}


class NuSVR(_KernelMachine, theirs.NuSVR):
    """The same with nu, the share of rows outside the tube, in the place of its width."""

    _ours = ours.NuSVR
    _table: ClassVar[Table] = {**KERNEL, "C": PRICE, "nu": Same()}


class OneClassSVM(_Scores, theirs.OneClassSVM):
    """Where most rows are: outliers lie beyond."""

    _ours = ours.OneClassSVM
    _table: ClassVar[Table] = {**KERNEL, "nu": Same()}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """As `DropIn.fit`; y is not used."""
        return super().fit(X, None, sample_weight)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {**super()._fitted(model, data), "offset_": np.atleast_1d(model.offset_)}

    def score_samples(self, X: Any) -> Array:
        """Scores before the offset is taken off."""
        return self.decision_function(X) + self.offset_
