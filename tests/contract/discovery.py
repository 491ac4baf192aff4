"""Finds every public estimator by itself, so that a new one is under contract the moment it is exported.

The full contract is a product: every test, with every value of its grid, on every setting of every class. The default run is
pairwise: every class with every value of the grid, and at least two settings of the class, which differ from test to test.
The rest of the product is marked `exhaustive`, and `make test-all` runs it. What a test asks of one class is one item, which
tells all the points that failed: an item for each would cost more than most fits.
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import get_tags
from tests.grids import each, exhaustive

import certifit
from certifit import losses, penalties
from certifit.parameters import parameters_of

# Constructor variants: only where a class cannot be built without arguments, or where its parameters change
# the method. A class that is not listed is tested as its constructor leaves it, or with a small `alpha` where
# the default one would shrink everything to zero.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "BestSubset": [
        {"max_size": 2},
        {"max_size": 2, "choose": "size"},
        {"max_size": 2, "loss": "poisson"},
        {"max_size": 2, "loss": "gamma"},
    ],
    "BestSubsetClassifier": [{"max_size": 2}, {"max_size": 2, "choose": "size"}],
    "GaussianMixture": [{}, {"n_components": 2, "covariance_type": "diag"}],
    "KCenter": [{"n_clusters": 3}],
    "KernelPerceptron": [{"max_iter": 30}],
    "KernelRidgeCV": [{}, {"cv": 3}],
    "KMedoids": [{"n_clusters": 3}, {"n_clusters": 2, "metric": "manhattan", "n_init": 2}],
    "AgglomerativeClustering": [{}, {"n_clusters": "gap", "linkage": "average"}, {"linkage": "single"}],
    "ClassicalMDS": [{}, {"metric": "manhattan", "n_components": 1}],
    "Dissimilarity": [{}, {"scale": "mean", "root": True, "missing": "level"}],
    "DivisiveClustering": [{}, {"n_clusters": "gap", "metric": "manhattan"}],
    "KMeans": [{"n_clusters": 3}, {"n_clusters": 3, "init": "random", "n_init": 2}],
    "GLM": [{}, {"family": "laplace", "alpha": 0.02}],
    "KNeighborsClassifier": [{"n_neighbors": 3}, {"n_neighbors": "loo", "max_neighbors": 9}],
    "KNeighborsRegressor": [{"n_neighbors": 3, "weights": "distance"}, {"n_neighbors": "loo", "max_neighbors": 9}],
    "LinearModel": [
        {"loss": "squared", "penalty": "l2", "alpha": 0.05},
        {"loss": "squared", "penalty": penalties.Lq(1.5), "alpha": 0.05},
        {"loss": "squared", "penalty": "none", "constraint": "non_negative"},
        {"loss": "squared", "penalty": "l1", "alpha": 0.02, "constraint": penalties.L2Ball(1.0)},
        {"loss": "absolute", "penalty": "l1", "alpha": 0.02},
        {"loss": losses.Huber(0.5), "penalty": "elasticnet", "alpha": 0.02},
        {"loss": losses.Huber(0.5), "penalty": "l2", "alpha": 0.02, "constraint": penalties.L1Ball(1.0)},
        {
            "loss": losses.Quantile(0.3),
            "penalty": "l2",
            "alpha": 0.02,
            "constraint": penalties.Box(-0.5, 0.8),
        },
        {"loss": "epsilon_insensitive", "penalty": "l2", "alpha": 0.02},
        {"loss": "relative", "penalty": "elasticnet", "alpha": 0.02},
        {"loss": "poisson", "penalty": "l1", "alpha": 0.02},
        {"loss": "gamma", "penalty": "l2", "alpha": 0.02},
        {"loss": "logistic", "penalty": "l2", "alpha": 0.02},
    ],
    "Knockoffs": [{}, {"copies": "model", "distance": "largest"}],
    "LinearRegression": [{}, {"positive": True}],
    "LinearSVC": [{}, {"loss": "squared_hinge"}],
    "LinearSVR": [{}, {"loss": "squared_epsilon_insensitive"}],
    "LocallyWeightedLogisticRegression": [
        {"kernel": "tricube", "bandwidth": "nearest", "fraction": 0.1},
        {"degree": 0},
    ],
    "LocallyWeightedRegression": [{"kernel": "tricube", "bandwidth": "nearest"}, {}],
    "LogisticRegression": [{}, {"penalty": "l1"}, {"penalty": "elasticnet"}],
    "MiniBatchKMeans": [{"n_clusters": 3}],
    "MinimaxModel": [{"alpha": 0.05}, {"loss": "gamma", "penalty": "l1", "alpha": 0.02}],
    "MLPClassifier": [{"hidden": (16, 8), "learning_rate": 0.01, "max_iter": 40}],
    "MLPRegressor": [{"hidden": (16, 8), "learning_rate": 0.01, "max_iter": 40}],
    "MulticlassPerceptron": [{"max_iter": 50}],
    "NearestNeighbors": [{"n_neighbors": 3}],
    "NeuralNetwork": [
        {
            "loss": "huber",
            "hidden": (12,),
            "learning_rate": 0.02,
            "max_iter": 40,
            "dropout": 0.1,
            "optimizer": "adamw",
        },
        {
            "loss": "relative",
            "hidden": (12,),
            "learning_rate": 0.02,
            "max_iter": 20,
            "activation": "tanh",
            "polish": True,
        },
        {
            "loss": "squared",
            "hidden": (4,),
            "optimizer": "lbfgs",
            "activation": "tanh",
            "alpha": 0.1,
            "max_iter": 1000,
        },
    ],
    "OptimalTreeClassifier": [{"max_depth": 2}, {"max_depth": 3, "alpha": 0.02, "max_thresholds": 8}],
    "OptimalTreeRegressor": [{"max_depth": 2}, {"max_depth": 3, "alpha": 0.02, "max_thresholds": 8}],
    "PCA": [{}, {"n_components": 1, "whiten": True}],
    "Perceptron": [{"max_iter": 50}, {"max_iter": 50, "averaged": True}, {"max_iter": 50, "mode": "batch"}],
    "QuantileRegressor": [{"quantile": 0.3, "alpha": 0.02}],
    "Ridge": [{"alpha": 0.05}, {"alpha": 0.05, "positive": True}],
    "RidgeCV": [{}, {"cv": 5}],
    "SGDClassifier": [
        {},
        {"loss": "squared_hinge", "alpha": 0.01},
        {"multi_class": "softmax", "alpha": 0.1, "max_iter": 250},
    ],
    "SGDRegressor": [{}, {"loss": "huber", "penalty": "elasticnet", "alpha": 0.02}],
    "SelectBest": [{"k": 2}],
    "StabilitySelection": [{"n_features": 2, "n_pairs": 5, "threshold": 0.6}],
    "StepwiseSelection": [{"n_features": 2}, {"direction": "floating"}],
    "SpectralClustering": [{"n_neighbors": 5}, {"normalized": False, "weights": "equal"}],
    "StandardScaler": [{}, {"with_mean": False}],
    "TruncatedSVD": [{"n_components": 1}, {"n_components": 1, "solver": "gram"}],
}


# Sizes that cost time and change no answer of the contract: the largest that it asks for.
SMALL = {"n_estimators": 8, "max_nodes": 20_000, "n_alphas": 6, "cv": 3, "max_epochs": 400}


@functools.cache
def arguments_of(cls: type) -> frozenset[str]:
    """What the constructor takes."""
    return frozenset(inspect.signature(cls).parameters)


def settings_of(cls: type, wanted: dict[str, Any]) -> dict[str, Any]:
    """Those of the settings that a class has; `max_epochs` is the `max_iter` of methods that count passes over the rows."""
    known = parameters_of(cls)
    if "max_epochs" in wanted and "max_iter" in known and known["max_iter"].was == "max_epochs":
        wanted = {**wanted, "max_iter": wanted["max_epochs"]}
    return {name: value for name, value in wanted.items() if name in arguments_of(cls)}


@dataclass(frozen=True, eq=False)
class Case:
    """One way to build one estimator, and the number of classes it is tried on if it is a classifier."""

    cls: type[BaseEstimator]
    params: dict[str, Any] = field(default_factory=dict)
    classes: int = 2

    def build(self, **overrides: Any) -> Any:
        """A new estimator; overrides that the class does not have are left out."""
        wanted = settings_of(self.cls, overrides)
        return self.cls(**{**copy.deepcopy(self.params), **wanted})

    def precise(self, **overrides: Any) -> Any:
        """Built to be solved far beyond the default tolerance, so that two fits can be compared.

        Methods that go through the rows in drawn order are compared on equal draws: a few epochs of them will do.
        """
        return self.build(**{"tol": 1e-12, "max_iter": 20_000, "max_epochs": 30, **overrides})

    def has(self, *names: str) -> bool:
        """Whether the constructor takes all these parameters."""
        return arguments_of(self.cls).issuperset(names)

    @cached_property
    def takes_weights(self) -> bool:
        """Whether `fit` has a sample_weight."""
        return "sample_weight" in inspect.signature(self.cls.fit).parameters

    @cached_property
    def predicts(self) -> bool:
        """Whether the fitted model predicts."""
        return hasattr(self.cls, "predict")

    @cached_property
    def transforms(self) -> bool:
        """Whether the fitted model transforms."""
        return hasattr(self.cls, "transform")

    @cached_property
    def supervised(self) -> bool:
        """Whether `fit` needs a target."""
        return bool(get_tags(self.build()).target_tags.required)

    @cached_property
    def takes_sparse(self) -> bool:
        """Whether the tags allow sparse X."""
        return bool(get_tags(self.build()).input_tags.sparse)

    @cached_property
    def allows_missing(self) -> bool:
        """Whether the tags allow NaN in X."""
        return bool(get_tags(self.build()).input_tags.allow_nan)

    @cached_property
    def takes_text(self) -> bool:
        """Whether X may hold text: by the tags, or where columns of text in a frame are categories by default."""
        estimator = self.build()
        return bool(get_tags(estimator).input_tags.string) or getattr(estimator, "categorical_features", None) == "auto"

    @cached_property
    def draws(self) -> bool:
        """Whether the method draws at random."""
        return self.has("random_state")

    @cached_property
    def counts_rows(self) -> bool:
        """Whether the estimator says that the number of repetitions matters, not only their share."""
        return bool(getattr(self.build(), "weights_are_counts", False))

    @cached_property
    def target(self) -> str:
        """Which targets the estimator takes: "real", "positive" or "labels", by its tags or its loss."""
        estimator = self.build()
        if is_classifier(estimator):
            return "labels"
        if get_tags(estimator).target_tags.positive_only:
            return "positive"
        if not self.has("loss") or (isinstance(estimator.loss, str) and estimator.loss not in losses.LOSSES):
            return "real"  # a name of the class's own
        loss = losses.resolve_loss(estimator.loss)
        for kind, sample in (("real", [-1.5, 0.5]), ("positive", [0.5, 2.5])):
            if loss.takes(np.array(sample)):
                return kind
        return "labels"

    @cached_property
    def positive_features(self) -> bool:
        """Whether features must be positive, by the tags."""
        return bool(get_tags(self.build()).input_tags.positive_only)

    @cached_property
    def takes_codes(self) -> bool:
        """Whether X must hold numbers of categories: other numbers are refused."""
        tags = get_tags(self.build()).input_tags
        return bool(tags.categorical and tags.positive_only)

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        return f"{self.cls.__name__}({arguments}){f', {self.classes} classes' if self.classes > 2 else ''}"


def public_estimators() -> tuple[list[type[BaseEstimator]], dict[str, Exception]]:
    """Estimator classes among the public names, and the names that could not be loaded."""
    found, broken = [], {}
    for name in certifit.__all__:
        try:
            value = getattr(certifit, name)
        except Exception as error:  # one broken module must not hide all the others from the contract
            broken[name] = error
            continue
        if inspect.isclass(value) and issubclass(value, BaseEstimator) and not inspect.isabstract(value):
            found.append(value)
    return found, broken


_FOUND, BROKEN = public_estimators()
# Models of sequences take lists of sequences, not rows of a table: scikit-learn's checks and the contract of tables cannot be
# asked of them. Their own contract is tests/contract/input/test_sequences.py.
SEQUENCE_MODELS = [cls for cls in _FOUND if getattr(cls, "takes_sequences", False)]
# Texts are no rows of numbers either: tests/contract/input/test_documents.py.
DOCUMENT_MODELS = [cls for cls in _FOUND if getattr(cls, "takes_documents", False)]
ESTIMATORS = [cls for cls in _FOUND if cls not in SEQUENCE_MODELS + DOCUMENT_MODELS]


def variants(cls: type[BaseEstimator]) -> list[dict[str, Any]]:
    """The constructor arguments to test a class with."""
    known = inspect.signature(cls).parameters
    default = {name: parameter.default for name, parameter in known.items()}
    sizes = settings_of(cls, SMALL)
    small = {name: most for name, most in sizes.items() if isinstance(default.get(name), int) and default[name] > most}
    if cls.__name__ in VARIANTS:
        return [{**small, **variant} for variant in VARIANTS[cls.__name__]]
    strong = isinstance(default.get("alpha"), float) and default["alpha"] > 0.1
    return [{**small, "alpha": 0.05} if strong else small]


def cases(cls: type[BaseEstimator]) -> list[Case]:
    """Every setting of a class; a classifier on two and, next to it, on three classes."""
    counts = (2, 3) if is_classifier(Case(cls).build()) else (2,)
    return [Case(cls, params, classes) for params in variants(cls) for classes in counts]


SETTINGS = {cls: cases(cls) for cls in ESTIMATORS}
CASES = list(itertools.chain(*SETTINGS.values()))
ONE_EACH = [settings[0] for settings in SETTINGS.values()]


def pairwise(settings: Sequence[Case], values: int, salt: int) -> set[tuple[int, int]]:
    """Which settings of a class meet which values in the default run, by their numbers.

    Each value once, and two settings at least. The salt, which is the test's own, sets where in the list it starts, so that
    all settings are met by some test.
    """
    return {((salt + k) % len(settings), k % values) for k in range(max(values, min(len(settings), 2)))}


def parametrize(
    condition: Callable[[Case], bool] = lambda case: True, *, one_each: bool = False, **grid: Sequence[Any]
) -> Callable[[Any], Any]:
    """Run a test on every case for which it is applicable, with every value of a grid: one item a class."""
    points = list(itertools.product(*grid.values()))
    names = ("case", *grid)

    def decorate(test: Any) -> Any:
        salt = zlib.crc32(test.__name__.encode())
        params = []
        for cls, settings in SETTINGS.items():
            chosen = [case for case in (settings[:1] if one_each else settings) if condition(case)]
            default = pairwise(chosen, len(points), salt) if chosen else set()
            asked: dict[bool, list[tuple[Any, ...]]] = {True: [], False: []}
            for (i, case), (k, point) in itertools.product(enumerate(chosen), enumerate(points)):
                asked[(i, k) in default].append((case, *point))
            if asked[True]:
                params.append(pytest.param(asked[True], id=cls.__name__))
            if asked[False]:
                params.append(pytest.param(asked[False], marks=exhaustive, id=f"{cls.__name__}, the rest"))

        @functools.wraps(test)
        def at_all(points: list[tuple[Any, ...]], **fixtures: Any) -> None:
            each(
                (
                    "-".join(map(named, point)),
                    functools.partial(test, **dict(zip(names, point, strict=True)), **fixtures),
                )
                for point in points
            )

        fixtures = [taken for name, taken in inspect.signature(test).parameters.items() if name not in names]
        first = inspect.Parameter("points", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        at_all.__signature__ = inspect.Signature([first, *fixtures])  # type: ignore[attr-defined]
        return pytest.mark.parametrize("points", params)(at_all)

    return decorate


def named(value: Any) -> str:
    """How a value is called in the name of a point."""
    return value.__name__ if isinstance(value, type) else str(value)
