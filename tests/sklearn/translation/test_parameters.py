"""What the docstring of a drop-in says of a parameter is what happens: no effect, an effect, a refusal or a warning."""

from __future__ import annotations

import contextlib
import inspect
import io
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.covariance import EmpiricalCovariance, LedoitWolf
from sklearn.feature_selection import chi2

from certifit.sklearn import replacements
from certifit.sklearn.linear_model import LogisticRegression, Ridge
from certifit.sklearn.translation import Free, Here, Instead, Only, Row

CLASSES = {name.removeprefix("sklearn."): pair[1] for name, pair in replacements().items() if inspect.isclass(pair[1])}
RNG = np.random.default_rng(3)
X = RNG.gamma(2.0, size=(42, 4)) * [1.0, 2.0, 0.5, 1.0]
Y = X @ [1.0, -0.7, 1.0, 0.2] + 0.4 * RNG.normal(size=42)
LABELS = np.digitize(Y, [1.2]).astype(int)
NUMBERS = np.abs(Y) + 0.1
TEXTS: list[Any] = ["Un café noir".encode(), "the black cat and the dog", "a cat, a dog, a bird", "the bird sings"]

SMALL: dict[str, Any] = {
    "n_estimators": 3, "random_state": 0, "Cs": [0.1, 1.0], "l1_ratios": (0.0,), "use_legacy_attributes": False,
    "n_clusters": 3, "n_components": 2, "n_bins": 3, "min_samples_leaf": 2, "hidden_layer_sizes": (3,), "k": 2, "nu": 0.3,
    "quantile_method": "averaged_inverted_cdf",
}  # fmt: skip
"""Settings that make fits quick, or silent where scikit-learn is about to change a default."""
BASES: dict[str, dict[str, Any]] = {
    "calibration.CalibratedClassifierCV": {"estimator": LogisticRegression(), "cv": 2},
    "feature_extraction.text.HashingVectorizer": {"n_features": 64},
    "discriminant_analysis.LinearDiscriminantAnalysis": {"n_components": 1},
    "feature_selection.RFE": {"estimator": Ridge()},
    "feature_selection.SequentialFeatureSelector": {"estimator": Ridge(), "cv": 2, "n_features_to_select": "auto"},
    "linear_model.LogisticRegressionCV": {"cv": 2, "scoring": "neg_log_loss"},
    "linear_model.SGDClassifier": {"max_iter": 5, "tol": None},
    "linear_model.SGDRegressor": {"max_iter": 5, "tol": None},
    "manifold.MDS": {"n_init": 1, "init": "classical_mds", "max_iter": 5},
    "multiclass.OneVsOneClassifier": {"estimator": LogisticRegression()},
    "multiclass.OneVsRestClassifier": {"estimator": LogisticRegression()},
    "multiclass.OutputCodeClassifier": {"estimator": LogisticRegression()},
    "naive_bayes.CategoricalNB": {"min_categories": 20},
    "neural_network.MLPClassifier": {"max_iter": 3, "n_iter_no_change": 5},
    "neural_network.MLPRegressor": {"max_iter": 3, "n_iter_no_change": 5},
}
OTHER: dict[str, Any] = {
    "affinity": "nearest_neighbors", "algorithm": "brute", "alpha": 0.7, "alpha_1": 0.5, "alpha_2": 0.5, "alpha_init": 2.0,
    "alpha_per_target": True, "assign_labels": "discretize", "atol": 1.0, "average": True, "bootstrap_features": True,
    "breadth_first": False, "ccp_alpha": 0.1, "class_weight": "balanced", "coef0": 3.0, "compute_distances": True,
    "compute_full_tree": False, "compute_labels": False, "compute_score": True, "connectivity": np.ones((42, 42)),
    "copy": False, "copy_X": False, "copy_x": False, "covariance_estimator": EmpiricalCovariance(), "Cs": [0.01], "cv": 4,
    "decode_error": "ignore", "degree": 2, "dtype": np.float32, "dual": True, "early_stopping": True,
    "eigen_solver": "lobpcg", "eigen_tol": 0.1, "encode": "ordinal", "encoding": "latin-1", "epsilon": 0.9, "eta0": 0.3,
    "force_alpha": False, "gamma": 0.05, "importance_getter": lambda model: -np.arange(model.coef_.size), "init": "random",
    "init_size": 20, "input": "filename", "intercept_scaling": 7.0, "iterated_power": 1, "k": 1, "knots": "quantile",
    "l1_ratio": 0.9, "l1_ratios": (0.0, 0.0), "lambda_1": 0.5, "lambda_2": 0.5, "lambda_init": 3.0, "leaf_size": 3,
    "learning_rate": "constant", "lowercase": False, "max_fun": 2, "means_init": X[[0, 1]], "memory": "cache",
    "metric": "manhattan", "metric_mds": False, "metric_params": {"w": np.array([1.0, 2.0, 0.1, 1.0])},
    "multi_class": "crammer_singer", "n_bins": 2, "n_components": 3, "n_features_to_select": 1, "n_init": 7, "n_iter": 9,
    "n_iter_no_change": 2, "n_jobs": 2, "n_knots": 3, "n_neighbors": 5, "n_oversamples": 3, "nesterovs_momentum": False,
    "ngram_range": (1, 2), "normalized_stress": True, "order": "F", "penalty": "l1", "power_iteration_normalizer": "LU",
    "power_t": 0.1, "precompute": True, "preprocessor": str.upper, "quantile_method": "linear", "random_state": 17,
    "reassignment_ratio": 0.4, "refit": False, "reg_param": 0.5, "rtol": 1.0, "score_func": chi2, "selection": "random",
    "shrink_threshold": 0.3, "shrinking": False, "smooth_idf": False, "solver_options": {"presolve": False},
    "sparse_output": True, "stop_words": "english", "store_covariance": True, "store_cv_results": True, "strategy": "uniform",
    "strip_accents": "unicode", "sublinear_tf": True, "subsample": 20, "threshold_lambda": 2.0, "token_pattern": r"\w",
    "tokenizer": str.split, "tol": 0.05, "use_idf": False, "use_legacy_attributes": True, "validation_fraction": 0.3,
    "verbose": 1, "verbose_interval": 3, "warm_start": True, "weights_init": [0.9, 0.1],
}  # fmt: skip
"""Another value of each parameter."""


