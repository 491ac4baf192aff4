"""One table of (their parameter → ours) for each class. A row of the table is one of

Same()                     the same number under the same name, or under another: ``Same("delta")``;
                           ``**same("tol", "max_iter")`` are rows of several
By(rule, text)             computed by ``rule(value, data)``; a mapping of several of our parameters if `name` is None
Of(rule, text)             the same, where the rule asks for parameters only: it is computed once for each setting
Free(text)                 cannot change the answer: where the search starts, how X is stored
Here(text)                 heeded by the drop-in itself: by `fit`, by a check or by a method; our model has no such parameter
Only(values, text)         other values are refused, and the error says why
Instead(values, text)      other values draw a warning, and `text` says what is done instead
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d


def array(given: Any) -> Any:
    """What can be made an array and has no shape of its own, as an array: NumPy's functions may not take it as it is."""
    if type(given) is np.ndarray or given is None or not hasattr(given, "__array__") or hasattr(given, "shape"):
        return given
    return np.asarray(given)


def labels(y: Any) -> Any:
    """Labels as a vector, of one column with scikit-learn's warning; to ask it takes longer than many a fit."""
    return y if type(y) is np.ndarray and y.ndim == 1 else column_or_1d(y, warn=True)


@dataclass  # not frozen: that takes three times as long to make, and a small fit is short
class Data:
    """The data of one fit, for rules that depend on it, and the estimator that asks."""

    estimator: Any
    X: Any
    y: Any = None
    sample_weight: Any = None

    def __post_init__(self) -> None:
        self.X, self.y, self.sample_weight = array(self.X), array(self.y), array(self.sample_weight)

    @property
    def rows(self) -> int:
        """Number of rows; of what has none the gate of the model will speak."""
        shape = getattr(self.X, "shape", None)
        if shape is None:
            shape = np.shape(self.X) if np.ndim(self.X) else ()
        return int(shape[0]) if shape else 0

    @property
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

    def settled(self, value: Any) -> bool:
        """Whether `settings` depends on the parameters alone for this value, and says nothing aloud."""
        return False


@dataclass(frozen=True)
class Same(Row):
    """The same value, under a name of ours."""

    name: str = ""

    def settings(self, name: str, value: Any, data: Data) -> dict[str, Any]:
        return {self.name or name: value}

    def words(self, name: str) -> str:
        return f"``{self.name}``" if self.name else "the same"

    def settled(self, value: Any) -> bool:
        return True


def same(*names: str) -> dict[str, Row]:
    """Rows of several parameters that mean the same under the same name."""
    return dict.fromkeys(names, Same())


@dataclass(frozen=True)
class By(Row):
    """A value computed from theirs and from the data."""

    rule: Callable[[Any, Data], Any]
    text: str
    name: str | None = ""
    blind: tuple[type, ...] = ()
    """Types of values for which the rule asks for no data, only for parameters of the estimator."""

    def settings(self, name: str, value: Any, data: Data) -> dict[str, Any]:
        found = self.rule(value, data)
        return dict(found) if self.name is None else {self.name or name: found}

    def words(self, name: str) -> str:
        return self.text

    def settled(self, value: Any) -> bool:
        return isinstance(value, self.blind)


def Of(rule: Callable[[Any, Data], Any], text: str, name: str | None = "") -> By:  # noqa: N802  # a kind of row
    """A value computed from parameters only."""
    return By(rule, text, name, (object,))


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

    def settled(self, value: Any) -> bool:
        return _among(value, self.values)


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
