"""Bias, variance and noise: how a learner errs over the samples it might have been given.

With f_S the model trained on sample S, t(x) the best prediction and σ²(x) the variance of y at x, for the squared loss

    E (y − f_S(x))² = σ²(x)  +  (E_S f_S(x) − t(x))²  +  Var_S f_S(x)
                      noise     bias                     variance

and for the 0-1 loss, with m(x) the label that most samples lead to (Domingos 2000; James 2003: effects, which add up),

    P(y ≠ f_S(x)) = [m(x) ≠ t(x)]  +  P(f_S(x) ≠ t(x)) − [m(x) ≠ t(x)]  +  P(y ≠ f_S(x)) − P(f_S(x) ≠ t(x))
                    bias              variance                             noise

The effect of variance is negative where the usual answer is wrong and only an unusual sample gets it right. All are means over x.
With R samples the squared bias of the mean model is too large by Var/R, which is taken off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from certifit._types import Array
from certifit.axes import picture
from certifit.data.gate import check_choice, check_numbers, check_real
from certifit.data.tabular import TableRows
from certifit.evaluation.metrics.inputs import check_labels, check_level
from certifit.evaluation.resampling.fitting import each, warn_of_failures
from certifit.evaluation.risk.resamples import critical, generator
from certifit.names import Plain, record

__all__ = ["Decomposition", "Part", "bias_variance"]

LOSSES = ("squared", "zero_one")


@record("BiasVariancePart")
class Part:
    """One part of the error, with its interval over samples and rows."""

    value: float
    low: float
    high: float


@record("BiasVarianceDecomposition")
class Decomposition(Plain):
    """What `bias_variance` found; the parts add up to the error.

    Parameters
    ----------
    error, bias, variance : Part
    noise : Part or None
        None where it is unknown, and then it is counted within the bias.
    loss : str
    level : float
    rounds : int
        Samples that were learned from.
    """

    error: Part
    noise: Part | None
    bias: Part
    variance: Part
    loss: str
    level: float
    rounds: int

    def plot(self, ax: Any = None) -> Any:
        """`certifit.plots.plot_bias_variance` of it alone."""
        return picture("plot_bias_variance")({"": self}, ax)

    def __str__(self) -> str:
        named = {"noise": self.noise, "bias": self.bias, "variance": self.variance}
        if self.noise is None:
            named = {"bias and noise": self.bias, "variance": self.variance}
        parts = " + ".join(
            f"{name} {part.value:.4g} ({part.low:.3g} to {part.high:.3g})" for name, part in named.items() if part
        )
        return f"error {self.error.value:.4g} = {parts}"


def bias_variance(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    target: Callable[[Any], Any] | None = None,
    noise: float = 0.0,
    n_train: int | None = None,
    n_test: int = 500,
    loss: str = "squared",
    n_rounds: int = 200,
    level: float = 0.95,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Decomposition:
    """Split the expected error of a learner into noise, bias and variance.

    With a known `target` by simulation; with data by the bootstrap, where each row is judged by the samples that lack it, and
    what is noise and what is bias cannot be told apart.

    Parameters
    ----------
    estimator : estimator
        Cloned for each sample.
    X : array, sparse matrix or data frame; or a function
        Rows; with a target also a function ``draw(rng, n)`` that draws n of them.
    y : array of shape (n,), optional
        Their targets, if they are data.
    target : callable, optional
        The mean of y as a function of rows; for the 0-1 loss the probability of class 1 (classes 0 and 1).
    noise : float, default=0.0
        Standard deviation of normal noise about the target (squared loss only).
    n_train : int, optional
        Rows of a sample; needed when X is a function, else as many as X has.
    n_test : int, default=500
        Rows on which the models are judged, where they can be drawn.
    loss : {"squared", "zero_one"}, default="squared"
    n_rounds : int, default=200
        Number of samples.
    level : float, default=0.95
        Confidence of the intervals.
    random_state : int, default=0
    n_jobs : int, optional
        Threads that fit samples at the same time; one by default, -1 for all.

    Examples
    --------
    A line through two points of a sine has little bias and much variance:

    >>> import numpy as np
    >>> from certifit import LinearRegression, bias_variance
    >>> found = bias_variance(LinearRegression(), lambda rng, n: rng.uniform(-1, 1, size=(n, 1)),
    ...                       target=lambda X: np.sin(np.pi * X[:, 0]), n_train=2)
    >>> found.bias.high < 0.5 < found.variance.low
    True
    """
    check_choice("loss", loss, LOSSES)
    level = check_level(level)
    for name, value, least in (("n_rounds", n_rounds, 3), ("n_test", n_test, 2)):
        check_real(name, value, low=least, integer=True)
    if (y is None) == (target is None):
        raise ValueError("give y for data, or target for a simulation: one of them.")
    if target is not None and not callable(target):
        raise TypeError(f"target must be a function of rows; got {target!r:.60}: numbers of the rows of X are y.")
    rng = generator(random_state)
    if target is None:
        samples, said, truth = _from_data(estimator, X, y, loss, n_rounds, n_train, rng, n_jobs)
        sure, spread = truth, None
    else:
        check_real("noise", noise, low=0.0, high=np.inf, open_high=True)
        if loss == "zero_one" and noise:
            raise ValueError("noise must be 0 with loss='zero_one': it is in the probabilities that target gives.")
        said, truth = _simulated(estimator, X, target, float(noise), loss, n_rounds, n_train, n_test, rng, n_jobs)
        samples = np.ones(said.shape, dtype=bool)
        sure = truth if loss == "squared" else (truth > 0.5).astype(np.int64)
        spread = np.full(truth.shape, float(noise) ** 2) if loss == "squared" else truth
    seen = samples.sum(axis=0) >= 2
    if not seen.any():
        raise ValueError("n_rounds is too small: no row was judged by two samples.")
    split = _squared if loss == "squared" else _zero_one
    parts, moved = split(said[:, seen], samples[:, seen], sure[seen], None if spread is None else spread[seen])
    found = {name: _part(parts[name], moved[name], level) for name in parts}
    # None of these is below zero, unlike the corrected bias of squares and the effect of variance on labels; shares end at one.
    positive, most = (("error", "variance"), np.inf) if loss == "squared" else (("error", "bias"), 1.0)
    for name in positive:
        part = found[name]
        found[name] = replace(part, low=max(part.low, 0.0), high=min(part.high, most))
    return Decomposition(
        found["error"], found.get("noise"), found["bias"], found["variance"], loss, level, int(said.shape[0])
    )


def _fits(
    estimator: Any, tasks: list[Any], of: Callable[[Any], tuple[Any, Any, Any]], n_jobs: int | None
) -> dict[int, Array]:
    """What the model of each sample says about the rows to judge; samples that fail are left out."""

    def work(task: Any) -> Array | Exception:
        try:
            rows, targets, judged = of(task)
            answers = np.asarray(clone(estimator).fit(rows, targets).predict(judged))
            if answers.dtype.kind == "f" and not np.isfinite(answers).all():
                raise ValueError(f"{type(estimator).__name__} predicts values that are not finite.")
            return answers
        except Exception as error:  # whatever a learner raises is its own affair, and is told
            return error

    found = each(work, tasks, n_jobs)
    errors = [one for one in found if isinstance(one, Exception)]
    if len(tasks) - len(errors) < 3:
        raise errors[0]
    warn_of_failures("bias_variance", [f"{type(one).__name__}: {one}" for one in errors], len(tasks))
    return {k: one for k, one in enumerate(found) if not isinstance(one, Exception)}


def _simulated(
    estimator: Any,
    X: Any,
    target: Callable[[Any], Any],
    noise: float,
    loss: str,
    n_rounds: int,
    n_train: int | None,
    n_test: int,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> tuple[Array, Array]:
    """Predictions of every sample's model at the same new rows, shape (rounds, rows), and the target there."""
    if callable(X):
        if n_train is None:
            raise ValueError("n_train must say how many rows a sample has, since X is a function.")
        draw: Callable[[np.random.Generator, int], Any] = X
    else:
        table = TableRows(X)
        n_train = table.n if n_train is None else n_train

        def draw(rng: np.random.Generator, n: int) -> Any:
            return table.take(rng.integers(0, table.n, size=n))

    size = int(check_real("n_train", n_train, low=1, integer=True))
    judged = draw(rng, n_test)
    truth = _means(target, judged, loss)

    def sample(seed: int) -> tuple[Any, Any, Any]:
        own = np.random.default_rng(seed)
        rows = draw(own, size)
        means = _means(target, rows, loss)
        if loss == "squared":
            return rows, means + noise * own.normal(size=size), judged
        return rows, (own.random(size) < means).astype(np.int64), judged

    seeds = rng.integers(2**63, size=n_rounds).tolist()
    return np.array(list(_fits(estimator, seeds, sample, n_jobs).values())), truth


