"""The class that reads a table.

A drop-in is a subclass of the class it stands in for: constructor, defaults, tags, metadata routing and whatever asks
``isinstance`` are scikit-learn's own, of the release that is installed. `fit` is ours: the parameters are translated by
the table, a model of Certifit learns, and what it learned is written under scikit-learn's names. No method of
scikit-learn's class that learns is ever called.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.parameters.methods import RETURNS, complete_methods
from certifit.sklearn.translation.naming import in_own_name, speaks_for
from certifit.sklearn.translation.reading import Reading
from certifit.sklearn.translation.table import Data, Table

__all__ = ["DropIn", "Several", "fresh"]

FORMS = (
    "X : array, sparse matrix or data frame of shape (n_samples, n_features)\n"
    "    Features, in the forms that scikit-learn's class takes."
)


class DropIn:
    """What all drop-ins share; the table and the model are the subclass's.

    Attributes
    ----------
    certificate_ : Certificate
        How far the fit is from the best possible one.
    model_ : estimator
        Certifit's own fitted model, with everything that scikit-learn has no name for.
    """

    __takes__: ClassVar[Mapping[str, str]] = {f"{name}.X": FORMS for name in RETURNS}

    _ours: ClassVar[Any]
    _table: ClassVar[Table]
    _always: ClassVar[Mapping[str, Any]] = {}
    """Parameters of ours that theirs do not speak of."""
    _reads_columns: ClassVar[bool] = False
    """Whether the drop-in itself notes the number and the names of the columns, since its model sees something else."""
    certificate_: Certificate
    model_: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        complete_methods(cls)
        if "_table" in vars(cls):
            cls._checked = Reading(cls._table)
            cls.__doc__ = _documented(cls)
            cls._behind = _public(cls._ours)
            speaks_for(cls, cls._behind)

    _checked: ClassVar[Reading]
    _behind: ClassVar[str]
    """What our class calls itself."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit by the model of Certifit that `model_` then holds.

        Parameters
        ----------
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts a row twice.
        """
        self._checked(self)
        data = Data(self, X, y, sample_weight)
        try:
            model = self._learn(data)
        except (TypeError, ValueError) as error:
            in_own_name(error, self._behind, type(self).__name__)
            raise
        self._keep(model, data)
        return self

    def _settings(self, data: Data) -> dict[str, Any]:
        """The parameters of our model."""
        settled, rows = self._checked.settings(self)
        found, held = {**self._always, **settled}, vars(self)
        for name, row in rows:
            found.update(row.settings(name, held[name], data))
        return found

    def _learn(self, data: Data) -> Any:
        """Our fitted model."""
        return fresh(self._ours, **self._settings(data)).fit(data.X, data.y, data.sample_weight)

    def _keep(self, model: Any, data: Data) -> None:
        """Fitted attributes under scikit-learn's names."""
        self.model_ = model
        known, here = vars(model), vars(self)  # to ask a model for what it lacks takes long beside a small fit
        for name in () if self._reads_columns else COLUMNS:
            if name in known:
                here[name] = known[name]
            else:
                here.pop(name, None)
        for name, value in self._fitted(model, data).items():
            setattr(self, name, value)
        self._judge(getattr(model, "certificate_", None))

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        """Scikit-learn's fitted attributes."""
        raise NotImplementedError

    def _judge(self, certificate: Certificate | None) -> None:
        """Keep the certificate. A fit that falls short of *their* tolerance says so; ours is narrower."""
        if certificate is None or certificate.kind == "none":
            if certificate is not None:
                self.certificate_ = certificate
            return
        tol = getattr(self, "tol", None)
        self.certificate_ = certificate.judged(LOOSEST if tol is None else float(tol))
        if not self.certificate_.certified:
            warnings.warn(self._complaint(self.certificate_), ConvergenceWarning, stacklevel=4)

    def _complaint(self, certificate: Certificate) -> str:
        """What is said of a fit that stopped short."""
        return f"{type(self).__name__} did not converge. {certificate}"


LOOSEST = 1e-4
COLUMNS = ("n_features_in_", "feature_names_in_")
"""What a fitted model knows of the columns of X."""


def fresh(ours: Any, **settings: Any) -> Any:
    """A model of ours whose certificate the drop-in judges."""
    model = ours(**settings)
    model.judged_elsewhere = True
    return model


def _documented(cls: type[DropIn]) -> str:
    """The docstring: what the class says of itself, and its table."""
    own = (cls.__doc__ or "").strip()
    lines = [f"{name} : {row.words(name)}" for name, row in cls._table.items()]
    table = "\n".join(f"    {line}" for line in lines)
    theirs = next(base for base in cls.__mro__ if base.__module__.startswith("sklearn."))
    head = f"``{theirs.__module__.partition('._')[0]}.{theirs.__name__}``, fitted by ``certifit.{_public(cls._ours)}``."
    return (
        f"{head}\n\n{own}\n\nParameters, defaults and scales are scikit-learn's; `certificate_` says how far the fit is from\n"
        f"the best possible one, `model_` is our own model. What becomes of each parameter:\n\n{table}\n"
    )


def _public(ours: type) -> str:
    """The name of a class of ours, or of the public one that it is a kind of."""
    return next(base.__name__ for base in ours.__mro__ if not base.__name__.startswith("_"))


class Several:
    """Models of several targets that are fitted one by one, side by side."""

    classes_: Array

    def __init__(self, models: list[Any]) -> None:
        self.models = models
        self.n_features_in_ = models[0].n_features_in_
        if hasattr(models[0], "feature_names_in_"):
            self.feature_names_in_ = models[0].feature_names_in_
        self.coef_ = np.stack([model.coef_ for model in models])
        self.intercept_: Array = np.array([model.intercept_ for model in models])
        self.n_iter_ = max(model.n_iter_ for model in models)
        self.solver_ = models[0].solver_
        self.certificate_ = Certificate.total([model.certificate_ for model in models])
