"""Images as two numbers: how dark they are, and how symmetric."""

from __future__ import annotations

from math import isqrt
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.base import KeepsPrecision
from certifit.data.gate import check_x
from certifit.parameters import Any_, OfColumns, OneOf, Parameter
from certifit.representation.basis.blocks import BLOCK_ENTRIES
from certifit.representation.design.blocks import row_blocks

__all__ = ["DigitFeatures"]


class DigitFeatures(OfColumns, KeepsPrecision, BaseEstimator):
    """Intensity and symmetry of an image, such as a handwritten digit: two numbers in place of all pixels.

        intensity   the mean of the pixels
        symmetry    −mean |pixel − the pixel that a mirror puts in its place|,   0 for an image that equals its mirror image

    A row of X is an image, row by row from the top. Nothing is learned. A model of two columns has the VC dimension of a plane in
    two dimensions, 3, where one of 16 × 16 pixels has 257: its error on the rows it learned from says more about other rows.

    Examples
    --------
    >>> from certifit import DigitFeatures
    >>> one, five = [0, 1, 0, 0, 1, 0, 0, 1, 0], [1, 1, 1, 1, 1, 0, 0, 1, 1]
    >>> DigitFeatures().fit_transform([one, five]).round(3)
    array([[ 0.333, -0.   ],
           [ 0.778, -0.333]])
    """

    shape: tuple[int, int] | None = Parameter(
        None,
        Any_("pair of int or None", wrong=("16", 16, (0, 5), (2, 2.5), (3, 3, 3), (10_000, 10_000))),
        "Rows and columns of an image; None takes the shape nearest to a square.",
    )
    mirror: str = OneOf(
        ("both", "left_right", "top_bottom"),
        "Which sides the mirror exchanges; of both, the mean of the two differences.",
    )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters, and that X has the pixels of such images."""
        checked = check_x(self, X, reset=True, accept_sparse=False)
        self._shape(int(checked.shape[1]))
        return self

    def transform(self, X: Any) -> Array:
        """Intensity and symmetry of each image, in the float type of X."""
        check_is_fitted(self)
        X = check_x(self, X, reset=False, accept_sparse=False)
        height, width = self._shape(int(X.shape[1]))
        axes = {"left_right": (2,), "top_bottom": (1,), "both": (1, 2)}[self.mirror]
        out = np.empty((X.shape[0], 2), dtype=X.dtype)
        for block in row_blocks(X.shape[0], X.shape[1], BLOCK_ENTRIES):
            images = X[block].astype(np.float64).reshape(-1, height, width)
            out[block, 0] = images.mean(axis=(1, 2))
            apart = [np.abs(images - np.flip(images, axis)).mean(axis=(1, 2)) for axis in axes]
            out[block, 1] = -np.mean(apart, axis=0)
        return out

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The two names."""
        check_is_fitted(self)
        return np.asarray(["intensity", "symmetry"], dtype=object)

    def _shape(self, pixels: int) -> tuple[int, int]:
        if self.shape is None:
            height = next(h for h in range(isqrt(pixels), 0, -1) if pixels % h == 0)
            return height, pixels // height
        pair = self.shape
        whole = (
            isinstance(pair, (tuple, list))
            and len(pair) == 2
            and all(isinstance(side, Integral) and not isinstance(side, bool) for side in pair)
        )
        if not whole or min(pair) < 1:
            raise ValueError(f"shape must be a pair of positive integers (rows, columns) or None; got {pair!r}.")
        if pair[0] * pair[1] != pixels:
            raise ValueError(
                f"shape must be that of the images: {pair!r} has {pair[0] * pair[1]} pixels, and X has {pixels} columns."
            )
        return int(pair[0]), int(pair[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = True
        return tags