def _means(target: Callable[[Any], Any], rows: Any, loss: str) -> Array:
    means = np.asarray(target(rows), dtype=np.float64)
    if means.ndim != 1 or means.shape[0] != TableRows(rows).n or not np.isfinite(means).all():
        raise ValueError(f"target must give a finite number for each row; got shape {means.shape}.")
    if loss == "zero_one" and ((means < 0.0) | (means > 1.0)).any():
        raise ValueError("target must give probabilities of class 1, between 0 and 1, with loss='zero_one'.")
    return means


def _from_data(
    estimator: Any,
    X: Any,
    y: Any,
    loss: str,
    n_rounds: int,
    n_train: int | None,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> tuple[Array, Array, Array]:
    """Which rows each bootstrap sample lacks, what its model says about them, and y."""
    table, labels = TableRows(X), check_labels("y", y)
    if labels.shape[0] != table.n:
        raise ValueError(f"X and y must have the same number of rows: X has {table.n}, y has {labels.shape[0]}.")
    classes, codes = np.unique(labels, return_inverse=True)
    truth = check_numbers("y", labels) if loss == "squared" else codes
    n = table.n
    size = n if n_train is None else int(check_real("n_train", n_train, low=1, integer=True))
    drawn = [rng.integers(0, n, size=size) for _ in range(n_rounds)]
    left = [np.setdiff1d(np.arange(n), rows) for rows in drawn]
    tasks = [k for k in range(n_rounds) if left[k].size]
    if len(tasks) < 3:
        raise ValueError(
            f"Bootstrap samples of {size} rows leave hardly any of the {n} rows of X to judge: give more rows, or a "
            "smaller n_train."
        )

    def sample(k: int) -> tuple[Any, Any, Any]:
        return table.take(drawn[k]), labels[drawn[k]], table.take(left[k])

    found = _fits(estimator, tasks, sample, n_jobs)
    samples = np.zeros((len(found), n), dtype=bool)
    said = np.zeros((len(found), n), dtype=np.float64 if loss == "squared" else np.int64)
    for r, (place, values) in enumerate(found.items()):
        rows = left[tasks[place]]
        samples[r, rows] = True
        said[r, rows] = values if loss == "squared" else _codes(values, classes)
    return samples, said, truth


def _codes(values: Array, classes: Array) -> Array:
    """Numbers of labels; what is no label of the data has the number after theirs, and is right nowhere."""
    place = np.minimum(np.searchsorted(classes, values), classes.shape[0] - 1)
    return np.where(classes[place] == values, place, classes.shape[0])


# The parts at each row, shape (m,), and the mean parts without each round, shape (R,)
Parts = tuple[Mapping[str, Array], Mapping[str, Array]]


def _squared(said: Array, samples: Array, truth: Array, noise: Array | None) -> Parts:
    error = np.where(samples, said - truth, 0.0)  # about the truth, so that squares lose no digits
    count, total, squares = samples.sum(axis=0), error.sum(axis=0), (error**2).sum(axis=0)

    def split(count: Array, total: Array, squares: Array) -> dict[str, Array]:
        mean = total / np.maximum(count, 1)
        variance = np.maximum(squares - count * mean**2, 0.0) / np.maximum(count - 1, 1)
        parts = {"bias": mean**2 - variance / np.maximum(count, 1), "variance": variance}
        if noise is not None:
            parts["noise"] = noise
        return {**parts, "error": sum(parts.values(), start=np.zeros_like(mean))}

    without = [split(count - samples[r], total - error[r], squares - error[r] ** 2) for r in range(said.shape[0])]
    return split(count, total, squares), _means_without(without)


def _zero_one(said: Array, samples: Array, best: Array, chance: Array | None) -> Parts:
    codes, place = np.unique(said, return_inverse=True)
    label: Array = np.asarray(place).reshape(samples.shape)
    rounds = samples.shape[0]
    rows = np.arange(best.shape[0])
    votes = np.zeros((best.shape[0], codes.shape[0]))
    for r in range(rounds):
        votes[rows, label[r]] += samples[r]

    def split(votes: Array) -> dict[str, Array]:
        share = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1.0)
        bias = (codes[votes.argmax(axis=1)] != best).astype(np.float64)
        wrong = 1.0 - (share * (codes == best[:, None])).sum(axis=1)
        parts = {"bias": bias, "variance": wrong - bias}
        if chance is None:
            return {**parts, "error": wrong}
        own = np.where(codes == 1, 1.0 - chance[:, None], np.where(codes == 0, chance[:, None], 1.0))
        error = (share * own).sum(axis=1)
        return {**parts, "noise": error - wrong, "error": error}

    without = []
    for r in range(rounds):
        fewer = votes.copy()
        fewer[rows, label[r]] -= samples[r]
        without.append(split(fewer))
    return split(votes), _means_without(without)


def _means_without(without: list[dict[str, Array]]) -> dict[str, Array]:
    return {name: np.array([parts[name].mean() for parts in without]) for name in without[0]}


def _part(at: Array, without: Array, level: float) -> Part:
    """Mean over the rows; its variance is that over rows, and the jackknife's over rounds."""
    value, m, rounds = float(at.mean()), at.shape[0], without.shape[0]
    over_rows = float(at.var(ddof=1)) / m if m > 1 else 0.0
    over_rounds = (rounds - 1.0) / rounds * float(((without - without.mean()) ** 2).sum())
    half = critical(level, min(m, rounds) - 1.0) * float(np.sqrt(over_rows + over_rounds))
    return Part(value, value - half, value + half)
