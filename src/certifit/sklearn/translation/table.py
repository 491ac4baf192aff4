"""One table of (their parameter → ours) for each class, and the class that reads it.

A drop-in is a subclass of the class it stands in for: constructor, defaults, tags, metadata routing and whatever asks
``isinstance`` are scikit-learn's own, of the release that is installed. `fit` is ours: the parameters are translated by
the table, a model of Certifit learns, and what it learned is written under scikit-learn's names. No method of
scikit-learn's class that learns is ever called.

A row of the table is one of

    Same()                     the same number under the same name, or under another: ``Same("delta")``;
                               ``**same("tol", "max_iter")`` are rows of several
    By(rule, text)             computed by ``rule(value, data)``; a mapping of several of our parameters if `name` is None
    Free(text)                 cannot change the answer: where the search starts, how X is stored
    Here(text)                 heeded by the drop-in itself: by `fit`, by a check or by a method; our model has no such parameter
    Only(values, text)         other values are refused, and the error says why
    Instead(values, text)      other values draw a warning, and `text` says what is done instead
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.parameters.methods import RETURNS, complete_methods
from certifit.sklearn.translation.counting import fitted, known_as, learns

__all__ = [
    "COPY_X",
    "By",
    "Data",
    "DropIn",
    "Free",
    "Here",
    "Instead",
    "Only",
    "Row",
    "Same",
    "Several",
    "Table",
    "fitted",
    "fresh",
    "known_as",
    "learns",
    "same",
]


@dataclass(frozen=True)
class Data:
    """The data of one fit, for rules that depend on it, and the estimator that asks."""

    estimator: Any
    X: Any
    y: Any = None
    sample_weight: Any = None

    @cached_property
    def rows(self) -> int:
        """Number of rows; of what has none the gate of the model will speak."""
        shape = getattr(self.X, "shape", None)
        if shape is None:
            shape = np.shape(self.X) if np.ndim(self.X) else ()
        return int(shape[0]) if shape else 0

    @cached_property
    def total(self) -> float:
        """Sum of the weights, by which scikit-learn's sums are our means."""
        weight = self.sample_weight
        if weight is None:
            return float(self.rows) or 1.0
        weight = np.asarray(weight, dtype=np.float64)
        return float(weight.sum() if weight.ndim else weight * self.rows) or 1.0


@dataclass(frozen=True)
class Row:
    """What becomes of one parameter of theirs."""

    def settings(self, name: str, value: Any, data: Data) -> dict[str, Any]:
        """The parameters of ours that it sets."""
        raise NotImplementedError

    def words(self, name: str) -> str:
        """The row in words, for documentation."""
        raise NotImplementedError


@dataclass(frozen=True)
class Same(Row):
    """The same value, under a name of ours."""

    name: str = ""

    def settings(self, name: str, value: Any, data: Data) -> dict[str, Any]:
        return {self.name or name: value}

    def words(self, name: str) -> str:
        return f"``{self.name}``" if self.name else "the same"


def same(*names: str) -> dict[str, Row]:
    """Rows of several parameters that mean the same under the same name."""
    return dict.fromkeys(names, Same())


@dataclass(frozen=True)
class By(Row):
    """A value computed from theirs and from the data."""

    rule: Callable[[Any, Data], Any]
    text: str
    name: str | None = ""

    def settings(self, name: str, value: Any, data: Data) -> dict[str, Any]:
        found = self.rule(value, data)
        return dict(found) if self.name is None else {self.name or name: found}

    def words(self, name: str) -> str:
        return self.text


@dataclass(frozen=True)
class Here(Row):
    """A parameter that the drop-in heeds itself: it is none of our model's."""

    text: str

    def settings(self, name: str, value: Any, data: Data) -> dict[str, Any]:
        return {}

    def words(self, name: str) -> str:
        return self.text


@dataclass(frozen=True)
class Free(Here):
    """A parameter that cannot change the answer."""

    def words(self, name: str) -> str:
        return f"no effect: {self.text}"


COPY_X = Free("X is never written to")


@dataclass(frozen=True)
class Only(Row):
    """A parameter of which we have some values only."""

    values: tuple[Any, ...]
    text: str

    def settings(self, name: str, value: Any, data: Data) -> dict[str, Any]:
        if not _among(value, self.values):
            raise NotImplementedError(
                f"{type(data.estimator).__name__}({name}={value!r}) is not offered by certifit.sklearn: {self.text}. "
                f"Use {_listed(self.values)}, or scikit-learn's own class."
            )
        return {}

    def words(self, name: str) -> str:
        return f"{_listed(self.values)} only: {self.text}"


@dataclass(frozen=True)
class Instead(Only):
    """A parameter of which other values are met by the nearest thing, with a warning."""

    def settings(self, name: str, value: Any, data: Data) -> dict[str, Any]:
        if not _among(value, self.values):
            warnings.warn(f"{type(data.estimator).__name__}({name}={value!r}): {self.text}.", UserWarning, stacklevel=4)
        return {}

    def words(self, name: str) -> str:
        return f"{_listed(self.values)}; for others a warning: {self.text}"


def _among(value: Any, values: tuple[Any, ...]) -> bool:
    return any(value is one or (type(value) is type(one) and value == one) for one in values)


def _listed(values: tuple[Any, ...]) -> str:
    return " or ".join(repr(one) for one in values)


Table = Mapping[str, Row]


@dataclass
class _Checked:
    """Settings that scikit-learn's own check has passed: it takes longer than many a fit."""

    known: set[Any] = field(default_factory=set)

    def __call__(self, estimator: Any) -> None:
        """Let scikit-learn judge the parameters, unless it has judged the same ones before; count the fit."""
        learns(type(estimator))
        values = tuple(map(vars(estimator).get, estimator._table))
        key: Any = (values, tuple(map(type, values)))
        try:
            if key in self.known:
                return
        except TypeError:  # an array, say
            key = None
        estimator._validate_params()
        if key is not None and len(self.known) < MOST_CHECKED:
            self.known.add(key)


MOST_CHECKED = 10_000
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
            cls._checked = _Checked()
            cls._effective = tuple((name, row) for name, row in cls._table.items() if not isinstance(row, Here))
            cls.__doc__ = _documented(cls)

    _checked: ClassVar[_Checked]
    _effective: ClassVar[tuple[tuple[str, Row], ...]]
    """The rows of the table that set something: small fits take little longer than this loop."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit by the model of Certifit that `model_` then holds.

        Parameters
        ----------
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts a row twice.
        """
        self._checked(self)
        data = Data(self, X, y, sample_weight)
        self._keep(self._learn(data), data)
        return self

    def _settings(self, data: Data) -> dict[str, Any]:
        """The parameters of our model."""
        found, held = dict(self._always), vars(self)
        for name, row in self._effective:
            if name in held:  # an older release may lack it
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
