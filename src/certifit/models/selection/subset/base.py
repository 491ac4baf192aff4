"""What the best subsets of all models share: the parameters, the choice of a size, and the proof."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certifit._types import Array
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.evaluation.losses import Loss
from certifit.models.selection.selector import SelectorOfSizes
from certifit.models.selection.subset.branching import Limits, SubsetSearch
from certifit.models.selection.subset.minorant import Likelihood
from certifit.models.selection.units import concealed, rounding_of
from certifit.names import stored
from certifit.parameters import TOL, VERBOSE, Choice, Either, Fitted, Integer, Nothing, Parameter, Real
from certifit.progress import Progress
from certifit.representation.basis.summaries import mean_and_deviation

__all__ = ["BaseSubset", "LikelihoodInUnits", "SubsetPath"]


@stored("SubsetPath")
class SubsetPath(NamedTuple):
    """The best subset of each size; unpacks as ``supports, objectives, bounds, nodes``."""

    supports: Array
    """Which columns, shape (max_size + 1, n_features): row s has s of them (fewer where columns depend on each other)."""
    objectives: Array
    """The mean loss of each, in the units of y."""
    bounds: Array
    """What no subset of that size can go below."""
    nodes: int
    """Subsets that were looked at."""

    def rescaled(self, unit: float) -> SubsetPath:
        """The same with the mean loss in another unit."""
        return self._replace(objectives=unit * self.objectives, bounds=unit * self.bounds)

    def limited(self, limit: float) -> SubsetPath:
        """The same where no more than that bounds subsets of two columns or more."""
        return self._replace(bounds=np.r_[self.bounds[:2], np.minimum(self.bounds[2:], limit)])


@dataclass(frozen=True)
class LikelihoodInUnits:
    """A likelihood of the columns in units of their own, and the way back."""

    likelihood: Likelihood
    useful: Array
    """Which columns are not constant."""
    mean: Array
    deviation: Array
    rounding: float
    """Of the entries of the columns."""

    @staticmethod
    def of(X: Array, y: Array, weight: Array, loss: Loss) -> LikelihoodInUnits:
        """In units of the weighted rows."""
        share = weight / weight.sum()
        mean, deviation = mean_and_deviation(X, share)
        useful = deviation > 0
        rows = np.ones((X.shape[0], 1 + int(useful.sum())))
        rows[:, 1:] = (X[:, useful] - mean[useful]) / deviation[useful]
        rounding = rounding_of(X, mean, deviation)
        return LikelihoodInUnits(Likelihood.of(rows, y, share, loss), useful, mean, deviation, rounding)

    def conceals(self) -> bool:
        """Whether the curvature in the coefficients does not tell all that the columns can do."""
        return concealed(self.likelihood.Z[:, 1:] * np.sqrt(self.likelihood.p)[:, None], self.rounding) is not None

    def in_units_of_the_data(self, w: Array, support: Array) -> tuple[Array, Array]:
        """Coefficients of all columns, shape (m, d), and m intercepts, from those of a subset in units."""
        coef = np.zeros((w.shape[1], support.shape[0]))
        with np.errstate(over="ignore", invalid="ignore"):  # what is beyond the range is refused
            coef[:, support] = w[1:].T / self.deviation[support]
            return coef, w[0] - (coef[:, support] * self.mean[support]).sum(axis=1)


class BaseSubset(SelectorOfSizes, CertifiedEstimator):
    """Parameters, choice and evidence of `BestSubset` and `BestSubsetClassifier`."""

    max_size: int | None = Parameter(10, Either(Integer(0), Nothing()), "Most columns of a subset; None sets no limit.")
    choose: Any = Parameter(
        "bic",
        Either(Choice("bic", "aic", "size"), Real(0)),
        'Which size: the one with the least BIC or AIC, `max_size` itself ("size"), or the one with the least '
        "mean loss + price·size for a number, the price of a column.",
    )
    max_nodes: int = Parameter(1_000_000, Integer(1), "Most subsets to look at before the search is stopped.")
    tol: float = TOL
    time_limit: float | None = Parameter(
        60.0,
        Either(Real(0, infinite=True), Nothing()),
        "Seconds after which the search ends with the best subsets so far, and bounds of all others; None sets no limit.",
    )
    verbose: int = VERBOSE

    path_: SubsetPath = Fitted("SubsetPath", "The best subset of each size.")
    certificate_: Certificate = Fitted("Certificate", "Proof that no other subset is better.")

    weights_are_counts = True
    """BIC knows how many rows there are."""

    ylabel = "mean loss"

    @property
    def _seconds(self) -> float:
        return math.inf if self.time_limit is None else float(self.time_limit)

    def _search(self, data: LikelihoodInUnits, clock: Progress) -> tuple[SubsetSearch, SubsetPath]:
        """The best subsets for a likelihood of the columns that are not constant."""
        d = data.useful.shape[0]
        most = d if self.max_size is None else min(int(self.max_size), d)
        kept = min(most, int(data.useful.sum()))
        # Half of the tolerance is for what is left aside, half for rounding.
        slack = min(0.5 * self.tol, 1e30) * data.likelihood.scale
        found = SubsetSearch(data.likelihood, Limits(kept, int(self.max_nodes), self._seconds, slack), clock)
        found.run()
        supports = np.zeros((most + 1, d), dtype=bool)
        sizes = np.minimum(np.arange(most + 1), kept)  # a constant column adds nothing
        supports[:, data.useful] = found.supports[sizes]
        path = SubsetPath(supports, found.values[sizes], found.bounds[sizes], found.nodes)
        return found, path.limited(0.0) if data.conceals() else path

    def _size(self, path: SubsetPath, deviances: Array, n: float, price: float, each: int = 1) -> int:
        """The size that is wanted, where a column has `each` coefficients; `deviances` are −2 ln likelihood."""
        sizes = np.arange(path.objectives.shape[0])
        if self.choose == "size":
            return int(sizes[-1])
        if not isinstance(self.choose, str):
            return int(np.argmin(path.objectives + price * sizes))
        return int(np.argmin(deviances + each * sizes * (np.log(n) if self.choose == "bic" else 2.0)))

    def _proof(
        self,
        path: SubsetPath,
        size: int,
        objective: float,
        scale: float,
        price: float,
        clock: Progress,
        note: str = "",
    ) -> Certificate:
        """What the search has proven of the subset of that size, whose objective was reached."""
        words = f"subsets of {size} column{'' if size == 1 else 's'}"
        bound = float(path.bounds[size])
        if not isinstance(self.choose, str):
            words = f"subsets of at most {path.supports.shape[0] - 1} columns"
            costs = price * np.arange(path.supports.shape[0])
            objective, bound = objective + float(costs[size]), float((path.bounds + costs).min())
        if path.nodes >= self.max_nodes:
            note = f"{note} The search was stopped after max_nodes={self.max_nodes} subsets."
        elif clock.seconds >= self._seconds:
            note = f"{note} The search was stopped after time_limit={self._seconds:g} seconds."
        return Certificate(
            "branch and bound",
            objective=objective,
            bound=bound,
            scale=scale,
            tol=self.tol,
            iterations=path.nodes,
            seconds=clock.seconds,
            note=note.strip(),
            claim=f"best of all {words}",
        )

    def _draw(self, ax: Any) -> str:
        sizes = np.arange(self.path_.objectives.shape[0])
        ax.fill_between(sizes, self.path_.bounds, self.path_.objectives, alpha=0.25, label="not ruled out")
        ax.plot(sizes, self.path_.objectives, marker="o", label="best subset found")
        return self.ylabel
