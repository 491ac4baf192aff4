"""Logistic regression with C and l1_ratio by cross-validation, under scikit-learn's name: folds and scorers are its own."""

from __future__ import annotations

import inspect
import numbers
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.linear_model as theirs
from sklearn import get_config
from sklearn.metrics import brier_score_loss, check_scoring, log_loss, make_scorer
from sklearn.model_selection import check_cv
from sklearn.utils.class_weight import compute_class_weight

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import check_x
from certifit.data.targets import encode_labels
from certifit.models.logistic.cv import LogisticRegressionCV as OurLogisticCV
from certifit.sklearn.linear_model.logistic import DUAL, INTERCEPT, PENALTIES, SOLVER, LogisticRegression
from certifit.sklearn.linear_model.rows import MAX_ITER, N_JOBS, NO_DRAWS, TOL, VERBOSE
from certifit.sklearn.translation import Data, DropIn, Here, Same, Table
from certifit.sklearn.translation.routing import routed
from certifit.sklearn.translation.table import labels

__all__ = ["LogisticRegressionCV"]

SHARED = (
    "dual",
    "fit_intercept",
    "intercept_scaling",
    "max_iter",
    "n_jobs",
    "random_state",
    "solver",
    "tol",
    "verbose",
)
"""Parameters that a fit of one fold has too."""
PROPER = {"neg_log_loss": log_loss, "neg_brier_score": brier_score_loss}
FAR = 1e3
"""A score whose probability is zero in double precision."""