def decay(a: Any, b: Any, p: float = 1.0) -> Any:
    """A kernel with a parameter."""
    return np.exp(-p * abs(a - b).sum())


CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "cluster.AgglomerativeClustering.compute_full_tree": ({"n_clusters": None, "distance_threshold": 1.0}, False),
    "cluster.KMeans.algorithm": ({"n_clusters": 1}, "elkan"),
    "cluster.MiniBatchKMeans.init_size": ({}, 2),
    "cluster.SpectralClustering.n_neighbors": ({"affinity": "nearest_neighbors"}, 5),
    "decomposition.TruncatedSVD.algorithm": ({"n_components": 4}, "arpack"),
    "discriminant_analysis.LinearDiscriminantAnalysis.covariance_estimator": (
        {"solver": "lsqr"},
        EmpiricalCovariance(),
    ),
    "discriminant_analysis.LinearDiscriminantAnalysis.solver": ({}, "eigen"),
    "discriminant_analysis.QuadraticDiscriminantAnalysis.covariance_estimator": ({"solver": "eigen"}, LedoitWolf()),
    "discriminant_analysis.QuadraticDiscriminantAnalysis.solver": ({"shrinkage": 0.2}, "eigen"),
    "discriminant_analysis.QuadraticDiscriminantAnalysis.tol": ({}, 10.0),
    "discriminant_analysis.LinearDiscriminantAnalysis.store_covariance": ({"solver": "svd"}, True),
    **{
        f"feature_extraction.text.{kind}Vectorizer.decode_error": ({"encoding": "ascii"}, "ignore")
        for kind in ("Count", "Hashing", "Tfidf")
    },
    **{f"feature_extraction.text.Tfidf{kind}.norm": ({}, "l1") for kind in ("Transformer", "Vectorizer")},
    **{
        f"ensemble.HistGradientBoosting{kind}.{name}": ({"early_stopping": True, "max_iter": 5}, value)
        for kind, scoring in (("Classifier", "accuracy"), ("Regressor", "neg_mean_absolute_error"))
        for name, value in (("scoring", scoring), ("validation_fraction", 0.5))
    },
    "feature_selection.SequentialFeatureSelector.scoring": ({"tol": 0.3}, "neg_max_error"),
    **{
        f"{owner}.{name}": ({asked: kernel}, value)
        for owner, asked in (
            ("cluster.SpectralClustering", "affinity"),
            ("kernel_approximation.Nystroem", "kernel"),
            ("kernel_ridge.KernelRidge", "kernel"),
        )
        for name, kernel, value in (("coef0", "poly", 3.0), ("degree", "poly", 2), ("kernel_params", decay, {"p": 2.0}))
    },
    "kernel_ridge.KernelRidge.gamma": ({"kernel": "rbf"}, 0.05),
    **{f"linear_model.{name}.precompute": ({}, np.eye(4)) for name in ("ElasticNet", "Lasso")},
    "linear_model.GammaRegressor.solver": ({}, "newton-cholesky"),
    "linear_model.LogisticRegression.intercept_scaling": ({"solver": "liblinear"}, 7.0),
    "linear_model.LogisticRegression.solver": ({}, "liblinear"),
    "linear_model.LogisticRegressionCV.intercept_scaling": ({"solver": "liblinear"}, 7.0),
    "linear_model.LogisticRegressionCV.penalty": ({"solver": "saga"}, "l1"),
    "linear_model.LogisticRegressionCV.scoring": ({}, "accuracy"),
    "linear_model.LogisticRegressionCV.solver": ({}, "liblinear"),
    "linear_model.Perceptron.alpha": ({"penalty": "l2"}, 0.7),
    "linear_model.Perceptron.eta0": ({"penalty": "l2"}, 0.3),
    "linear_model.Perceptron.l1_ratio": ({"penalty": "elasticnet"}, 0.9),
    "linear_model.Perceptron.n_iter_no_change": ({"penalty": "l2"}, 2),
    "linear_model.PoissonRegressor.solver": ({}, "newton-cholesky"),
    "linear_model.QuantileRegressor.solver": ({}, "highs-ds"),
    "linear_model.Ridge.solver": ({}, "svd"),
    "linear_model.RidgeCV.alpha_per_target": ({"alpha_per_target": False}, True),
    "linear_model.RidgeCV.scoring": ({}, "neg_mean_absolute_error"),
    "linear_model.SGDClassifier.epsilon": ({"loss": "huber"}, 0.9),
    "linear_model.SGDClassifier.learning_rate": ({"loss": "log_loss"}, "pa1"),
    "linear_model.SGDClassifier.power_t": ({}, -1.0),
    "linear_model.SGDRegressor.epsilon": ({"loss": "huber"}, 0.9),
    "linear_model.SGDRegressor.learning_rate": ({}, "pa1"),
    "linear_model.SGDRegressor.power_t": ({}, -1.0),
    "manifold.ClassicalMDS.metric_params": ({"metric": "minkowski"}, {"p": 1.0}),
    "manifold.MDS.dissimilarity": ({}, "euclidean"),
    "manifold.MDS.metric_params": ({"metric": "minkowski"}, {"p": 1.0}),
    "mixture.GaussianMixture.precisions_init": ({"covariance_type": "diag"}, np.array([[1.0] * 4, [9.0] * 4])),
    **{
        f"naive_bayes.{kind}NB.force_alpha": ({"alpha": 0.0}, False)
        for kind in ("Bernoulli", "Categorical", "Complement", "Multinomial")
    },
    "neighbors.KernelDensity.algorithm": ({}, "kd_tree"),
    "neighbors.KernelDensity.metric_params": ({}, {"p": 3}),
    "neural_network.MLPClassifier.max_fun": ({"solver": "lbfgs", "max_iter": 20}, 2),
    "neural_network.MLPClassifier.nesterovs_momentum": ({"solver": "sgd"}, False),
    "neural_network.MLPRegressor.max_fun": ({"solver": "lbfgs", "max_iter": 20}, 2),
    "neural_network.MLPRegressor.nesterovs_momentum": ({"solver": "sgd"}, False),
    "preprocessing.KBinsDiscretizer.random_state": ({"subsample": 20}, 17),
    "svm.LinearSVC.dual": ({"penalty": "l1", "dual": False}, True),
}
"""Where one more value needs company, or is of one class only."""
UNSEEN = {"feature_selection.SequentialFeatureSelector.n_jobs"}
"""Heeded, and told by no result."""


