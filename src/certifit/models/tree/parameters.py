"""The parameters that trees and forests share."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from sklearn.utils.validation import check_is_fitted

from certifit._types import Matrix
from certifit.models.tree.growing import Categories
from certifit.parameters import (
    CLASS_WEIGHT,
    N_JOBS,
    RANDOM_STATE,
    Any_,
    Choice,
    Declared,
    Either,
    Fitted,
    Given,
    Integer,
    Nothing,
    OneOf,
    Parameter,
    Real,
)

__all__ = ["MAX_FEATURES", "OF_CLASSES", "OF_NUMBERS", "OF_TARGETS", "Grows"]

OF_CLASSES = OneOf(("gini", "entropy", "misclassification"), "Impurity.")
OF_NUMBERS = OneOf(
    ("squared", "absolute", "poisson"),
    'Impurity. With "poisson" no leaf expects 0 unless all targets are 0.',
)
OF_TARGETS = CLASS_WEIGHT.but(
    text='Factor of the weights of each class; "balanced" makes all classes weigh the same. Of several targets, a list of these; '
    "factors multiply."
)

# When growth ends.
MAX_DEPTH = Parameter(None, Either(Integer(1), Nothing()), "Most questions on a path.")
MIN_SAMPLES_SPLIT = Parameter(
    2,
    Real(0, open_low=True, infinite=True),
    "Fewest rows, counted by weight, of a node that is split; a fraction below 1: share of all rows.",
)
MIN_SAMPLES_LEAF = Parameter(
    1,
    Real(0, open_low=True, infinite=True),
    "Fewest rows, counted by weight, of a leaf; a fraction below 1: share of all rows. A value of 1 never binds.",
)
MIN_WEIGHT_FRACTION_LEAF = Parameter(
    0.0, Real(0, 0.5), "Least share of the weight of all rows, class weights included, in a leaf."
)
MAX_LEAVES = Parameter(
    None, Either(Integer(1), Nothing()), "Most leaves; the most valuable splits are made first.", was="max_leaves"
)
MIN_IMPURITY_DECREASE = Parameter(
    0.0,
    Real(0, infinite=True),
    "Least decrease of the mean impurity of the whole tree that justifies a split.",
)
# What is known of the columns.
MAX_FEATURES = Parameter(
    None,
    Either(Integer(1), Real(0, 1, open_low=True), Choice("sqrt", "log2"), Nothing()),
    "How many features, drawn at random, each node tries: a number, a share, or all (None).",
)
THRESHOLDS = OneOf(
    ("best", "random"),
    "Whether a feature is split at its best threshold or at one drawn uniformly between its least and greatest value in the "
    'node ("random": extremely randomized trees); sets of categories are the best ones either way.',
)
CATEGORICAL_FEATURES = Parameter(
    None,
    Any_('list of columns, mask, "auto" or None', wrong=("no such column", 3.5, [99], ["no such column"])),
    'Columns whose values are categories; they are split into two sets. "auto": text and categorical columns of a frame.',
)
MONOTONE_CONSTRAINTS = Parameter(
    None,
    Either(Given("array of −1, 0 and 1, dict", wrong=([1], [2, 0, 0, 0, 0], {99: 1})), Nothing()),
    "Whether the prediction (of two classes: the probability of the second one) must fall (−1) or rise (1) in a feature. For one "
    "target only.",
)


class Grows(Declared):
    """What a tree is grown by and when its growth ends, alone or in a forest."""

    criterion: str = OF_NUMBERS
    _: KW_ONLY
    max_depth: int | None = MAX_DEPTH
    min_samples_split: float = MIN_SAMPLES_SPLIT
    min_samples_leaf: float = MIN_SAMPLES_LEAF
    min_weight_fraction_leaf: float = MIN_WEIGHT_FRACTION_LEAF
    max_leaf_nodes: int | None = MAX_LEAVES
    min_impurity_decrease: float = MIN_IMPURITY_DECREASE
    max_features: Any = MAX_FEATURES
    thresholds: str = THRESHOLDS
    categorical_features: Any = CATEGORICAL_FEATURES
    monotone_constraints: Any = MONOTONE_CONSTRAINTS
    random_state: Any = RANDOM_STATE.but(text="Only used if `max_features` leaves some out or `thresholds` are drawn.")
    n_jobs: int | None = N_JOBS

    _categories: Categories = Fitted()

    def _table(self, X: Any) -> Matrix:
        """New rows, categories as the codes of the fit."""
        check_is_fitted(self)
        return self._categories.transform(self, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags
