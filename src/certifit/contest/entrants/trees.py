"""Tree entrants: one pruned tree, the best small one, a forest, boosting. They take gaps and categories as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from certifit._types import Array, Matrix
from certifit.contest.entrants.base import Conditions, Encoded, Entrant, NotApplicable, Path, Predict, predictor
from certifit.models.boosting.model import GradientBoostingClassifier, GradientBoostingRegressor
from certifit.models.forest.model import RandomForestClassifier, RandomForestRegressor
from certifit.models.optimal.model import OptimalTreeClassifier, OptimalTreeRegressor
from certifit.models.tree.model import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = ["ENTRANTS"]

PRICES = (0.0, *np.geomspace(1e-6, 3e-2, 14))  # of a leaf, as a share of the impurity of all rows
STAGES = (10, 20, 30, 45, 65, 90, 120, 160, 210, 280, 370, 500, 660, 880)
OPTIMAL_COLUMNS, OPTIMAL_THRESHOLDS = 60, 30
OPTIMAL_SECONDS, OPTIMAL_TOL = 3.0, 0.01  # a fold ends with the best tree so far; one within a hundredth will do
SMALL_CELLS = 50_000
FOREST_CELLS = 4e8  # trees × rows × columns of a forest that fits within a contest


def threads(conditions: Conditions, data: Encoded) -> int:
    """One thread for small work: waiting for each other would cost more than the work."""
    return 1 if data.n_rows * data.n_columns < SMALL_CELLS else conditions.jobs


def tree_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """One tree a fold, pruned at every price of a leaf."""
    grower = DecisionTreeClassifier if conditions.classifies else DecisionTreeRegressor
    impurity = _impurity(conditions, data.y)

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        options: dict[str, Any] = {
            "categorical_features": list(fold.categorical) or None,
            "random_state": conditions.seed,
        }
        return grower(**s, **options, n_jobs=threads(conditions, fold))

    def predictors(settings: Sequence[Mapping[str, Any]], fold: Encoded) -> Iterator[Predict]:
        grown = build({**settings[0], "ccp_alpha": 0.0}, fold).fit(fold.X, fold.y)
        for s in settings:
            yield predictor(grown.pruned(s["ccp_alpha"]), len(conditions.classes))

    def path_of(leaf: int) -> Path:
        settings = tuple({"min_samples_leaf": leaf, "ccp_alpha": float(price) * impurity} for price in PRICES)
        return Path(settings, build, predictors)

    return [path_of(leaf) for leaf in (20, 5, 60) if leaf == 5 or 4 * leaf <= data.n_rows]


def optimal_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """The best tree of two and of three levels, at some prices of a leaf."""
    model = OptimalTreeClassifier if conditions.classifies else OptimalTreeRegressor
    questions = data.n_columns - len(data.categorical)
    questions += sum(np.unique(data.X[:, j]).shape[0] for j in data.categorical)
    if questions > OPTIMAL_COLUMNS:
        raise NotApplicable(
            f"the best tree is sought in at most {OPTIMAL_COLUMNS} columns; with a column for each category there are "
            f"{questions:,}"
        )
    # Prices are shares of the error of the best constant.
    y = np.asarray(data.y)
    error = 1.0 - np.unique(y, return_counts=True)[1].max() / y.shape[0] if conditions.classifies else float(np.var(y))

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        return model(
            **s,
            max_thresholds=OPTIMAL_THRESHOLDS,
            categorical_features=list(fold.categorical) or None,
            time_limit=OPTIMAL_SECONDS,
            tol=OPTIMAL_TOL,
            n_jobs=threads(conditions, fold),
        )

    return [
        Path(({"max_depth": depth, "alpha": price * (error or 1.0)},), build)
        for depth, price in ((2, 0.002), (3, 0.01), (3, 0.002))
    ]


def forest_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """The size of the leaves and the share of columns a split may choose from."""
    model = RandomForestClassifier if conditions.classifies else RandomForestRegressor
    trees = int(np.clip(FOREST_CELLS / max(1, data.n_rows * data.n_columns), 30, 200))

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        return model(
            **s,
            n_estimators=trees,
            categorical_features=list(fold.categorical) or None,
            random_state=conditions.seed,
            n_jobs=threads(conditions, fold),
        )

    grid: tuple[tuple[int, Any], ...]
    grid = ((5, "sqrt"), (2, 0.4), (10, 0.4), (1, "sqrt")) if conditions.classifies else ((2, 0.4), (1, 0.4), (5, 0.7))
    return [Path(({"min_samples_leaf": leaf, "max_features": share},), build) for leaf, share in grid]


def boosting_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """The number of trees comes for free with each fit; their size, the step and the sampling are tried in turn."""
    model = GradientBoostingClassifier if conditions.classifies else GradientBoostingRegressor
    small = data.n_rows < 2000

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        return model(
            **s,
            categorical_features=list(fold.categorical) or None,
            early_stopping=False,
            random_state=conditions.seed,
            n_jobs=threads(conditions, fold),
        )

    def predictors(settings: Sequence[Mapping[str, Any]], fold: Encoded) -> Iterator[Predict]:
        most = max(s["n_estimators"] for s in settings)
        grown = build({**settings[0], "n_estimators": most}, fold).fit(fold.X, fold.y)
        grown.set_params(n_jobs=1)  # a stage is too little work for threads
        staged = _Staged(grown, [s["n_estimators"] for s in settings], conditions)
        for k in range(len(settings)):
            yield partial(staged, k)

    def path_of(**fixed: Any) -> Path:
        stages = [s for s in STAGES if s <= (280 if fixed["learning_rate"] >= 0.1 else 880)]
        return Path(tuple({**fixed, "n_estimators": s} for s in stages), build, predictors)

    leaf = 5 if small else 20
    return [
        path_of(learning_rate=0.1, max_leaf_nodes=15 if small else 31, min_samples_leaf=leaf, l2=1.0),
        path_of(learning_rate=0.05, max_leaf_nodes=15, min_samples_leaf=leaf, colsample=0.5, l2=1.0),
        path_of(learning_rate=0.05, max_leaf_nodes=31, min_samples_leaf=2 * leaf, colsample=0.5, subsample=0.8, l2=5.0),
        path_of(learning_rate=0.1, max_leaf_nodes=8, min_samples_leaf=leaf, l2=1.0),
        path_of(learning_rate=0.05, max_leaf_nodes=63, min_samples_leaf=leaf, colsample=0.5, subsample=0.8, l2=5.0),
        path_of(learning_rate=0.03, max_leaf_nodes=8, min_samples_leaf=leaf, colsample=0.7, l2=1.0),
    ]


class _Staged:
    """Predictions of a boosted model after some of its stages, all computed in one pass over the rows."""

    def __init__(self, model: Any, stages: Sequence[int], conditions: Conditions) -> None:
        self.model, self.stages, self.conditions = model, list(stages), conditions
        self.rows: Matrix | None = None
        self.found: dict[int, Array] = {}

    def __call__(self, k: int, X: Matrix) -> Array:
        if self.rows is not X:
            self.rows, self.found = X, {}
            wanted = {min(s, self.model.n_iter_) for s in self.stages}
            passes = self.model.staged_predict_proba if self.conditions.classifies else self.model.staged_predict
            for stage, predicted in enumerate(passes(X), start=1):
                if stage in wanted:
                    self.found[stage] = self._full(np.array(predicted, dtype=np.float64))
        return self.found[min(self.stages[k], self.model.n_iter_)]

    def _full(self, predicted: Array) -> Array:
        classes = len(self.conditions.classes)
        if not self.conditions.classifies or predicted.shape[1] == classes:
            return predicted
        full = np.zeros((predicted.shape[0], classes))
        full[:, np.asarray(self.model.classes_, dtype=np.intp)] = predicted
        return full


def _impurity(conditions: Conditions, y: Array) -> float:
    """Gini impurity of all rows, or their variance: the scale of the prices."""
    if not conditions.classifies:
        return float(np.var(y)) or 1.0
    share = np.unique(y, return_counts=True)[1] / y.shape[0]
    return float(1.0 - share @ share) or 1.0


ENTRANTS = (
    Entrant(
        "tree",
        "Decision tree",
        "A list of yes/no questions about the columns, cut back to the questions that pay.",
        tree_paths,
        encoding="codes",
        readable=True,
    ),
    Entrant(
        "optimal_tree",
        "Best small tree",
        "At most three yes/no questions, the best of all such trees.",
        optimal_paths,
        encoding="codes",
        readable=True,
    ),
    Entrant(
        "forest",
        "Random forest",
        "The average of many deep trees, each grown on its own draw of rows and columns.",
        forest_paths,
        encoding="codes",
        weight=2.0,
        richness=3,
    ),
    Entrant(
        "boosting",
        "Gradient boosting",
        "Many small trees, each correcting the errors of those before it.",
        boosting_paths,
        encoding="codes",
        weight=4.0,
        richness=4,
    ),
)