class LogisticRegressionCV(DropIn, theirs.LogisticRegressionCV):
    """`LogisticRegression` with the C and l1_ratio of the best score on rows left out."""

    _ours = OurLogisticCV
    _reads_columns = True
    _table: ClassVar[Table] = {
        "Cs": Here("each is a fit of LogisticRegression"),
        "l1_ratios": Here("each is a fit of LogisticRegression"),
        "fit_intercept": Same(),
        "cv": Here("the folds are scikit-learn's own"),
        "dual": DUAL,
        "penalty": Here("as l1_ratios, with scikit-learn's warning"),
        "scoring": Here("scikit-learn's scorers judge the predictions of rows left out"),
        "solver": SOLVER,
        "tol": TOL,
        "max_iter": MAX_ITER,
        "class_weight": Here("multiplied into the weights of the rows; balanced over all rows, as by scikit-learn"),
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
        "refit": Here("a fit on all rows, or the mean of the best of each fold"),
        "intercept_scaling": INTERCEPT,
        "random_state": NO_DRAWS,
        "use_legacy_attributes": Here("the shapes of scores and paths"),
    }
    classes_: Array
    scores_: Any
    coefs_paths_: Any
    C_: Any
    l1_ratio_: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """As `DropIn.fit`; `params` go to the splitter and the scorer."""
        self._checked(self)
        given, ratios = self._ratios()
        scoring = self._told(
            "scoring", None, "The default value of the parameter 'scoring' will change to 'neg_log_loss'."
        )
        legacy = self._told(
            "use_legacy_attributes", True,
            "The default value of use_legacy_attributes will change from True to False in scikit-learn 1.10: set one of them.",
        )  # fmt: skip
        X = check_x(self, X, reset=True, dtype=np.float64)
        y = labels(y)
        self.classes_, codes = encode_labels(y)
        if self.classes_.shape[0] < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data contains only one class: "
                f"{self.classes_[0]}."
            )
        data = Data(self, X, y, None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64))
        split, judged = self._shared_out(params, data)
        self.Cs_ = np.logspace(-4, 4, self.Cs) if isinstance(self.Cs, numbers.Integral) else np.asarray(self.Cs, float)
        folds = list(check_cv(self.cv, y, classifier=True).split(X, y, **split))
        weights, scorer = self._class_weight(y, codes, sample_weight), self._scorer(scoring)
        grid = [(float(C), ratio) for ratio in ratios for C in self.Cs_]
        cells = [[self._cell(data, fold, C, ratio, weights, scorer, judged) for C, ratio in grid] for fold in folds]
        size = (len(folds), len(ratios), self.Cs_.shape[0])
        scores = np.array([[score for _, score in row] for row in cells]).reshape(size)
        models = np.array([[model for model, _ in row] for row in cells], dtype=object).reshape(size)
        self._choose(data, scores, models, ratios, weights)
        self._shape(scores, models, given, ratios, bool(legacy))
        return self

    def _told(self, name: str, default: Any, text: str) -> Any:
        """A parameter whose default scikit-learn is about to change."""
        value = getattr(self, name)
        if not (isinstance(value, str) and value == "warn"):
            return value
        warnings.warn(text, FutureWarning, stacklevel=3)
        return default

    def _ratios(self) -> tuple[Any, list[Any]]:
        """The l1_ratios as given, and those to try."""
        given = self._told(
            "l1_ratios", None, "The default value for l1_ratios will change from None to (0.0,): set a value."
        )
        if self.penalty == "deprecated":
            if self.l1_ratios is None:
                warnings.warn(
                    "'l1_ratios=None' was deprecated in version 1.8 of scikit-learn.", FutureWarning, stacklevel=3
                )
            return given, self._checked_ratios(given) if given is not None else [None]
        warnings.warn(
            "'penalty' was deprecated in version 1.8 of scikit-learn: use l1_ratios.", FutureWarning, stacklevel=3
        )
        if self.penalty == "elasticnet":
            return given, self._checked_ratios(given)
        if given is not None:
            warnings.warn(
                f"l1_ratios parameter is only used when penalty is 'elasticnet'. Got (penalty={self.penalty})",
                stacklevel=3,
            )
        return given, [PENALTIES[self.penalty]] * (1 if given is None else len(given))

    @staticmethod
    def _checked_ratios(given: Any) -> list[Any]:
        wrong = given is None or len(given) == 0
        if wrong or any(not isinstance(one, numbers.Real) or not 0 <= float(one) <= 1 for one in given):
            raise ValueError(f"l1_ratios must be an array-like of numbers between 0 and 1; got (l1_ratios={given!r})")
        return list(given)

    def _shared_out(self, params: dict[str, Any], data: Data) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is for the splitter, and what for the scorer: the weights of the rows among it."""
        weight = {} if data.sample_weight is None else {"sample_weight": data.sample_weight}
        if not get_config()["enable_metadata_routing"]:
            routed(self, "fit", params)
            return {}, weight
        found = routed(self, "fit", {**params, **weight})
        return (dict(found["splitter"]["split"]), dict(found["scorer"]["score"])) if found else ({}, {})

    def _scorer(self, scoring: Any) -> Any:
        """The scorer; one of probabilities knows all classes, also those that a fold lacks."""
        by_accuracy = scoring is None or (isinstance(scoring, str) and scoring == "accuracy")
        if by_accuracy and not get_config()["enable_metadata_routing"]:
            return _accuracy
        known = PROPER.get(scoring) if isinstance(scoring, str) else None
        if known is None or "labels" not in inspect.signature(known).parameters:
            return check_scoring(self, scoring=scoring)
        more = {"pos_label": self.classes_[1]} if scoring == "neg_brier_score" and len(self.classes_) == 2 else {}
        return make_scorer(
            known, response_method="predict_proba", greater_is_better=False, labels=self.classes_, **more
        )

    def _class_weight(self, y: Array, codes: Array, sample_weight: Any) -> dict[Any, float] | None:
        if self.class_weight is None:
            return None
        known = self.classes_.tolist()
        if isinstance(self.class_weight, dict) and not set(self.class_weight) <= set(known):
            raise ValueError(
                f"The given class_weight dict must have the class labels as keys; classes={self.classes_} but "
                f"key={self.class_weight.keys()}"
            )
        factors = compute_class_weight(self.class_weight, classes=self.classes_, y=y, sample_weight=sample_weight)
        return dict(zip(known, factors.tolist(), strict=True))

    def _one(self, C: float, ratio: Any, class_weight: Any) -> LogisticRegression:
        """The model of one setting."""
        shared = {name: getattr(self, name) for name in SHARED if name in LogisticRegression._table}
        return LogisticRegression(C=C, l1_ratio=0.0 if ratio is None else ratio, class_weight=class_weight, **shared)

    def _cell(
        self,
        data: Data,
        fold: tuple[Array, Array],
        C: float,
        ratio: Any,
        class_weight: Any,
        scorer: Any,
        judged: dict[str, Any],
    ) -> tuple[LogisticRegression, float]:
        """A fit without some rows, and its score on them."""
        train, test = fold
        weight = None if data.sample_weight is None else data.sample_weight[train]
        there = np.unique(data.y[train])
        model = self._one(C, ratio, class_weight)
        if there.shape[0] > 1:
            model.fit(data.X[train], data.y[train], weight)
        if there.shape[0] < self.classes_.shape[0]:
            self._never_the_others(model, there, data.X.shape[1])
        told = {name: np.asarray(value)[test] if np.ndim(value) else value for name, value in judged.items()}
        return model, float(scorer(model, data.X[test], data.y[test], **told))

    def _never_the_others(self, model: LogisticRegression, there: Array, width: int) -> None:
        """Classes that no row of the fit had get a probability of zero, by an intercept that stands for −∞."""
        K = self.classes_.shape[0]
        coef, intercept = np.zeros((K, width)), np.full(K, -FAR)
        places = np.searchsorted(self.classes_, there)
        intercept[places] = 0.0
        if there.shape[0] == 2:  # one score there is the difference of two
            coef[places[1]], intercept[places[1]] = model.coef_[0], model.intercept_[0]
        elif there.shape[0] > 2:
            coef[places], intercept[places] = model.coef_, model.intercept_
        if K == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        model.classes_, model.coef_, model.intercept_ = self.classes_, coef, intercept
        model.n_iter_ = getattr(model, "n_iter_", np.ones(1, dtype=np.int32))

    def _choose(self, data: Data, scores: Array, models: Array, ratios: list[Any], class_weight: Any) -> None:
        """The best setting over all folds and a fit of it, or the mean of the best fit of each fold."""
        flat = np.moveaxis(scores, 1, 2)  # folds, Cs, ratios: the smallest C wins a tie
        if self.refit:
            c, r = np.unravel_index(int(np.argmax(flat.sum(axis=0))), flat.shape[1:])
            self._best = float(self.Cs_[c]), ratios[r]
            chosen = self._one(*self._best, class_weight).fit(data.X, data.y, data.sample_weight)
            self._keep(chosen.model_, data)
            return
        places = [np.unravel_index(int(np.argmax(one)), flat.shape[1:]) for one in flat]
        best = [models[k, r, c] for k, (c, r) in enumerate(places)]
        numbers_of = [ratios[r] or 0.0 for _, r in places]
        self._best = float(np.mean([self.Cs_[c] for c, _ in places])), float(np.mean(numbers_of))
        self._keep(best[0].model_, data)
        self.coef_ = np.mean([one.coef_ for one in best], axis=0)
        self.intercept_ = np.mean([one.intercept_ for one in best], axis=0)
        self.certificate_ = Certificate.absent(
            float(np.mean([one.certificate_.objective for one in best])),
            "The coefficients are the mean of the best fit of each fold, which minimizes nothing; nor has it a bound.",
        )

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {"coef_": model.coef_, "intercept_": np.asarray(model.intercept_, dtype=np.float64)}

    def _shape(self, scores: Array, models: Array, given: Any, ratios: list[Any], legacy: bool) -> None:
        """Scores, paths and iterations in the old or in the new shapes."""
        steps = np.vectorize(lambda one: int(one.n_iter_[0]), otypes=[np.int32])(models)
        paths = np.stack([_with_intercept(one, self.fit_intercept) for one in models.ravel()])
        paths = paths.reshape(*models.shape, *paths.shape[1:])  # folds, ratios, Cs, classes, columns
        C, ratio = self._best
        self.l1_ratios_ = np.asarray(ratios if given is not None else [None])
        if not legacy:
            self.scores_, self.coefs_paths_, self.n_iter_ = scores, paths, steps
            self.C_, self.l1_ratio_ = C, float(ratio or 0.0)
            return
        named = self.classes_[1:] if self.classes_.shape[0] == 2 else self.classes_
        table, ways, steps = (np.moveaxis(one, 1, 2) for one in (scores, paths, steps))  # folds, Cs, ratios, …
        if given is None:
            table, ways, steps = table[:, :, 0], ways[:, :, 0], steps[:, :, 0]
        self.scores_ = {label: table.copy() for label in named}
        self.coefs_paths_ = {label: ways[..., k, :] for k, label in enumerate(named)}
        self.n_iter_ = steps[None]
        self.C_, self.l1_ratio_ = np.full(len(named), C), np.full(len(named), ratio)


def _accuracy(model: LogisticRegression, X: Array, y: Array, sample_weight: Array | None = None) -> float:
    """The share of rows that are told right; scikit-learn takes several times as long to say so as a small fit takes."""
    scores = np.asarray(X @ model.coef_.T) + model.intercept_
    which = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return float(np.average(model.classes_[which] == y, weights=sample_weight))


def _with_intercept(model: LogisticRegression, there: bool) -> Array:
    return np.column_stack([model.coef_, model.intercept_]) if there else np.asarray(model.coef_)
