"""k nearest neighbors: the answer of a row is the average of the answers of the rows nearest to it.

    regression        ŷ(x)        = Σ c_i y_i / Σ c_i             over the k nearest rows
    classification    P(y = c|x)  = Σ c_i [y_i = c] / Σ c_i

Nothing is minimized: what is learned is the table itself. With ``n_neighbors="loo"`` the number of neighbors is the one of
least leave-one-out error.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import check_choice, check_x, check_xy, like_input
from certifit.data.targets import encode_labels
from certifit.models.neighbors import parameters
from certifit.models.neighbors.base import MODES, BaseNeighbors, OfRows
from certifit.models.neighbors.leave_one_out import choose
from certifit.models.neighbors.votes import influence, neighborhood
from certifit.parameters import N_JOBS, Choice, Either, Fitted, Integer, Parameter
from certifit.parameters.docstrings import takes_as

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "NearestNeighbors"]

NO_OBJECTIVE = (
    "Nothing is minimized: predictions are averages over the nearest rows, and the nearest rows are found exactly."
)
HELD = 1 << 22  # neighbors held at a time


class NearestNeighbors(OfRows, BaseNeighbors):
    """The rows nearest to a row, exactly.

    Examples
    --------
    >>> from certifit import NearestNeighbors
    >>> near = NearestNeighbors(n_neighbors=2).fit([[0.0], [1.0], [3.0]])
    >>> near.kneighbors([[0.9]])
    (array([[0.1, 0.9]]), array([[1, 0]]))
    """

    _: KW_ONLY
    n_neighbors: int = parameters.N_NEIGHBORS
    radius: float = parameters.RADIUS
    algorithm: str = parameters.ALGORITHM
    leaf_size: int = parameters.LEAF_SIZE
    metric: Any = parameters.METRIC
    p: float = parameters.P
    metric_params: Any = parameters.METRIC_PARAMS
    n_jobs: int | None = N_JOBS

    def fit(self, X: Any, y: Any = None) -> NearestNeighbors:
        """Keep the rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows; distances of shape (n_samples, n_samples) under ``metric="precomputed"``.
        """
        started = time.perf_counter()
        self._check_format(X)
        X = check_x(self, X, reset=True, **self._accepts())
        self._keep(X, np.ones(X.shape[0], dtype=bool))
        self._certify(Certificate.absent(0.0, NO_OBJECTIVE, seconds=time.perf_counter() - started))
        return self

    @takes_as(BaseNeighbors.kneighbors_graph)
    def radius_neighbors(
        self, X: Any = None, radius: float | None = None, return_distance: bool = True, sort_results: bool = False
    ) -> Any:
        """All rows within a distance.

        Parameters
        ----------
        radius : float or array of shape (n_queries,), optional
            The distance, or one for each query; by default the parameter of the model.
        return_distance : bool, default=True
            Whether distances come with them.
        sort_results : bool, default=False
            They are always sorted, the nearest first.

        Returns
        -------
        distances, rows : arrays of shape (n_queries,), of arrays
            One array for each query.
        """
        start, distance, row = self._near(X, radius)
        parts = [np.empty(start.shape[0] - 1, dtype=object) for _ in range(2)]
        for i, (a, b) in enumerate(itertools.pairwise(start)):
            parts[0][i], parts[1][i] = distance[a:b], row[a:b]
        return tuple(parts) if return_distance else parts[1]

    @takes_as(BaseNeighbors.kneighbors_graph)
    def radius_neighbors_graph(self, X: Any = None, radius: float | None = None, mode: str = "connectivity") -> Any:
        """All rows within a distance as a sparse matrix of shape (n_queries, n_samples_fit_).

        Parameters
        ----------
        X, radius
            As for `radius_neighbors`.

        Returns
        -------
        CSR matrix
        """
        check_choice("mode", mode, MODES)
        return self._graph(*self._near(X, radius), mode)


QUERIES = (
    "X : array, sparse matrix or data frame of shape (n_queries, n_features), or None\n"
    "    Queries; None asks the rows of the fit, each without itself."
)


class _Voters(OfRows, BaseNeighbors, takes={"predict.X": QUERIES, "predict_proba.X": QUERIES}):
    """Neighbors with answers."""

    n_neighbors: Any = Parameter(
        5,
        Either(Integer(1), Choice("loo")),
        'How many of the nearest rows are asked; "loo" takes the number of least leave-one-out error, up to `max_neighbors`.',
    )
    _: KW_ONLY
    weights: Any = parameters.WEIGHTS
    algorithm: str = parameters.ALGORITHM
    leaf_size: int = parameters.LEAF_SIZE
    p: float = parameters.P
    metric: Any = parameters.METRIC
    metric_params: Any = parameters.METRIC_PARAMS
    n_jobs: int | None = N_JOBS
    max_neighbors: int = Parameter(50, Integer(1), 'The largest number that ``n_neighbors="loo"`` tries.')

    n_neighbors_: int = Fitted("int", "How many are asked.")
    loo_errors_: Array = Fitted(
        "array of shape (max_neighbors,)",
        'Mean squared errors, or shares of wrong classes, of 1, 2, … neighbors on rows left out, if ``n_neighbors="loo"``.',
    )
    outputs_2d_: bool = Fitted("bool", "Whether y had two dimensions.")

    weights_are_counts = True  # k counts copies of rows

    def _losses(self, rows: Array, near: Array, given: Array) -> Array:
        """The loss of each of these rows of the fit when these neighbors contribute so much."""
        raise TypeError(f"{type(self).__name__} must say what an error costs.")

    _numeric_target = True

    def _encoded(self, y: Array, kept: Array) -> Array:
        """The checked target as numbers, one column a target."""
        raise TypeError(f"{type(self).__name__} must say what its target is.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep the rows and their answers.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows; distances of shape (n_samples, n_samples) under ``metric="precomputed"``.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Values, or labels of any type.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 is the row twice, two of the k; a weight of 0 drops it.
        """
        started = time.perf_counter()
        self._check_format(X)
        X, y, weight = check_xy(
            self,
            X,
            y,
            sample_weight=sample_weight,
            drop=False,
            multi_output=True,
            numeric_target=self._numeric_target,
            **self._accepts(),
        )
        kept = weight > 0
        self._y: Array = self._encoded(y, kept)[kept]
        self._keep(X, kept)
        self._copies: Array | None = None if (weight[kept] == 1.0).all() else weight[kept]
        if hasattr(self, "loo_errors_"):
            del self.loo_errors_
        certificate = Certificate.absent(0.0, NO_OBJECTIVE, seconds=time.perf_counter() - started)
        if self.n_neighbors == "loo":
            certificate = self._choose(started) or certificate
        else:
            self.n_neighbors_ = int(self.n_neighbors)
        self._certify(certificate)
        return self

    def _choose(self, started: float) -> Certificate | None:
        """Take the number of neighbors of least leave-one-out error; a single row is its own only neighbor."""
        others = self.n_samples_fit_ - 1 if self._copies is None else int(min(self._copies.sum(), 2.0**62)) - 1
        self.n_neighbors_ = 1
        if others < 1:
            return None
        most = min(self.max_neighbors, others)
        chosen = choose(self._search(), self._fit_X, self._copies, self.weights, most, self._losses)
        unit = self._unit()
        with np.errstate(over="ignore", under="ignore"):
            self.n_neighbors_, self.loo_errors_ = chosen.k, chosen.errors * unit * unit
        return chosen.certificate(time.perf_counter() - started).rescaled(unit * unit)

    def _unit(self) -> float:
        """What errors are counted in while they are computed."""
        return 1.0

    def _heard(self, X: Any) -> Iterator[tuple[Array, Array, Array]]:
        """Some queries at a time: their numbers, their neighbors, and what each contributes."""
        Q, skip = self._asked(X)
        k = self._count(None, skip) if self._copies is None else self.n_neighbors_
        search, step = self._search(), max(1, HELD // k)
        for first in range(0, Q.shape[0], step):
            part = np.arange(first, min(first + step, Q.shape[0]))
            near = neighborhood(search, Q[part], k, self._copies, None if skip is None else skip[part])
            yield part, near.row, near.counted(k) * influence(self.weights, near.distance)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class KNeighborsRegressor(RegressorMixin, _Voters):
    """The average of the nearest rows: ŷ(x) = Σ c_i y_i / Σ c_i.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import KNeighborsRegressor
    >>> X = np.arange(6.0)[:, None]
    >>> KNeighborsRegressor(n_neighbors=2).fit(X, X[:, 0] ** 2).predict([[2.4]])
    array([6.5])
    """

    def _encoded(self, y: Array, kept: Array) -> Array:
        self.outputs_2d_ = y.ndim == 2
        return y if y.ndim == 2 else y[:, None]

    def predict(self, X: Any) -> Array:
        """Averages over the nearest rows.

        Returns
        -------
        array of shape (n_queries,) or (n_queries, n_targets)
        """
        parts = [_average(self._y, near, given) for _, near, given in self._heard(X)]
        found = like_input(self._fit_X, np.concatenate(parts))
        return found if self.outputs_2d_ else found[:, 0]

    def _losses(self, rows: Array, near: Array, given: Array) -> Array:
        return np.asarray(
            ((self._y[rows] / self._unit() - _average(self._y / self._unit(), near, given)) ** 2).sum(axis=1)
        )

    def _unit(self) -> float:
        """The magnitude of y, so that squares stay within double precision."""
        return float(np.abs(self._y).max(initial=0.0)) or 1.0


def _average(y: Array, near: Array, given: Array) -> Array:
    """Σ c_i y_i / Σ c_i of each query, shape (m, targets)."""
    share = given / given.sum(axis=1, keepdims=True)
    return np.stack([(share * column[near]).sum(axis=1) for column in y.T], axis=1)


class KNeighborsClassifier(ClassifierMixin, _Voters):
    """The vote of the nearest rows: P(y = c | x) = Σ c_i [y_i = c] / Σ c_i; of equal votes the first class wins.

    Examples
    --------
    >>> from certifit import KNeighborsClassifier
    >>> model = KNeighborsClassifier(n_neighbors=3).fit([[0], [1], [2], [3]], ["no", "no", "yes", "yes"])
    >>> model.predict([[1.1]]), model.predict_proba([[1.1]])
    (array(['no'], dtype='<U3'), array([[0.66666667, 0.33333333]]))
    """

    classes_: Any = Fitted(
        "array of shape (n_classes,)", "The labels in sorted order; a list of such arrays for several targets."
    )

    _numeric_target = False

    def _encoded(self, y: Array, kept: Array) -> Array:
        check_classification_targets(y)
        self.outputs_2d_ = y.ndim == 2 and y.shape[1] > 1
        coded = [_codes(column, kept) for column in (y.T if y.ndim == 2 else [y])]
        self._classes = [classes for classes, _ in coded]
        self.classes_ = self._classes if self.outputs_2d_ else self._classes[0]
        return np.stack([codes for _, codes in coded], axis=1)

    def predict_proba(self, X: Any) -> Any:
        """Shares of the votes.

        Returns
        -------
        array of shape (n_queries, n_classes), or a list of them for several targets
        """
        parts = [
            [
                _votes(codes, near, given, classes.shape[0])
                for codes, classes in zip(self._y.T, self._classes, strict=True)
            ]
            for _, near, given in self._heard(X)
        ]
        found = [like_input(self._fit_X, np.concatenate(part)) for part in zip(*parts, strict=True)]
        return found if self.outputs_2d_ else found[0]

    def predict(self, X: Any) -> Array:
        """The label with the most votes.

        Returns
        -------
        array of shape (n_queries,) or (n_queries, n_targets)
        """
        found = self.predict_proba(X)
        shares = found if self.outputs_2d_ else [found]
        labels = [classes[share.argmax(axis=1)] for classes, share in zip(self._classes, shares, strict=True)]
        return np.stack(labels, axis=1) if self.outputs_2d_ else labels[0]

    def _losses(self, rows: Array, near: Array, given: Array) -> Array:
        wrong = [
            _votes(codes, near, given, classes.shape[0]).argmax(axis=1) != codes[rows]
            for codes, classes in zip(self._y.T, self._classes, strict=True)
        ]
        return np.mean(wrong, axis=0)


def _codes(labels: Array, kept: Array) -> tuple[Array, Array]:
    """The classes of rows that are kept, and the number of every label; those of other rows do not matter."""
    classes, codes = encode_labels(labels[kept])
    every = np.zeros(labels.shape[0], dtype=np.intp)
    every[kept] = codes
    return classes, every


def _votes(codes: Array, near: Array, given: Array, classes: int) -> Array:
    """Shares of the classes among the neighbors of each query, shape (m, classes)."""
    place = np.arange(near.shape[0])[:, None] * classes + codes[near]
    share = given / given.sum(axis=1, keepdims=True)
    votes = np.bincount(place.ravel(), weights=share.ravel(), minlength=near.shape[0] * classes)
    return np.asarray(votes.reshape(near.shape[0], classes))
