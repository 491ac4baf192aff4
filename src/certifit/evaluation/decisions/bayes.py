"""Decision theory: the action with the least expected cost, and what remains when every decision is the best one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.integrate import IntegrationWarning, quad

from certifit._types import Array
from certifit.data.gate import check_numbers, check_real
from certifit.evaluation.decisions.estimates import bayes_estimate
from certifit.evaluation.losses import Loss
from certifit.evaluation.metrics.inputs import check_probabilities
from certifit.parameters.docstrings import takes_as

__all__ = [
    "bayes_action",
    "bayes_risk",
    "bayes_risk_of_densities",
    "posterior_risk",
    "rule_risk",
    "rule_risk_of_densities",
]

REJECT = -1
WHOLE = 1e-4  # how far the total of a density may be from 1
QUANTILES = (1e-9, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0 - 1e-9)  # where a density that knows them is cut into pieces


def posterior_risk(probabilities: Any, cost_matrix: Any) -> Array:
    """Expected cost of each action: Σ_k p_k · cost[k, action].

    Parameters
    ----------
    probabilities : array of shape (n, K), or (n,) for the second of two classes
    cost_matrix : array of shape (K, A), or (n, K, A) for costs of each example's own
        ``cost_matrix[k, a]``: cost of action a when class k is true. Actions need not be classes.

    Returns
    -------
    array of shape (n, A)

    Examples
    --------
    >>> from certifit.evaluation.decisions.bayes import posterior_risk
    >>> posterior_risk([0.25], [[0, 1], [4, 0]])
    array([[1.  , 0.75]])
    """
    p = check_probabilities("probabilities", probabilities).astype(np.float64)
    cost = check_numbers("cost_matrix", cost_matrix)
    if cost.ndim not in (2, 3) or cost.shape[-2] != p.shape[1] or (cost.ndim == 3 and cost.shape[0] != p.shape[0]):
        raise ValueError(
            f"cost_matrix must have shape ({p.shape[1]}, actions), or ({p.shape[0]}, {p.shape[1]}, actions) for costs of "
            f"each example's own; got {cost.shape}."
        )
    if not np.isfinite(cost).all():
        raise ValueError("cost_matrix must be finite.")
    return np.asarray(p @ cost if cost.ndim == 2 else np.einsum("nk,nka->na", p, cost))


def bayes_action(posterior: Any, loss: Any, reject_cost: Any = None, *, weight: Any = None) -> Any:
    """The action with the least expected loss under a posterior: of classes, or of a number.

    Parameters
    ----------
    posterior : array of shape (n, K), or (n,) for the second of two classes, with costs; otherwise a distribution of a number
        With costs, class probabilities of n examples. With a loss, a conjugate posterior such as `BetaBernoulli`, a frozen
        SciPy distribution, or an array of possible values or draws.
    loss : array of shape (K, A) or (n, K, A), str or Loss
        Costs as in `posterior_risk`, or a loss of the package: "squared" asks for the mean, "absolute" for the median,
        ``Quantile(q)`` for a quantile, "zero_one" for the mode (of draws: the most frequent value), and any other for what
        its slopes say.
    reject_cost : float or array of shape (n,), optional
        With costs: the cost of declining.
    weight : array of shape (n,), optional
        With an array of values: their probabilities, up to a factor.

    Returns
    -------
    array of shape (n,), or number
        With costs, numbers of actions, the first among equals, and −1 where declining costs less. With a loss, the number; one
        for each coordinate of a distribution of several.

    Examples
    --------
    >>> from certifit import BetaBernoulli, bayes_action
    >>> bayes_action([0.1, 0.5, 0.95], [[0, 1], [1, 0]], reject_cost=0.2)
    array([ 0, -1,  1])
    >>> coin = BetaBernoulli(2, 2).update([1, 1, 0, 1])
    >>> [round(bayes_action(coin, loss), 4) for loss in ("squared", "absolute", "zero_one")]
    [0.625, 0.6359, 0.6667]
    """
    if isinstance(loss, (str, Loss)):
        if reject_cost is not None:
            raise ValueError("reject_cost goes with costs of classes; a number is always named.")
        return bayes_estimate(posterior, loss, weight)
    if weight is not None:
        raise ValueError("weight goes with values of a number; class probabilities are weights already.")
    expected = posterior_risk(posterior, loss)
    action = expected.argmin(axis=1)
    if reject_cost is None:
        return action
    declined = check_numbers("reject_cost", reject_cost)
    if declined.shape not in ((), (expected.shape[0],)) or not np.isfinite(declined).all():
        raise ValueError(f"reject_cost must be a finite number, or one for each row; got {reject_cost!r}.")
    return np.where(expected.min(axis=1) > declined, REJECT, action)


def bayes_risk(joint: Any, cost_matrix: Any = None) -> float:
    """Least possible expected cost when x and the class are discrete with known joint probabilities.

    Parameters
    ----------
    joint : array of shape (values of x, K)
        P(x, class); sums to 1.
    cost_matrix : array of shape (K, A), optional
        0-1 loss by default.

    Examples
    --------
    >>> from certifit import bayes_risk
    >>> round(bayes_risk([[0.4, 0.1], [0.2, 0.3]]), 4)
    0.3
    """
    table = _joint(joint)
    return float((table @ _cost(cost_matrix, table.shape[1])).min(axis=1).sum())


def rule_risk(joint: Any, rule: Any, cost_matrix: Any = None) -> float:
    """Expected cost of a given rule when x and the class are discrete with known joint probabilities.

    Parameters
    ----------
    joint : array of shape (values of x, K)
        P(x, class); sums to 1.
    rule : array of shape (values of x,)
        Number of the action taken at each value of x.
    cost_matrix : array of shape (K, A), optional
        0-1 loss by default.

    Examples
    --------
    >>> from certifit import rule_risk
    >>> joint = [[0.4, 0.1], [0.2, 0.3]]
    >>> round(rule_risk(joint, [0, 0]), 4), round(rule_risk(joint, [0, 1]), 4)
    (0.4, 0.3)
    """
    table = _joint(joint)
    cost = _cost(cost_matrix, table.shape[1])
    action = np.asarray(rule)
    known = action.dtype.kind in "iub" and action.shape == (table.shape[0],)
    if not known or (action < 0).any() or (action >= cost.shape[1]).any():
        raise ValueError(
            f"rule must name one action, from 0 to {cost.shape[1] - 1}, for each of the {table.shape[0]} values of x; "
            f"got {rule!r}."
        )
    return float((table @ cost)[np.arange(table.shape[0]), action.astype(np.intp)].sum())


def bayes_risk_of_densities(
    densities: Sequence[Callable[[float], float]],
    priors: Any,
    cost_matrix: Any = None,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    points: Sequence[float] | None = None,
) -> float:
    """Least possible expected cost for a number x with known density in each class, by quadrature.

    Parameters
    ----------
    densities : sequence of callables
        Density of x in each class.
    priors : array of shape (K,)
        Probabilities of the classes.
    cost_matrix : array of shape (K, A), optional
        0-1 loss by default.
    low, high : float
        Where the densities live.
    points : sequence of floats, optional
        Where they jump or are narrow; for ``pdf`` of SciPy's distributions their quantiles are taken too.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from certifit.evaluation.decisions.bayes import bayes_risk_of_densities
    >>> round(bayes_risk_of_densities([norm(-1).pdf, norm(1).pdf], [0.5, 0.5]), 4)
    0.1587
    """
    return _integrated(densities, priors, cost_matrix, low, high, points, lambda x, costs: float(costs.min()))


@takes_as(bayes_risk_of_densities)
def rule_risk_of_densities(
    densities: Sequence[Callable[[float], float]],
    priors: Any,
    rule: Callable[[float], int],
    cost_matrix: Any = None,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    points: Sequence[float] | None = None,
) -> float:
    """Expected cost of a given rule for a number x with known density in each class, by quadrature.

    Parameters
    ----------
    rule : callable
        The number of the action taken at x.
    points : sequence of floats, optional
        Where the rule or a density jumps.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from certifit import rule_risk_of_densities
    >>> always = rule_risk_of_densities([norm(-1).pdf, norm(1).pdf], [0.75, 0.25], lambda x: 0)
    >>> halfway = rule_risk_of_densities([norm(-1).pdf, norm(1).pdf], [0.75, 0.25], lambda x: x > 0, low=-9, high=9, points=[0])
    >>> round(always, 4), round(halfway, 4)
    (0.25, 0.1587)
    """

    def paid(x: float, costs: Array) -> float:
        action = rule(x)
        if action not in range(costs.shape[0]):
            raise ValueError(
                f"rule must name an action from 0 to {costs.shape[0] - 1} at every x; at {x:g} it says {action!r}."
            )
        return float(costs[int(action)])

    return _integrated(densities, priors, cost_matrix, low, high, points, paid)


def _integrated(
    densities: Sequence[Callable[[float], float]],
    priors: Any,
    cost_matrix: Any,
    low: float,
    high: float,
    points: Sequence[float] | None,
    paid: Callable[[float, Array], float],
) -> float:
    """∫ of what is paid at x, out of the costs Σ_k π_k f_k(x)·C[k, a] of the actions."""
    share = check_probabilities("priors", np.atleast_2d(check_numbers("priors", priors)))[0]
    if len(densities) != share.shape[0]:
        raise ValueError(f"densities and priors must be as many; got {len(densities)} and {share.shape[0]}.")
    cost = _cost(cost_matrix, share.shape[0])
    check_real("low", low, high=high, open_high=True)
    ends = _pieces(densities, low, high, points)
    for k, density in enumerate(densities):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IntegrationWarning)  # the total tells
            mass = _over(lambda x, of=density: float(of(x)), ends)  # type: ignore[misc]
        if not abs(mass - 1.0) <= WHOLE:
            raise ValueError(
                f"densities[{k}] adds up to {mass:.3g} from {low:g} to {high:g}, not to 1: say by low, high and points where it "
                "lives and where it is narrow."
            )
    return _over(lambda x: paid(x, share * np.array([float(density(x)) for density in densities]) @ cost), ends)


def _pieces(
    densities: Sequence[Callable[[float], float]], low: float, high: float, points: Sequence[float] | None
) -> list[float]:
    """Ends of the pieces that are integrated one by one: at the points given, and at quantiles of densities that know them."""
    found = {float(point) for point in (() if points is None else points)}
    for density in densities:
        if not callable(density):
            raise TypeError(f"densities must be functions of x; got {density!r:.60}.")
        quantiles = getattr(getattr(density, "__self__", None), "ppf", None)
        if quantiles is not None:
            found |= {float(q) for q in np.ravel(quantiles(QUANTILES))}
    return [low, *sorted(point for point in found if low < point < high), high]


def _over(f: Callable[[float], float], ends: list[float]) -> float:
    return float(sum(quad(f, a, b, limit=200)[0] for a, b in pairwise(ends)))


def _joint(joint: Any) -> Array:
    table = check_numbers("joint", joint)
    if table.ndim != 2 or not np.isfinite(table).all() or (table < 0).any() or abs(table.sum() - 1.0) > 1e-6:
        raise ValueError("joint must be a table of probabilities P(x, class) that sums to 1.")
    return table


def _cost(cost_matrix: Any, k: int) -> Array:
    cost = 1.0 - np.eye(k) if cost_matrix is None else check_numbers("cost_matrix", cost_matrix)
    if cost.ndim != 2 or cost.shape[0] != k or not np.isfinite(cost).all():
        raise ValueError(f"cost_matrix must be finite, with one row for each of the {k} classes; got {cost.shape}.")
    return cost
