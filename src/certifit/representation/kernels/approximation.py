"""Features whose products are those of a kernel, nearly: for linear models on as many rows as there are.

Nyström     φ(x) = L⁻¹ k(C, x) with k(C, C) = L Lᵀ for landmarks C: exact on the span of the landmarks
Fourier     φ_j(x) = √(2/D) cos(ω_j·x + b_j), ω drawn from the Fourier transform of k: φ(x)·φ(z) has the mean k(x, z)
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, is_sparse
from certifit.base import KeepsPrecision, TakesSparse
from certifit.data.equal_rows import equal_rows
from certifit.data.gate import check_sample_weight, check_x, like_input
from certifit.parameters import RANDOM_STATE, Choice, Declared, Domain, Either, Fitted, Integer, OneOf, Parameter, Real
from certifit.representation.kernels import KERNELS, RBF, Kernel, Laplacian, Precomputed, resolve_kernel
from certifit.representation.kernels.points import Points, checked, new_rows
from certifit.representation.kernels.span import Span, row_parts

__all__ = ["Nystroem", "RandomFourierFeatures", "Similarity"]


class Similarity(Domain):
    """A kernel by its name, a kernel object, or a function of two matrices."""

    def refuses(self, value: Any) -> str | None:
        """Unknown names, and what is no function."""
        if isinstance(value, Kernel) or (callable(value) and not isinstance(value, type)):
            return None
        names = ", ".join(repr(name) for name in KERNELS)
        named = isinstance(value, str) and value in KERNELS
        return None if named else f"one of {names}, a certifit.kernels.Kernel, or a function of two matrices"

    def describe(self) -> str:
        """``str, Kernel or callable``."""
        return "str, Kernel or callable"

    def nonsense(self) -> list[Any]:
        """Names and objects that are no kernels."""
        return ["no such name", 3, None]


class Nystroem(Declared, ClassNamePrefixFeaturesOutMixin, KeepsPrecision, BaseEstimator):
    """Nyström's features of a kernel: coordinates in the span of landmarks, different rows drawn by their weight.

    Equal rows count as one with the sum of their weights. Landmarks that others span already are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Nystroem
    >>> from certifit.kernels import RBF
    >>> X = np.linspace(-3, 3, 100).reshape(50, 2)
    >>> Z = Nystroem(kernel=RBF(gamma=0.5), n_components=50).fit_transform(X)
    >>> bool(np.allclose(Z @ Z.T, RBF(gamma=0.5)(X), atol=1e-6))
    True
    """

    kernel: Any = Parameter("rbf", Similarity(), "A name, a kernel object, or a function of two matrices.")
    n_components: int = Parameter(100, Integer(1), "Landmarks.")
    random_state: Any = RANDOM_STATE.but(text="Draws the landmarks.")

    kernel_: Kernel = Fitted("Kernel", "The kernel with all of its parameters numbers.")
    points_: Points = Fitted("Points", "The landmarks.")
    span_: Span = Fitted("Span", "The triangular factor of their Gram matrix.")
    component_indices_: Array = Fitted("array of shape (n_landmarks,)", "The rows of the fit that the landmarks are.")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Draw the landmarks; of a precomputed kernel, rows and columns of the Gram matrix that X then is."""
        kernel = resolve_kernel(self.kernel)
        given = isinstance(kernel, Precomputed)
        rows = check_x(self, X, reset=True, **({"accept_sparse": False} if given else {}))
        if given and rows.shape[0] != rows.shape[1]:
            raise ValueError(
                f"X must be the square Gram matrix of the rows under kernel='precomputed'; got shape {rows.shape}."
            )
        weight = check_sample_weight(sample_weight, rows.shape[0])
        kept = np.flatnonzero(weight > 0)
        if given:
            first, share, points = np.arange(kept.shape[0]), weight[kept], Points(kernel, kept)
        else:
            distinct = (rows.tocsr() if is_sparse(rows) else rows)[kept]
            first, which = equal_rows(distinct, np.zeros(distinct.shape[0]))
            share, points = np.bincount(which, weights=weight[kept]), Points.of(kernel, distinct[first])
        chosen = np.arange(len(points))
        if self.n_components < len(points):
            rng = check_random_state(self.random_state)
            chosen = np.sort(rng.choice(len(points), self.n_components, replace=False, p=share / share.sum()))
        landmarks = points.take(chosen)
        gram = (
            checked(kernel, np.array(rows[np.ix_(landmarks.rows, landmarks.rows)], dtype=np.float64)) if given else None
        )
        self.span_ = Span.of(landmarks.gram() if gram is None else gram)
        self.points_ = landmarks.take(self.span_.chosen)
        self.component_indices_ = kept[first[chosen[self.span_.chosen]]]
        self.kernel_, self._n_features_out = points.kernel, len(self.points_)
        return self

    def transform(self, X: Any) -> Array:
        """The features, shape (n_samples, n_landmarks); of a precomputed kernel from k(x, row) with all rows of the fit."""
        check_is_fitted(self)
        rows = new_rows(self, self.kernel_, X)
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [self.span_.features(block) for _, block in self.points_.similarities(rows)]
        return like_input(rows, np.concatenate(parts))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed) or self.kernel == "precomputed"
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags


class RandomFourierFeatures(Declared, ClassNamePrefixFeaturesOutMixin, TakesSparse, KeepsPrecision, BaseEstimator):
    """Random waves whose products have the Gaussian or the Laplacian kernel as their mean (Rahimi and Recht 2007).

    The error of φ(x)·φ(z) falls as 1/√n_components, whatever the number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import RandomFourierFeatures
    >>> from certifit.kernels import RBF
    >>> X = np.eye(50)
    >>> Z = RandomFourierFeatures(gamma=0.5, n_components=4000, random_state=0).fit_transform(X)
    >>> bool(np.abs(Z @ Z.T - RBF(gamma=0.5)(X)).max() < 0.1)
    True
    """

    kernel: str = OneOf(("rbf", "laplacian"), "Waves drawn from a normal or a Cauchy distribution.")
    gamma: Any = Parameter(
        "scale",
        Either(Choice("scale", "median", "auto"), Real(0, open_low=True)),
        "Inverse width, as in ``certifit.kernels.RBF``.",
    )
    n_components: int = Parameter(100, Integer(1), "Waves.")
    random_state: Any = RANDOM_STATE.but(text="Draws the waves.")

    gamma_: float = Fitted("float", "The γ in use.")
    waves_: Array = Fitted("array of shape (n_features, n_components)", "ω.")
    offsets_: Array = Fitted("array of shape (n_components,)", "b.")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the waves."""
        rows = check_x(self, X, reset=True)
        with np.errstate(over="ignore", under="ignore"):
            bound: Any = (RBF if self.kernel == "rbf" else Laplacian)(gamma=self.gamma).bound(rows)
        self.gamma_ = float(bound.gamma)
        rng = check_random_state(self.random_state)
        shape = (int(rows.shape[1]), int(self.n_components))
        if self.kernel == "rbf":
            self.waves_ = np.sqrt(2.0 * self.gamma_) * rng.normal(size=shape)
        else:
            self.waves_ = self.gamma_ * rng.standard_cauchy(size=shape)
        self.offsets_ = rng.uniform(0.0, 2.0 * np.pi, size=shape[1])
        self._n_features_out = shape[1]
        return self

    def transform(self, X: Any) -> Array:
        """The waves at each row, shape (n_samples, n_components)."""
        check_is_fitted(self)
        rows = check_x(self, X, reset=False)
        rows = rows.tocsr() if is_sparse(rows) else rows
        found = np.empty((rows.shape[0], self.offsets_.shape[0]))
        for part in row_parts(rows.shape[0], found.shape[1]):
            found[part] = rows[part] @ self.waves_
        if not np.isfinite(found).all():
            raise ValueError("X times the waves overflows: scale X, or give a smaller gamma.")
        found += self.offsets_
        np.cos(found, out=found)
        found *= np.sqrt(2.0 / found.shape[1])
        return like_input(rows, found)
