"""One learner fitted on many parts: in parallel, and a part that fails does not take the others with it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning

from certifit._types import Array
from certifit.data.tabular import TableRows
from certifit.evaluation.metrics.predictions import predict_for
from certifit.evaluation.splits.choice import Fold
from certifit.threads import n_threads

__all__ = ["Data", "FittedPart", "aligned", "each", "fitted_on", "warn_of_failures"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Data:
    """The rows of positive weight; `given` says whether weights were given, and so must be passed on."""

    table: TableRows
    y: Array
    weight: Array
    given: bool
    classes: Array | None

    def fit(self, estimator: Any, rows: Array, *, anew: bool = True) -> Any:
        """A clone, fitted on these rows; the estimator itself, which may go on from its last fit, where not `anew`."""
        more = {"sample_weight": self.weight[rows]} if self.given else {}
        return (clone(estimator) if anew else estimator).fit(self.table.take(rows), self.y[rows], **more)


@dataclass(frozen=True)
class FittedPart:
    """What one part gave: predictions of its judged rows by what they are needed for, or the error that ended it."""

    part: Fold
    predictions: dict[str, Array]
    seconds: float
    model: Any = None
    error: Exception | None = None


def each(work: Callable[[T], R], tasks: Sequence[T], n_jobs: int | None) -> list[R]:
    """The results of `work`, in the order of the tasks; `n_jobs` threads, one if it is None."""
    threads = 1 if n_jobs is None else min(n_threads(n_jobs), len(tasks))
    if threads <= 1:
        return [work(task) for task in tasks]
    with ThreadPoolExecutor(threads) as pool:
        waiting = [pool.submit(work, task) for task in tasks]
        try:
            return [future.result() for future in waiting]
        finally:  # after an error or an interrupt nothing new is begun
            for future in waiting:
                future.cancel()


def fitted_on(
    part: Fold,
    estimator: Any,
    data: Data,
    needs: Collection[str],
    *,
    keep: bool = False,
    contain: bool = True,
    anew: bool = True,
) -> FittedPart:
    """Fit on a part and predict its judged rows; with `contain` an error is a result, without `anew` there is no clone."""
    started = time.perf_counter()
    try:
        model = data.fit(estimator, part.train, anew=anew)
        seconds = time.perf_counter() - started
        held = data.table.take(part.test)
        predictions = {need: aligned(model, predict_for(model, held, need), need, data.classes) for need in needs}
    except Exception as error:  # whatever a learner raises is its own affair, and is told
        if not contain:
            raise
        return FittedPart(part, {}, time.perf_counter() - started, error=error)
    return FittedPart(part, predictions, seconds, model if keep else None)


def aligned(model: Any, prediction: Array, need: str, classes: Array | None) -> Array:
    """Predictions with a column for each class of the data, also where a training part lacked one."""
    known = getattr(model, "classes_", None)
    if classes is None or known is None or need == "label" or need == "value":
        return prediction
    known = np.asarray(known)
    if known.shape == classes.shape and (known == classes).all():
        return prediction
    absent = [label for label in classes.tolist() if label not in set(known.tolist())]
    if need == "score" or prediction.ndim != 2 or not set(known.tolist()) <= set(classes.tolist()):
        raise ValueError(f"the training part has no row of class {absent!r}: use stratified or fewer folds.")
    wide = np.zeros((prediction.shape[0], classes.shape[0]))
    wide[:, np.searchsorted(classes, known)] = prediction
    return wide


def warn_of_failures(what: str, failures: Sequence[str], total: int, *, stacklevel: int = 3) -> None:
    """Say once that some parts failed; by default where the caller was called."""
    if failures:
        warnings.warn(
            f"{what}: {len(failures)} of {total} failed and were left out. The first: {failures[0]}",
            FitFailedWarning,
            stacklevel=stacklevel,
        )