def rows_of(kind: type[Row]) -> list[Any]:
    return [
        pytest.param(name, parameter, id=f"{name}-{parameter}")
        for name, cls in CLASSES.items()
        for parameter, row in cls._table.items()
        if type(row) is kind
    ]


def both(name: str, parameter: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is told by two models that differ in one parameter."""
    known, times = inspect.signature(CLASSES[name]).parameters, 1 + (parameter == "warm_start")
    company, value = CASES.get(f"{name}.{parameter}") or ({}, OTHER[parameter])
    common = {key: value for key, value in (SMALL | BASES.get(name, {}) | company).items() if key in known}
    plainest = not company and times == 1
    one = (USUAL.get(name) if plainest else None) or outcome(name, common, times)
    if plainest:
        USUAL[name] = one
    return one, outcome(name, {**common, parameter: value}, times)


USUAL: dict[str, dict[str, Any]] = {}
"""What is told where no parameter is changed."""


def outcome(name: str, settings: Mapping[str, Any], times: int = 1) -> dict[str, Any]:
    """All that a fit tells: what it has learned and answers, prints, warns of or raises, and what it leaves of X."""
    model = CLASSES[name](**settings)
    rows: Any = TEXTS if name.endswith("Vectorizer") else X.copy()
    if name.endswith(("NB", "SelectKBest", "TfidfTransformer")):
        rows = rows.round()
    several = "alpha_per_target" in settings or ".MultiTask" in name
    target = np.column_stack([NUMBERS, X[:, 1] ** 2]) if several else NUMBERS
    target = LABELS if is_classifier(model) or name.endswith("SelectKBest") else target
    found: dict[str, Any] = {}
    printed = io.StringIO()
    with warnings.catch_warnings(record=True) as said, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            for _ in range(times):
                model.fit(rows, target)
            found |= {key: plain(value) for key, value in vars(model).items() if is_told(key)}
            for method in ("transform", "predict", "predict_proba", "decision_function", "score_samples"):
                if hasattr(model, method):
                    found[method] = plain(getattr(model, method)(rows))
        except (ValueError, NotImplementedError, OSError) as error:
            found["raised"] = type(error).__name__
    return found | {"printed": printed.getvalue(), "said": [one.category for one in said], "rows": plain(rows)}


def is_told(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_") and name not in ("model_", "certificate_", "calibrated_")


def plain(value: Any) -> Any:
    """What two fits are compared by."""
    if issparse(value):
        return [type(value).__name__, plain(value.toarray())]
    if isinstance(value, np.ndarray) and value.dtype != object:
        return [value.dtype.str, value.flags.f_contiguous, np.nan_to_num(value, nan=-1.5).tolist()]
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    told = [key for key in getattr(value, "__dict__", ()) if is_told(key)]
    if told:
        return {key: plain(vars(value)[key]) for key in told}
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float | str) else type(value)


@pytest.mark.parametrize(("name", "parameter"), rows_of(Free))
def test_a_parameter_said_to_have_no_effect_has_none(name: str, parameter: str) -> None:
    one, other = both(name, parameter)
    assert "raised" not in one
    assert one == other


@pytest.mark.parametrize(("name", "parameter"), [p for p in rows_of(Here) if ".".join(p.values[:2]) not in UNSEEN])
def test_a_parameter_said_to_be_heeded_is(name: str, parameter: str) -> None:
    one, other = both(name, parameter)
    assert one != other


@pytest.mark.parametrize(("name", "parameter"), rows_of(Only))
def test_a_value_said_to_be_refused_is(name: str, parameter: str) -> None:
    one, other = both(name, parameter)
    assert "raised" not in one
    assert other["raised"] == "NotImplementedError"


@pytest.mark.parametrize(("name", "parameter"), rows_of(Instead))
def test_a_value_said_to_be_replaced_draws_a_warning(name: str, parameter: str) -> None:
    one, other = both(name, parameter)
    assert UserWarning not in one["said"]
    assert other == {**one, "said": [UserWarning]}
