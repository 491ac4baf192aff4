"""Every model that can be exported, and the data it is fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np

import certifit as cf

D = 4


def rows(n: int = 240, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, D)).round(2)


def targets(X: Any) -> dict[str, Any]:
    value = X[:, 0] - 2 * X[:, 1] + X[:, 2] * X[:, 3] + 0.3 * np.random.default_rng(1).normal(size=X.shape[0])
    return {
        "value": value,
        "count": np.rint(np.exp(0.4 * np.clip(value, -3, 3))),
        "positive": np.exp(0.2 * value),
        "zero_one": (value > 0).astype(int),
        "two": np.where(value > 0, "yes", "no"),
        "three": np.digitize(value, [-1.0, 1.0]) + 5,
        "words": np.array(["low", "middle", "high"])[np.digitize(value, [-1.0, 1.0])],
        "flag": value > 0,
    }


LINEAR = {
    "ols": (cf.LinearRegression(), "value"),
    "ridge": (cf.Ridge(0.1), "value"),
    "ridge cv": (cf.RidgeCV(), "value"),
    "lasso": (cf.Lasso(0.05), "value"),
    "lasso cv": (cf.LassoCV(cv=3), "value"),
    "poisson": (cf.PoissonRegressor(alpha=0.1), "count"),
    "gamma": (cf.GammaRegressor(alpha=0.1), "positive"),
    "polynomial": (cf.PolynomialRegression(degree=3), "value"),
    "huber": (cf.HuberRegressor(), "value"),
    "quantile": (cf.QuantileRegressor(quantile=0.3), "value"),
    "logistic as regression": (cf.LinearModel("logistic", alpha=0.1), "zero_one"),
    "exponential as regression": (cf.LinearModel("exponential", alpha=0.1), "zero_one"),
    "svr": (cf.LinearSVR(), "value"),
    "sgd": (cf.SGDRegressor(random_state=0, max_iter=30), "value"),
    "sgd poisson": (cf.SGDRegressor("poisson", random_state=0, max_iter=30), "count"),
    "logistic": (cf.LogisticRegression(), "two"),
    "softmax": (cf.LogisticRegression(), "words"),
    "logistic cv": (cf.LogisticRegressionCV(cv=3), "three"),
    "svc": (cf.LinearSVC(), "two"),
    "svc of three": (cf.LinearSVC(), "three"),
    "multiclass svc": (cf.MulticlassSVC(), "three"),
    "multiclass svc of two": (cf.MulticlassSVC(), "flag"),
    "sgd classifier": (cf.SGDClassifier(random_state=0, max_iter=30), "flag"),
    "sgd of three": (cf.SGDClassifier(random_state=0, max_iter=30), "three"),
    "sgd softmax": (cf.SGDClassifier(multi_class="softmax", random_state=0, max_iter=30), "three"),
    "sgd exponential": (cf.SGDClassifier("exponential", random_state=0, max_iter=30), "words"),
    "sgd hinge": (cf.SGDClassifier("hinge", random_state=0, max_iter=30), "three"),
    "perceptron": (cf.Perceptron(random_state=0), "two"),
    "pocket": (cf.PocketPerceptron(random_state=0), "three"),
    "multiclass perceptron": (cf.MulticlassPerceptron(random_state=0), "words"),
}
CALIBRATED = {
    f"{method} of {target}": (cf.CalibratedClassifier(inner, method=method, cv=3), target)
    for method in ("sigmoid", "isotonic", "beta", "temperature", "matrix")
    for inner, target in (
        (cf.LinearSVC(alpha=0.01), "two"),
        (cf.LogisticRegression(), "three"),
        (cf.RandomForestClassifier(n_estimators=5, random_state=0), "words"),
    )
}
DENSITIES = {
    "lda": (cf.LDA(), "two"),
    "lda of three": (cf.LDA(shrinkage="ledoit-wolf"), "words"),
    "qda": (cf.QDA(), "flag"),
    "qda of three": (cf.QDA("diagonal", pooling=0.3), "three"),
    "centroids": (cf.NearestCentroid(), "words"),
    "bayesian regression": (cf.BayesianLinearRegression(), "value"),
    "relevance": (cf.BayesianLinearRegression(relevance=True), "value"),
    "calibrated lda": (cf.CalibratedClassifier(cf.LDA(), cv=3), "three"),
    "calibrated gaussian": (cf.CalibratedClassifier(cf.GaussianNB(), method="temperature", cv=3), "words"),
}
MACHINES = {
    "rbf machine": (cf.SVC(C=2.0), "two"),
    "rbf machine of three": (cf.SVC(C=2.0), "words"),
    "polynomial machine": (cf.SVC(kernel="poly", coef0=1.0, degree=3, break_ties=True), "three"),
    "linear machine": (cf.NuSVC(kernel="linear", nu=0.2), "flag"),
    "machine on a sum": (cf.SVC(kernel=cf.kernels.RBF(0.3) * 2.0 + cf.kernels.Linear() * cf.kernels.RBF(0.1)), "two"),
    "regression on a kernel": (cf.SVR(), "value"),
    "tube of its own": (cf.NuSVR(kernel="linear"), "value"),
    "tube around all": (cf.SVR(epsilon=1e3), "value"),
    "calibrated machine": (cf.CalibratedClassifier(cf.SVC(), cv=3), "three"),
}
KERNELS = {
    "kernel ridge": (cf.KernelRidge(), "value"),
    "kernel ridge cv": (cf.KernelRidgeCV(kernel=cf.kernels.Linear()), "value"),
    "kernel sum": (cf.KernelRidge(kernel=cf.kernels.RBF() + 0.5 * cf.kernels.Polynomial(2, 0.1)), "value"),
    "kernel poisson": (cf.KernelModel("poisson", cf.kernels.Polynomial(2, 0.1), 1e-2), "count"),
    "kernel quantile": (cf.KernelQuantile(0.3, alpha=1e-2), "value"),
    "kernel logistic": (cf.KernelLogisticRegression(), "two"),
    "kernel softmax": (cf.KernelLogisticRegression(approximation="nystrom", n_components=30, random_state=0), "words"),
    "kernel perceptron": (cf.KernelPerceptron(random_state=0), "three"),
}
LAYERS = {"hidden": (12, 6), "max_iter": 20, "random_state": 0}
NETWORKS = {
    "network": (cf.MLPRegressor(**LAYERS), "value"),
    "network of counts": (cf.NeuralNetwork(loss="poisson", activation="leaky_relu", **LAYERS), "count"),
    "network that learns to bend": (cf.MLPRegressor(activation="prelu", leak=0.2, **LAYERS), "value"),
    "bag of lines": (cf.BaggingRegressor(cf.Ridge(0.1), 4, max_features=3, random_state=0), "value"),
    "bag of curves": (cf.BaggingClassifier(cf.LogisticRegression(), 4, max_samples=0.1, random_state=0), "words"),
    "bag of networks": (cf.BaggingRegressor(cf.MLPRegressor(**LAYERS), 3, bootstrap=False, random_state=0), "value"),
    "bag of networks of three": (
        cf.BaggingClassifier(cf.MLPClassifier(**LAYERS), 3, max_features=2, random_state=0),
        "words",
    ),
    "network of one line": (cf.MLPRegressor(activation="identity", **LAYERS), "value"),
    "network in double precision": (
        cf.MLPClassifier(**{**LAYERS, "optimizer": "lbfgs", "activation": "prelu"}),
        "words",
    ),
    "network of two": (cf.MLPClassifier(activation="tanh", polish=True, **LAYERS), "two"),
    "network of three": (cf.MLPClassifier(activation="sigmoid", **LAYERS), "words"),
}
NUMBERS = {**LINEAR, **CALIBRATED, **DENSITIES, **MACHINES, **KERNELS, **NETWORKS}
FEW = {"n_estimators": 12, "random_state": 0}
SMALL = {"n_estimators": 12, "max_leaf_nodes": 8, "min_samples_leaf": 5}
TREES = {
    "tree": (cf.DecisionTreeRegressor(max_depth=5), "value"),
    "tree of classes": (cf.DecisionTreeClassifier(), "words"),
    "pruned tree": (cf.DecisionTreeClassifierCV(cv=3), "two"),
    "stump": (cf.DecisionTreeClassifier(max_depth=1), "three"),
    "best tree": (cf.OptimalTreeClassifier(2, categorical_features=[3]), "three"),
    "best tree of values": (cf.OptimalTreeRegressor(2), "value"),
    "categories": (cf.DecisionTreeClassifier(categorical_features=[3]), "three"),
    "category values": (cf.DecisionTreeRegressor(categorical_features=[2, 3], max_depth=6), "value"),
    "forest": (cf.RandomForestRegressor(**FEW), "value"),
    "forest of classes": (cf.RandomForestClassifier(**FEW), "words"),
    "forest with categories": (cf.RandomForestClassifier(**FEW, categorical_features=[3]), "two"),
    "boosting": (cf.GradientBoostingRegressor(**SMALL), "value"),
    "boosted counts": (cf.BoostedTrees("poisson", **SMALL), "count"),
    "boosted chances": (cf.BoostedTrees("logistic", **SMALL), "zero_one"),
    "boosted quantile": (cf.BoostedTrees("quantile", **SMALL), "value"),
    "boosting of two": (cf.GradientBoostingClassifier(**SMALL), "two"),
    "boosting of three": (cf.GradientBoostingClassifier(**SMALL), "three"),
    "boosting with categories": (cf.GradientBoostingClassifier(**SMALL, categorical_features=[3]), "words"),
    "boosted categories": (cf.GradientBoostingRegressor(**SMALL, categorical_features=[2, 3]), "value"),
    "boosting exponential": (cf.GradientBoostingClassifier("exponential", **SMALL), "flag"),
    "boosting hinge": (cf.GradientBoostingClassifier("squared_hinge", **SMALL), "two"),
}
NAIVE = {
    "gaussian": (cf.GaussianNB(), "words"),
    "bernoulli": (cf.BernoulliNB(binarize=0.2), "two"),
    "mixed": (cf.NaiveBayes(kinds=["gaussian", "kernel", "categorical", "categorical"]), "three"),
    "rates": (cf.NaiveBayes(kinds={0: "kernel"}, alpha=0.0), "flag"),
}
HOLES = {**TREES, **NAIVE}


def table(n: int, seed: int = 0) -> Any:
    """Rows for trees: with holes, columns 2 and 3 of few values, one value of the category rare."""
    X = rows(n, seed)
    rng = np.random.default_rng(seed + 10)
    X[:, 3] = np.where(rng.random(n) < 0.05, 7.25, rng.integers(-1, 4, size=n))
    X[:, 2] = np.rint(2 * X[:, 2])
    return np.where(rng.random(X.shape) < 0.1, np.nan, X)
