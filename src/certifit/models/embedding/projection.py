"""What projections onto leading directions share: coordinates, the way back, and pictures of what was kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.axes import axes_of
from certifit.base import CertifiedEstimator, KeepsPrecision, TakesSparse
from certifit.data.gate import check_sample_weight, check_x, like_input
from certifit.data.sparse import check_sparse
from certifit.parameters import MAX_ITER, RANDOM_STATE, TOL, Declared, Fitted

__all__ = ["Iterative", "Projection"]

ARROW = 0.8  # length of the longest arrow of a biplot, in that of the farthest row


class Iterative(Declared, kw_only=True):
    """How long a solver of leading directions goes on, and what it draws."""

    tol: float = TOL
    max_iter: int = MAX_ITER.but(text="Most iterations of the iterative solvers.")
    random_state: Any = RANDOM_STATE

    solver_: str = Fitted("str", "The solver used.")
    n_iter_: int = Fitted("int", "Iterations; 1 of the solvers that do not iterate.")

    def _rows_of_weight(self, X: Any, sample_weight: Any) -> tuple[Matrix, Matrix, Array]:
        """X after the gate, and those of its rows that count, with their weights."""
        X = check_x(self, X, reset=True)
        weight = check_sample_weight(sample_weight, X.shape[0])
        kept = weight > 0
        return (X, X, weight) if kept.all() else (X, X[kept], weight[kept])


class Projection(Declared, ClassNamePrefixFeaturesOutMixin, TakesSparse, KeepsPrecision, CertifiedEstimator):
    """Rows in the coordinates of a few orthogonal directions."""

    components_: Array = Fitted("array of shape (n_components, n_features)", "The directions, the longest first.")
    explained_variance_: Array = Fitted("array of shape (n_components,)", "Variance along each of them.")
    explained_variance_ratio_: Array = Fitted("array of shape (n_components,)", "Its share of the whole.")
    singular_values_: Array = Fitted("array of shape (n_components,)", "Singular values of the (weighted) rows.")

    def _origin(self) -> Array:
        """What is taken from the rows first."""
        return np.zeros(self.components_.shape[1])

    def _unit(self) -> Array:
        """What coordinates are divided by."""
        return np.ones(self.components_.shape[0])

    def transform(self, X: Any) -> Array:
        """Coordinates along the directions."""
        check_is_fitted(self, "components_")
        return self._coordinates(self._checked(X))

    def _checked(self, X: Any) -> Matrix:
        return check_x(self, X, reset=False, accept_sparse=("csr", "csc"))

    def _coordinates(self, rows: Matrix) -> Array:
        directions = self.components_.astype(np.float64).T
        # The origin is taken from dense rows before the product, where nothing cancels yet.
        if isinstance(rows, np.ndarray):
            found = (rows - self._origin()) @ directions
        else:
            found = np.asarray(rows @ directions) - self._origin() @ directions
        return like_input(rows, found / self._unit())

    def inverse_transform(self, X: Any) -> Array:
        """Rows that have these coordinates, within the span of the directions.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Coordinates.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self, "components_")
        check_sparse(X)
        X = X.toarray() if is_sparse(X) else X
        given = np.asarray(X, dtype=np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64)
        if given.ndim != 2 or given.shape[1] != self.components_.shape[0]:
            raise ValueError(
                f"X must have {self.components_.shape[0]} columns, one for each component; got shape {given.shape}."
            )
        return like_input(given, (given * self._unit()) @ self.components_.astype(np.float64) + self._origin())

    def reconstruction_error(self, X: Any) -> Array:
        """Squared distance of each row from its reconstruction: large for rows that the directions do not describe."""
        check_is_fitted(self, "components_")
        rows = self._checked(X)
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        back = self.inverse_transform(self._coordinates(dense.astype(np.float64)))
        return like_input(rows, ((dense - back) ** 2).sum(axis=1))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def plot_scree(self, ax: Any = None) -> Any:
        """Share of the variance along each direction, and of all up to it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new ones by default.

        Returns
        -------
        matplotlib Axes
        """
        check_is_fitted(self, "components_")
        ax = axes_of(ax)
        number = np.arange(1, self._n_features_out + 1)
        ax.bar(number, self.explained_variance_ratio_, color="#b8c4d6", label="each")
        ax.plot(number, np.cumsum(self.explained_variance_ratio_), "o-", color="#1f4e9c", label="together")
        ax.set(xlabel="component", ylabel="share of the variance", ylim=(0, 1.02))
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False)
        return ax

    def biplot(self, X: Any, components: tuple[int, int] = (0, 1), ax: Any = None) -> Any:
        """Rows as points in the plane of two directions, columns as arrows: how much each takes part in them.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to draw.
        components : pair of int
            Which two, from 0 on; the axes count from 1, as the scree plot does.
        ax : matplotlib Axes, optional
            Where to draw; new ones by default.

        Returns
        -------
        matplotlib Axes
        """
        points = np.asarray(self.transform(X))
        first, second = components
        if not all(0 <= j < self._n_features_out for j in components) or first == second:
            raise ValueError(
                f"components must be two different numbers from 0 to {self._n_features_out - 1}; got {components!r}."
            )
        ax = axes_of(ax)
        ax.scatter(points[:, first], points[:, second], s=8, color="#8896ab")
        arrows = self.components_[[first, second]].T * np.sqrt(self.explained_variance_[[first, second]])
        longest = float(np.abs(arrows).max()) or 1.0
        reach = ARROW * float(np.abs(points[:, [first, second]]).max()) / longest
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.components_.shape[1])])
        for (x, y), name in zip(arrows * reach, names, strict=True):
            ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "->", "color": "#b3261e"})
            above = "bottom" if y >= 0 else "top"
            ax.text(x, y, str(name), color="#b3261e", fontsize=8, ha="center", va=above)
        ax.update_datalim(arrows * reach)
        ax.autoscale_view()
        share = self.explained_variance_ratio_
        ax.set(
            xlabel=f"component {first + 1} ({share[first]:.0%} of the variance)",
            ylabel=f"component {second + 1} ({share[second]:.0%})",
        )
        return ax
