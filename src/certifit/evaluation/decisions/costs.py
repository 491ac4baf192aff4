"""What decisions cost, and the rule that costs the least.

action(x) = argmin_a Σ_k P(k | x)·C[k, a]          declined where the least of them exceeds the cost of declining
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_numbers, check_real, check_sample_weight
from certifit.evaluation.decisions.bayes import REJECT, bayes_action, posterior_risk
from certifit.evaluation.metrics.inputs import check_labels, check_probabilities, class_codes
from certifit.evaluation.risk.risk import interval

__all__ = ["BayesRule", "CostMatrix", "Decisions", "decide"]


@dataclass(frozen=True)
class CostMatrix:
    """Costs of actions: ``matrix[k, a]`` is the cost of action a when class k is true.

    Parameters
    ----------
    matrix : array of shape (K, A)
        Finite. Where actions are classes (A = K), the right decision must not cost more than a wrong one.
    classes : array of shape (K,), optional
        The labels that the rows stand for; 0 … K − 1 by default.
    actions : sequence, optional
        Names of the columns; the classes by default where there are as many.

    Examples
    --------
    >>> from certifit import CostMatrix
    >>> costs = CostMatrix([[0, 1], [5, 0]], classes=["healthy", "ill"])
    >>> costs.decide([[0.9, 0.1], [0.7, 0.3]]).tolist()
    ['healthy', 'ill']
    """

    matrix: Array
    classes: Array
    actions: tuple[Any, ...]

    def __init__(self, matrix: Any, classes: Any = None, actions: Sequence[Any] | None = None) -> None:
        cost = check_numbers("the cost matrix", matrix)
        if cost.ndim != 2 or min(cost.shape) < 1 or cost.shape[0] < 2:
            raise ValueError(
                f"the cost matrix must have one row for each of at least two classes and one column for each action; "
                f"got shape {cost.shape}."
            )
        if not np.isfinite(cost).all():
            raise ValueError("the cost matrix must be finite.")
        labels = np.arange(cost.shape[0]) if classes is None else np.asarray(classes)
        if labels.ndim != 1:
            raise ValueError(f"classes must be a list of labels, one for each row of the cost matrix; got {classes!r}.")
        if labels.shape != (cost.shape[0],):
            raise ValueError(
                f"the cost matrix has {cost.shape[0]} rows, but there are {labels.shape[0]} classes: "
                f"{labels.tolist()!r}. Give one row for each class."
            )
        if len(set(labels.tolist())) < labels.shape[0]:
            raise ValueError(f"classes must differ from each other; got {labels.tolist()!r}.")
        if actions is None:
            square = cost.shape[0] == cost.shape[1]
            actions = labels.tolist() if square else list(range(cost.shape[1]))
            if square:
                _check_diagonal(cost, labels.tolist())
        if not isinstance(actions, Iterable) or len(actions := list(actions)) != cost.shape[1]:
            raise ValueError(f"actions must name the {cost.shape[1]} columns of the cost matrix; got {actions!r}.")
        object.__setattr__(self, "matrix", cost)
        object.__setattr__(self, "classes", labels)
        object.__setattr__(self, "actions", tuple(actions))

    def expected(self, probabilities: Any) -> Array:
        """Expected cost of each action, shape (n, A)."""
        return posterior_risk(probabilities, self.matrix)

    def decide(self, probabilities: Any) -> Array:
        """The least costly action of each row, by name."""
        return _named(self.actions, bayes_action(probabilities, self.matrix))


def _named(names: Sequence[Any], chosen: Array) -> Array:
    """The names of chosen numbers, whatever names are: lists and tuples too stay whole."""
    listed = np.empty(len(names), dtype=object)
    for a, name in enumerate(names):
        listed[a] = name
    return np.asarray(listed[chosen])


def least_costly(probabilities: Array, costs: Array) -> Array:
    """Number of the action with the least expected cost for each row, the first among equals; probabilities are not checked."""
    return np.asarray((probabilities @ costs).argmin(axis=1))


def _check_diagonal(cost: Array, labels: list[Any]) -> None:
    if (np.diagonal(cost) < 0).any():
        k = int(np.flatnonzero(np.diagonal(cost) < 0)[0])
        raise ValueError(
            f"the cost matrix has a negative diagonal: the right decision for class {labels[k]!r} costs {cost[k, k]:g}. "
            "Shift the row so that the right decision costs 0 or more."
        )
    wrong = cost < np.diagonal(cost)[:, None]
    if wrong.any():
        k, a = (int(v) for v in np.argwhere(wrong)[0])
        raise ValueError(
            f"the cost matrix makes a mistake cheaper than the right decision: saying {labels[a]!r} for class {labels[k]!r} "
            f"costs {cost[k, a]:g}, saying {labels[k]!r} costs {cost[k, k]:g}."
        )


@dataclass(frozen=True)
class Decisions:
    """What was decided, and what it is expected to cost.

    Parameters
    ----------
    action : array of shape (n,)
        Chosen actions by name; `declined` where declining is cheaper.
    expected : array of shape (n,)
        Expected cost of each decision under the model's probabilities.
    declined : array of shape (n,), bool
        Rows left to somebody else.
    """

    action: Array
    expected: Array
    declined: Array

    @property
    def mean_cost(self) -> float:
        """Mean expected cost of a row."""
        return float(self.expected.mean())


@dataclass(frozen=True)
class BayesRule:
    """Bayes' rule for given costs: the action of least expected cost, or none where declining costs less.

    Parameters
    ----------
    costs : CostMatrix or array of shape (K, A), or (n, K, A) for costs of each row's own
        What actions cost.
    reject_cost : float or array of shape (n,), optional
        Cost of declining to decide.
    declined : object, default=None
        What stands for a declined decision.

    Examples
    --------
    >>> from certifit import BayesRule
    >>> rule = BayesRule([[0, 1], [1, 0]], reject_cost=0.2)
    >>> rule([[0.9, 0.1], [0.5, 0.5]]).action.tolist()
    [0, None]
    """

    costs: Any
    reject_cost: Any = None
    declined: Any = None

    def __call__(self, probabilities: Any, classes: Any = None) -> Decisions:
        """Decide the rows whose class probabilities are given."""
        p = check_probabilities("probabilities", probabilities).astype(np.float64)
        if isinstance(self.costs, CostMatrix):
            matrix, names = self.costs.matrix, self.costs.actions
        else:
            matrix = check_numbers("costs", self.costs)
            if matrix.ndim not in (2, 3):
                raise ValueError(
                    f"costs must have shape (K, actions), or (n, K, actions) for costs of each row's own; got {self.costs!r:.60}."
                )
            if matrix.ndim == 2:
                known = CostMatrix(matrix, classes)
                names = known.actions
            else:
                square = matrix.shape[1] == matrix.shape[2]
                names = (
                    tuple(np.asarray(classes).tolist())
                    if classes is not None and square
                    else tuple(range(matrix.shape[-1]))
                )
        chosen = bayes_action(p, matrix, self.reject_cost)
        expected = posterior_risk(p, matrix)
        declined = chosen == REJECT
        least = expected.min(axis=1)
        if self.reject_cost is not None:
            least = np.where(
                declined, np.broadcast_to(np.asarray(self.reject_cost, dtype=np.float64), least.shape), least
            )
        return Decisions(_named((*names, self.declined), chosen), least, declined)  # REJECT is the last


def decide(model: Any, X: Any, costs: Any, *, reject_cost: Any = None, declined: Any = None) -> Decisions:
    """Decisions of least expected cost from any classifier with probabilities.

    Parameters
    ----------
    model : fitted classifier with `predict_proba` and `classes_`
    X : array or data frame of shape (n, d)
    costs : CostMatrix or array of shape (K, A), or (n, K, A)
        ``costs[k, a]``: cost of action a when class k (in the order of ``model.classes_``) is true.
    reject_cost : float or array of shape (n,), optional
        Cost of leaving a row to somebody else.
    declined : object, default=None
        What stands for a declined decision.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LDA, decide
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> decide(LDA().fit(X, y), [[1.4]], [[0, 1], [9, 0]]).action.tolist()
    [1]
    """
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"model must be a classifier with predict_proba; {type(model).__name__} has none. "
            "certifit.CalibratedClassifier gives any classifier probabilities."
        )
    if not isinstance(costs, CostMatrix) and (isinstance(costs, str) or np.ndim(costs) == 2):
        costs = CostMatrix(costs, model.classes_)
    elif isinstance(costs, CostMatrix) and costs.classes.tolist() != np.asarray(model.classes_).tolist():
        raise ValueError(
            f"costs are for the classes {costs.classes.tolist()!r}, the model knows {np.asarray(model.classes_).tolist()!r}."
        )
    return BayesRule(costs, reject_cost, declined)(model.predict_proba(X), model.classes_)


def decision_cost(
    y: Any,
    decisions: Decisions,
    costs: CostMatrix,
    *,
    reject_cost: float = 0.0,
    level: float = 0.95,
    sample_weight: Any = None,
) -> Any:
    """Mean cost that decisions had on rows whose classes are known, with an interval.

    A row costs what `costs` says of its class and the action taken, or `reject_cost` where the decision was declined.

    Parameters
    ----------
    y : array of shape (n,)
        True labels.
    decisions : Decisions
        From `decide` or a `BayesRule`.
    costs : CostMatrix
    reject_cost : float, default=0
        Cost of a declined row.
    level : float, default=0.95
    sample_weight : array of shape (n,), optional

    Returns
    -------
    Risk
        `value`, `low`, `high`.
    """
    labels = check_labels("y", y, decisions.action.shape[0])
    _, (codes,) = class_codes(costs.classes, ("y", labels))
    check_real("reject_cost", reject_cost)
    number = {name: a for a, name in enumerate(costs.actions)}
    each = np.full(codes.shape[0], float(reject_cost))
    kept = np.flatnonzero(~decisions.declined)
    each[kept] = [costs.matrix[codes[i], number[decisions.action[i]]] for i in kept]
    return interval(each, level=level, sample_weight=check_sample_weight(sample_weight, codes.shape[0]))
