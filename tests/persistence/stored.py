"""Writes the model files of tests/data that later versions must open: ``python -m tests.persistence.stored``.

Run it once for a new format version; files that are there already stay, since they stand for what users have.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

import certifit as cf
from certifit.persistence import save
from certifit.persistence.container import FORMAT

DATA = Path(__file__).resolve().parents[1] / "data"


def rows(n: int = 90, seed: int = 0) -> np.ndarray[Any, Any]:
    """Five columns of numbers; the last one has few values, as categories have."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=(n, 4)), rng.integers(5, size=n)]).round(3)


def words(X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Sentences of three words from the column of few values."""
    return np.array([f"w{value:.0f}" for value in X[:, 4]]).reshape(-1, 3)


def sentences(X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A text of each row: the signs of its numbers, spelled out."""
    return np.array([" ".join(("plus", "MINUS", "naïve")[int(v < 0) + int(v < -1)] for v in row) for row in X])


def models() -> dict[str, Any]:
    """A small fitted model of each family."""
    X = rows()
    value = np.exp(0.4 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * X[:, 4]
    two = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, "yes", "no")
    three = np.digitize(value, [1.5, 3.0])
    holes = np.where(np.random.default_rng(3).random(X.shape) < 0.1, np.nan, X)
    table, counts = make_pipeline(cf.StandardScaler(), cf.Ridge(alpha=0.1)), np.rint(value)
    boosting = {"n_estimators": 4, "max_leaf_nodes": 5, "min_samples_leaf": 5}
    return {
        "linear": cf.LinearRegression().fit(X, value),
        "lasso": cf.LassoCV(cv=3).fit(X, value),
        "glm": cf.PoissonRegressor(alpha=0.1).fit(X, counts),
        "robust": cf.HuberRegressor().fit(X, value),
        "composed": cf.LinearModel(cf.losses.Quantile(0.3), "l2", 0.1, constraint=cf.penalties.Box(-1.0, 1.0)).fit(
            X, value
        ),
        "logistic": cf.LogisticRegression().fit(X, three),
        "svm": cf.LinearSVC(alpha=0.1).fit(X, two),
        "sgd": cf.SGDClassifier(random_state=0).fit(X, two),
        "perceptron": cf.Perceptron(random_state=0).fit(X, two),
        "polynomial": cf.PolynomialRegression(degree=2).fit(X, value),
        "tree": cf.DecisionTreeClassifier(max_depth=4, categorical_features=[4]).fit(holes, three),
        "optimal_tree": cf.OptimalTreeClassifier(2, categorical_features=[4]).fit(holes, three),
        "forest": cf.RandomForestRegressor(n_estimators=3, max_depth=3, random_state=0).fit(holes, value),
        "boosting": cf.GradientBoostingClassifier(**boosting, categorical=[4]).fit(holes, three),
        "boosted_counts": cf.BoostedTrees(loss="poisson", **boosting).fit(holes, counts),
        "adaboost": cf.AdaBoostClassifier(n_estimators=4, random_state=0).fit(X, two),
        "bagging": cf.BaggingRegressor(n_estimators=3, random_state=0).fit(X, value),
        "multiclass": cf.OneVsRest(cf.LogisticRegression(alpha=0.1)).fit(X, three),
        "scaler": cf.StandardScaler().fit(X),
        "splines": cf.SplineBasis().fit(X[:, :2]),
        "pipeline": table.fit(X, value),
        "machine": cf.SVC(C=2.0, kernel=cf.kernels.RBF(0.1) + 0.1 * cf.kernels.Linear()).fit(X, three),
        "tube": cf.NuSVR(nu=0.3, C=2.0).fit(X, value),
        "region": cf.OneClassSVM(nu=0.2).fit(X),
        "neighbors": cf.KNeighborsClassifier(3, weights="distance").fit(X, two),
        "neighbors_tree": cf.KNeighborsRegressor("loo", algorithm="kd_tree").fit(X, value),
        "local": cf.LocallyWeightedRegression("tricube", "nearest").fit(X, value),
        "subset": cf.BestSubset(3).fit(X, value),
        "stepwise": cf.StepwiseSelection(n_features=2).fit(X, value),
        "clusters": cf.KMeans(3, random_state=0).fit(X),
        "neural": cf.MLPClassifier(hidden=(6,), max_iter=3, random_state=0).fit(X, three),
        "neural_regression": cf.NeuralNetwork(
            loss="huber", hidden=(5, 4), activation="tanh", max_iter=3, random_state=0
        ).fit(X, value),
        "medoids": cf.KMedoids(3, random_state=0).fit(X),
        "mixture": cf.GaussianMixture(2, random_state=0).fit(X),
        "components": cf.PCA(2).fit(X),
        "crf": cf.LinearChainCRF(alpha=0.1, features=["w[0]", "w[-1]|w[0]"]).fit(words(X), two.reshape(-1, 3)),
        "bag": cf.BagOfWords("tfidf", ngram_range=(1, 2)).fit(sentences(X)),
    }


def said(model: Any, X: Any) -> dict[str, Any]:
    """What a model says about rows, as lists."""
    if not hasattr(model, "predict"):
        rows = model.transform(X)
        return {"transform": np.asarray(rows.toarray() if sp.issparse(rows) else rows).tolist()}
    names = [name for name in ("predict", "predict_proba") if hasattr(model, name)]
    return {name: np.asarray(getattr(model, name)(X)).tolist() for name in names}


def main() -> None:
    """Write what is missing."""
    folder = DATA / f"format{FORMAT}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in models().items():
        path = folder / f"{name}.cfit"
        if not path.exists():
            save(model, path, note="kept to see that files of this format still open")
            X = rows(12, seed=1)[:, : getattr(model, "n_features_in_", 5)]
            X = words(X) if getattr(model, "takes_sequences", False) else X
            X = sentences(X) if getattr(model, "takes_documents", False) else X
            path.with_suffix(".json").write_text(json.dumps({"X": X.tolist(), **said(model, X)}) + "\n")


if __name__ == "__main__":
    main()
