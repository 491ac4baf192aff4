"""``sklearn.discriminant_analysis``: classes as normal distributions, of one covariance or of one each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.discriminant_analysis as theirs
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.models.bayes.discriminant.lda import LDA
from certifit.models.bayes.discriminant.qda import QDA
from certifit.models.bayes.gaussian import ledoit_wolf, shrunk
from certifit.representation.design.moments import Moments
from certifit.sklearn.translation import By, Data, Free, Here, Of, Row, Same, Table, fresh
from certifit.sklearn.translation.asking import AsksForClasses

__all__ = ["LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"]

Estimate = Callable[[Array], Array]
"""The covariance of the rows of one class."""


class _LinearByClass(LDA):
    """The covariances of the classes by a rule of its own, and their mean by the shares of the classes."""

    estimate: ClassVar[Any] = None  # a class variable to type checkers, since it is no parameter

    def _covariances(self, moments: Moments, X: Array | None, group: Array | None, weight: Array | None) -> list[Array]:
        assert X is not None
        self.shrinkage_ = 0.0
        each = [np.atleast_2d(self.estimate(X[group == k])) for k in range(self.classes_.shape[0])]
        return [np.tensordot(self.priors_, each, axes=1)]


class _QuadraticByClass(QDA):
    """The covariance of each class by a rule of its own."""

    estimate: ClassVar[Any] = None  # a class variable to type checkers, since it is no parameter

    def _covariances(self, moments: Moments, X: Array | None, group: Array | None, weight: Array | None) -> list[Array]:
        assert X is not None
        self.shrinkage_, self.pooling_ = 0.0, np.zeros(self.classes_.shape[0])
        return [np.atleast_2d(self.estimate(X[group == k])) for k in range(self.classes_.shape[0])]


def _automatic(X: Array) -> Array:
    """Ledoit and Wolf's covariance of the standardized rows of a class, in its own units again."""
    mean, unit = X.mean(axis=0), X.std(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    scaled = np.atleast_2d(np.cov((X - mean) / unit, rowvar=False, bias=True))
    rows = X.shape[0]
    share = ledoit_wolf(
        (X - mean) / unit, np.ones(rows), np.zeros(rows, dtype=np.intp), np.zeros((1, X.shape[1])), scaled
    )
    return np.asarray(shrunk(scaled, share) * np.outer(unit, unit))


def _normalized(value: Any, data: Data) -> Any:
    """Priors that sum to one; of negative ones our model will speak."""
    total = 0.0 if value is None else float(np.sum(value))
    return np.asarray(value) / total if total > 0 and np.all(np.asarray(value) >= 0) else value


ROWS: dict[str, Row] = {
    "shrinkage": Of(
        lambda value, data: None if isinstance(value, str) else value,
        'the same; "auto" is Ledoit and Wolf\'s, by class',
    ),
    "priors": By(_normalized, "the same, divided by their sum"),
    "store_covariance": Here("`covariance_` is kept where asked for; `model_` has it always"),
    "covariance_estimator": Here('asked for the covariance of each class, where the solver is not "svd"'),
}


class _Discriminant(AsksForClasses):
    """Scores are asked of our model."""

    priors: Any
    solver: str
    shrinkage: Any
    covariance_estimator: Any
    _by_class: ClassVar[Any]

    def _estimate(self) -> Estimate | None:
        """The covariance of a class, where it is not the usual one."""
        given = self.covariance_estimator
        if self.solver == "svd" and self.shrinkage is not None:
            raise NotImplementedError("shrinkage not supported with 'svd' solver.")
        if given is None:
            return _automatic if isinstance(self.shrinkage, str) else None
        if self.shrinkage is not None and self.shrinkage != 0:
            raise ValueError(
                "covariance_estimator and shrinkage parameters are not None. Only one of the two can be set."
            )

        def asked(X: Array) -> Array:
            given.fit(X)
            if not hasattr(given, "covariance_"):
                raise ValueError(f"{type(given).__name__} does not have a covariance_ attribute")
            return np.asarray(given.covariance_)

        return asked

    def _learn(self, data: Data) -> Any:
        estimate = self._estimate()
        model = fresh(self._ours if estimate is None else self._by_class, **self._settings(data))
        if estimate is not None:
            model.estimate = estimate
        try:
            return model.fit(data.X, data.y, data.sample_weight)
        except ValueError as error:
            if str(error).startswith("n_components must be at most"):
                raise ValueError(
                    f"n_components cannot be larger than min(n_features, n_classes - 1). {error}"
                ) from error
            if str(error).startswith("priors must be") and (np.ravel(self.priors) < 0).any():
                raise ValueError(f"priors must be non-negative. {error}") from error
            raise
        finally:
            vars(model).pop("estimate", None)

    def decision_function(self, X: Any) -> Array:
        """Logarithms of posteriors up to a constant; for two classes their difference."""
        check_is_fitted(self)
        return self.model_.decision_function(X)


def _counts(y: Any) -> tuple[Array, Array]:
    return np.unique(np.ravel(y), return_counts=True)


class LinearDiscriminantAnalysis(_Discriminant, theirs.LinearDiscriminantAnalysis):
    """Normal classes of one covariance: a linear boundary, and at most K − 1 directions that tell classes apart."""

    _ours, _by_class = LDA, _LinearByClass
    _table: ClassVar[Table] = {
        **ROWS,
        "solver": Here(
            'the same model by another decomposition; "svd" takes neither shrinkage nor covariance_estimator, and the others '
            "keep `covariance_`"
        ),
        "tol": Free("directions without variance are found by their rounding"),
        "n_components": Same(),
    }

    def _estimate(self) -> Estimate | None:
        if self.solver == "svd" and self.covariance_estimator is not None:
            raise ValueError("covariance estimator is not supported with svd solver. Try another solver")
        return super()._estimate()

    def _learn(self, data: Data) -> Any:
        rows = data.rows
        if rows and np.size(data.y) == rows and rows == _counts(data.y)[0].shape[0] > 1:
            check_classification_targets(data.y)
            raise ValueError("The number of samples must be more than the number of classes.")
        if self.priors is not None and np.all(np.ravel(self.priors) >= 0) and abs(np.sum(self.priors) - 1.0) > 1e-5:
            warnings.warn("The priors do not sum to 1. Renormalizing", UserWarning, stacklevel=4)
        return super()._learn(data)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        names = [
            "classes_",
            "priors_",
            "means_",
            "xbar_",
            "scalings_",
            "coef_",
            "intercept_",
            "explained_variance_ratio_",
        ]
        names += ["covariance_"] if self.store_covariance or self.solver != "svd" else []
        return {name: getattr(model, name) for name in names if hasattr(model, name)}

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the directions.

        Parameters
        ----------
        input_features : None
            Not used.

        Returns
        -------
        array of str
        """
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{k}" for k in range(self.model_._n_features_out)], dtype=object)

    def transform(self, X: Any) -> Array:
        """Rows in the directions that tell classes apart, shape (n_samples, n_components)."""
        check_is_fitted(self)
        return self.model_.transform(X)


class QuadraticDiscriminantAnalysis(_Discriminant, theirs.QuadraticDiscriminantAnalysis):
    """Normal classes, each with a covariance of its own; one that has no inverse is an error, as in scikit-learn."""

    _ours, _by_class = QDA, _QuadraticByClass
    _table: ClassVar[Table] = {
        **ROWS,
        "solver": Here(
            'the same model by another decomposition; "svd" takes reg_param, "eigen" shrinkage and covariance_estimator'
        ),
        "tol": Here("the least variance that a class may have in any direction; with less it is refused"),
        "reg_param": Here('the share of the identity in each covariance, with solver="svd"'),
    }

    def _estimate(self) -> Estimate | None:
        if self.solver == "svd" and self.covariance_estimator is not None:
            raise ValueError("covariance_estimator is not supported with solver='svd'. Try solver='eigen' instead.")
        if self.solver != "svd" or not self.reg_param:
            return super()._estimate()
        share = float(self.reg_param)
        return lambda X: (1.0 - share) * np.cov(X, rowvar=False, bias=True) + share * np.eye(X.shape[1])

    def _learn(self, data: Data) -> Any:
        if np.size(data.y) == data.rows:
            classes, counts = _counts(data.y)
            if classes.shape[0] > 1 and counts.min() == 1:
                check_classification_targets(data.y)
                raise ValueError(f"y has only 1 sample in class {classes[counts.argmin()]}, covariance is ill defined.")
        model = super()._learn(data)
        lent = model.pooling_ > 0  # our model has lent them the covariance of all classes
        for label, matrix, count, poor in zip(
            model.classes_, model.covariance_, model.class_weight_, lent, strict=True
        ):
            width = matrix.shape[0]
            few = self.solver == "svd" and count <= width
            if poor or few or not (np.linalg.eigvalsh(matrix) > self.tol).all():
                raise np.linalg.LinAlgError(
                    f"The covariance matrix of class {label} is not full rank. {self._cure(label, int(count), width, few)}"
                )
        return model

    def _cure(self, label: Any, count: int, width: int, few: bool) -> str:
        if not few:
            name = "shrinkage" if self.solver == "eigen" else "reg_param"
            return f"Increase the value of `{name}` to reduce the collinearity."
        return (
            "When using `solver='svd'` the number of samples in each class should be more than the number of features, but "
            f"class {label} has {count} samples and {width} features. Try using `solver='eigen'` and setting the parameter "
            "`shrinkage` for regularization."
        )

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        pairs = [np.linalg.eigh(one) for one in model.covariance_]
        found = {
            **{name: getattr(model, name) for name in ("classes_", "priors_", "means_")},
            "scalings_": [variances[::-1] for variances, _ in pairs],
            "rotations_": [directions[:, ::-1] for _, directions in pairs],
        }
        return {**found, **({"covariance_": list(model.covariance_)} if self.store_covariance else {})}
