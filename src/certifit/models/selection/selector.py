"""What every selection of columns shares: the support, and rows with these columns alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.axes import axes_of, drawn
from certifit.base import KeepsPrecision
from certifit.data.gate import check_x
from certifit.parameters import Declared, Fitted

__all__ = ["DenseSelector", "Selector", "SelectorOfSizes"]


class Selector(Declared, KeepsPrecision):
    """A transformer that keeps some of the columns as they are."""

    support_: Array = Fitted("array of bool of shape (n_features,)", "Which columns are kept.")

    def transform(self, X: Any) -> Matrix:
        """The columns that were selected."""
        check_is_fitted(self)
        tags = get_tags(self).input_tags
        sparse: Any = ("csr", "csc") if tags.sparse else False
        return check_x(self, X, reset=False, accept_sparse=sparse, allow_nan=tags.allow_nan)[:, self.support_]

    def inverse_transform(self, X: Any) -> Matrix:
        """Rows with all columns again, zero in those that were not selected."""
        check_is_fitted(self)
        kept = np.flatnonzero(self.support_)
        found = X.shape[1] if is_sparse(X) else np.asarray(X).shape[-1]
        if found != kept.shape[0]:
            raise ValueError(f"X has {found} columns; {kept.shape[0]} were selected.")
        if is_sparse(X):
            columns = X.tocoo()
            shape = (X.shape[0], self.support_.shape[0])
            return sp.csr_array((columns.data, (columns.coords[0], kept[columns.coords[1]])), shape=shape)
        rows = np.asarray(X)
        whole = np.zeros((rows.shape[0], self.support_.shape[0]), dtype=rows.dtype)
        whole[:, kept] = rows
        return whole

    def get_support(self, indices: bool = False) -> Array:
        """The columns that were selected, as a mask or by their numbers."""
        check_is_fitted(self)
        return np.flatnonzero(self.support_) if indices else self.support_

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that were selected."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if input_features is None:
            given = [f"x{j}" for j in range(self.support_.shape[0])] if names is None else names
        else:
            given = np.asarray(input_features, dtype=object)
            if names is not None and not np.array_equal(given, names):
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(given) != self.support_.shape[0]:
                raise ValueError("input_features should have length equal to number of features (n_features_in_)")
        return np.asarray(given, dtype=object)[self.support_]

    def _bars(self, ax: Any, values: Array, threshold: float, xlabel: str, ylabel: str) -> Any:
        """What speaks for each column, in falling order, and how much is enough."""
        ax, order = axes_of(ax), np.argsort(-values, kind="stable")
        ax.bar(np.arange(order.shape[0]), values[order], color=np.where(self.support_[order], "tab:blue", "0.7"))
        if np.isfinite(threshold):
            ax.axhline(threshold, color="gray", linestyle=":", label="threshold")
            ax.legend()
        ax.xaxis.get_major_locator().set_params(integer=True)  # there is no half of a column
        ax.set(xlabel=xlabel, ylabel=ylabel)
        return ax


class DenseSelector(Selector):
    """A selection for a target, from columns that are not sparse."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = False
        return tags


class SelectorOfSizes(Selector):
    """A selection that knows subsets of several sizes; a subclass draws them."""

    def _draw(self, ax: Any) -> str:
        """Draw the subsets over their sizes, and say what is drawn."""
        raise TypeError(f"{type(self).__name__} must say what it draws.")

    @drawn
    def plot(self, ax: Any = None) -> Any:
        """How good the subsets of each size are, and the size that was chosen."""
        check_is_fitted(self)
        ax = axes_of(ax)
        ax.set_ylabel(self._draw(ax))
        ax.axvline(int(self.support_.sum()), color="gray", linestyle=":", label="chosen")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("columns")
        ax.legend()
        return ax
