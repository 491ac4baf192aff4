"""The parameter that logistic models share beyond those of linear models."""

from __future__ import annotations

from certifit.parameters import Flag, Parameter

__all__ = ["SOFT_LABELS"]

SOFT_LABELS = Parameter(
    False,
    Flag(),
    "Whether y gives probabilities instead of labels: of the second of two classes, or a column for each class. The classes are "
    "0, 1, … Such a row counts as one of each class, weighted by its probability.",
)
