"""What onnxruntime computes from an exported model is what Certifit computes.

Trees must send every row to the same leaf, in both precisions. Other numbers may differ by the rounding of the
output: 1e-9 relative in double precision (sums are in another order), 1e-5 in single precision.
"""

from __future__ import annotations

import builtins
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as ForeignScaler
from tests.onnx.models import FEW, HOLES, LAYERS, NUMBERS, SMALL, D, rows, table, targets
from tests.onnx.sessions import TOLERANCE, compare, run, session

import certifit as cf
from certifit.onnx import to_onnx
from certifit.onnx.errors import NotExportableError

onnx = pytest.importorskip("onnx")


"""Models whose rows are numbers without holes."""

"""Models that take missing values."""


@pytest.fixture(scope="module")
def fitted() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Every model with its sessions in both precisions, made when first asked for."""
    return {}


def prepared(name: str, fitted: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    if name not in fitted:
        model, target = {**NUMBERS, **HOLES}[name]
        X = rows() if name in NUMBERS else table(240)
        y = targets(np.nan_to_num(X))[target]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        fitted[name] = model, {dtype: session(to_onnx(model, dtype=dtype)) for dtype in TOLERANCE}
    return fitted[name]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str, dtype: str, fitted: dict[str, Any]) -> None:
    model, sessions = prepared(name, fitted)
    X = rows(100, seed=5).astype(dtype)
    compare(model, run(sessions[dtype], X), X, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", HOLES)
def test_holes(name: str, dtype: str, fitted: dict[str, Any]) -> None:
    model, sessions = prepared(name, fitted)
    for X in (table(400, seed=3).astype(dtype), np.full((1, D), np.nan, dtype=dtype)):
        compare(model, run(sessions[dtype], X), X, dtype)


COUNTS = {
    "multinomial": cf.MultinomialNB(),
    "complement": cf.ComplementNB(),
    "categorical": cf.CategoricalNB(alpha=0.5),
    "yes and no": cf.BernoulliNB(binarize=None, alpha=0.0),
    "poisson": cf.NaiveBayes(kinds="poisson"),
    "counts": cf.NaiveBayes(kinds=["multinomial", "multinomial", "bernoulli", "categorical"]),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson([1.0, 3.0, 2.0, 1.0], size=(200, D)).astype(dtype)
    X[:, 2] = X[:, 2] > 1
    if name == "yes and no":
        X = (X > 1).astype(dtype)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = targets(np.nan_to_num(X))["words"]
    model = COUNTS[name].fit(X, y)
    new = np.vstack([X[:50], np.full((1, D), np.nan, dtype=dtype)])
    if name == "categorical":
        new[0, 3] = 40.0  # a category that training did not see
    compare(model, run(session(to_onnx(model, dtype=dtype)), new), new, dtype)


def test_priors_and_costs_changed_after_the_fit() -> None:
    X = rows()
    model = cf.LDA().fit(X, targets(X)["three"])
    for changed in (model.with_priors([0.1, 0.1, 0.8]), model.with_costs([[0, 1, 5], [1, 0, 1], [9, 1, 0]])):
        found = run(session(to_onnx(changed)), X)
        np.testing.assert_array_equal(found["label"], changed.predict(X))
        np.testing.assert_allclose(found["probabilities"], changed.predict_proba(X), atol=1e-9)


def test_categories_of_text_are_refused() -> None:
    frame = pd.DataFrame({"a": ["x", "y", "x", "y"], "b": [0.0, 1.0, 2.0, 3.0]})
    model = cf.NaiveBayes().fit(frame, [0, 1, 0, 1])
    with pytest.raises(NotExportableError, match="TableEncoder"):
        to_onnx(model)


VALUES = st.one_of(
    st.sampled_from([np.nan, 0.0, -1.0, 1.0, 2.0, 3.0, 7.25, 0.005, -0.0]),
    st.floats(-4, 4, width=32),
    st.floats(width=32, allow_nan=True, allow_infinity=False),
)


@settings(max_examples=25)
@given(X=hnp.arrays(np.float64, st.tuples(st.integers(1, 8), st.just(D)), elements=VALUES))
@pytest.mark.parametrize("name", ["categories", "forest of classes", "boosted categories", "boosting of three"])
def test_any_rows(name: str, fitted: dict[str, Any], X: Any) -> None:
    model, sessions = prepared(name, fitted)
    for dtype in TOLERANCE:
        compare(model, run(sessions[dtype], X.astype(dtype)), X.astype(dtype), dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ["tree", "forest", "boosting"])
def test_rows_on_both_sides_of_every_threshold(name: str, dtype: str, fitted: dict[str, Any]) -> None:
    """A value that equals a threshold goes left, its neighbour goes right; single precision rounds no threshold."""
    model, sessions = prepared(name, fitted)
    if name == "boosting":
        asked = [(t.feature[v], t.threshold[v]) for t in model.trees_ for v in np.flatnonzero(t.feature >= 0)]
    else:
        trees = model._tree if name == "tree" else model._trees
        inner = trees.feature >= 0
        asked = list(zip(trees.feature[inner], trees.threshold[inner], strict=True))
    X = []
    for feature, threshold in asked:
        edge = np.asarray(threshold, dtype=dtype)
        if np.isfinite(edge):
            for value in (edge, np.nextafter(edge, edge - 1), np.nextafter(edge, edge + 1)):
                X.append(np.zeros(D, dtype=dtype))
                X[-1][feature] = value
    table = np.array(X)
    assert table.shape[0] > 20
    found = run(sessions[dtype], table)["prediction"]
    # Leaves differ by far more than the tolerance.
    np.testing.assert_allclose(found, model.predict(table), rtol=TOLERANCE[dtype], atol=1e-7)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    "steps",
    [
        [cf.StandardScaler()],
        [cf.StandardScaler(with_mean=False), cf.MinMaxScaler(feature_range=(-2.0, 3.0), clip=True)],
        [ForeignScaler(), "passthrough"],
        [cf.PolynomialFeatures(degree=3, include_bias=True)],
        [cf.QuantileScaler(n_quantiles=9)],
        [SimpleImputer(strategy="median"), make_pipeline(cf.MinMaxScaler())],
    ],
    ids=str,
)
@pytest.mark.parametrize("last", [cf.LogisticRegression(), cf.DecisionTreeClassifier(), cf.Ridge()], ids=str)
def test_pipelines(steps: list[Any], last: Any, dtype: str) -> None:
    X = rows().astype(dtype)
    if isinstance(steps[0], SimpleImputer):
        X[::7, 1] = np.nan
    y = targets(np.nan_to_num(X.astype(float)))["value" if isinstance(last, cf.Ridge) else "words"]
    model = make_pipeline(*steps, last).fit(X, y)
    compare(model, run(session(to_onnx(model, dtype=dtype)), X), X, dtype)


def text_frame(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"size": rng.normal(size=n), "color": rng.choice(["red", "green", "blü"], size=n)})
    frame.loc[::9, "color"] = None
    frame.loc[1::11, "size"] = np.nan
    return frame


@pytest.mark.parametrize(
    "model",
    [
        cf.GradientBoostingClassifier(**SMALL),
        cf.DecisionTreeClassifier(categorical_features=["color"]),
        cf.RandomForestRegressor(**FEW, categorical_features="auto"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_columns_of_text_are_inputs_of_their_own(model: Any) -> None:
    frame = text_frame(300)
    signal = frame["color"].map({"red": 1.0, "green": -1.0, "blü": 0.3}).fillna(2.0) + frame["size"].fillna(0.0)
    model.fit(frame, (signal > 0.5).map({True: "yes", False: "no"}) if is_classifier(model) else signal)
    new = text_frame(200, seed=1)
    new.loc[5, "color"] = "violet"  # not seen in training
    made = session(to_onnx(model))
    assert [item.name for item in made.get_inputs()] == ["size", "color"]
    feeds = {
        "size": new[["size"]].to_numpy(),
        "color": new[["color"]].fillna("").to_numpy().astype(object),
    }
    compare(model, run(made, feeds), new, "float64")


def test_named_inputs_and_a_file(tmp_path: Path) -> None:
    X = rows()
    model = cf.Ridge(0.1).fit(X, X[:, 0])
    names = ["a", "b", "c", "d"]
    content = to_onnx(model, tmp_path / "model.onnx", feature_names=names)
    assert (tmp_path / "model.onnx").read_bytes() == content
    feeds = {name: X[:, [j]] for j, name in enumerate(names)}
    compare(model, run(session(content), feeds), X, "float64")
    about = {item.key: item.value for item in onnx.load_from_string(content).metadata_props}
    assert about == {"model": "Ridge", "features": '["a", "b", "c", "d"]'}
    assert to_onnx(model) == to_onnx(model)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    "model",
    [
        cf.DecisionTreeClassifier(categorical_features=[0]),
        cf.RandomForestRegressor(**FEW, categorical_features=[0]),
        cf.GradientBoostingRegressor(n_estimators=4, min_samples_leaf=1, categorical_features=[0]),
        cf.GradientBoostingRegressor(n_estimators=2, min_samples_leaf=1, max_leaf_nodes=600, categorical_features=[0]),
    ],
    ids=lambda model: f"{model!r:.60}",
)
def test_hundreds_of_categories_and_leaves(model: Any, dtype: str) -> None:
    """More categories than a machine word has bits, more than there are bins, and values that are no small integers."""
    rng = np.random.default_rng(0)
    values = np.concatenate([[-1e9, 0.5, 3e9], 10.0 * np.arange(300)])
    X = np.column_stack([rng.choice(values, size=1500), rng.normal(size=1500)])
    X[::13, 0] = np.nan
    noise = rng.normal(size=1500)
    y = np.sin(X[:, 0] * 1.7) + 0.1 * noise
    y = np.where(np.isnan(y), 2.0, y)
    model.fit(X, np.digitize(y, [-0.3, 0.3]) if is_classifier(model) else y)
    new = np.column_stack([rng.choice([*values, 5.0, -7.0, np.nan], size=400), rng.normal(size=400)]).astype(dtype)
    compare(model, run(session(to_onnx(model, dtype=dtype)), new), new, dtype)


def test_a_forest_of_leaves_and_boosting_without_trees() -> None:
    X = rows(60)
    lonely = cf.RandomForestClassifier(n_estimators=3, min_samples_leaf=40, random_state=0).fit(X, X[:, 0] > 0)
    compare(lonely, run(session(to_onnx(lonely)), X), X, "float64")
    flat = cf.DecisionTreeRegressor().fit(X, np.ones(60))
    compare(flat, run(session(to_onnx(flat)), X), X, "float64")
    constant = cf.GradientBoostingClassifier(n_estimators=2).fit(X, np.repeat("only", 60))
    found = run(session(to_onnx(constant)), X)
    assert set(found["label"]) == {"only"}
    np.testing.assert_array_equal(found["probabilities"], np.ones((60, 1)))
    short = cf.GradientBoostingRegressor(n_estimators=3).fit(X, X[:, 0])
    short.trees_ = []
    X[0, 0] = np.nan
    np.testing.assert_allclose(run(session(to_onnx(short)), X)["prediction"], short.start_[0])


class OwnLoss(cf.losses.Squared):
    def predict(self, f: Any) -> Any:
        return np.tanh(f)


class OwnRidge(cf.Ridge):
    pass


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_trees_of_several_targets(dtype: str) -> None:
    X = rows().astype(dtype)
    y = targets(X.astype(np.float64))
    numbers, classes = np.column_stack([y["value"], y["count"]]), np.column_stack([y["words"], y["two"]])
    for model in (cf.DecisionTreeRegressor(max_depth=4), cf.RandomForestRegressor(5, random_state=0)):
        found = run(session(to_onnx(model.fit(X, numbers), dtype=dtype)), X)["prediction"]
        np.testing.assert_allclose(found, model.predict(X), rtol=TOLERANCE[dtype])
    for model in (cf.DecisionTreeClassifier(max_depth=4), cf.RandomForestClassifier(5, random_state=0)):
        told = run(session(to_onnx(model.fit(X, classes), dtype=dtype)), X)
        for k, shares in enumerate(model.predict_proba(X)):
            np.testing.assert_allclose(told[f"probabilities_{k}"], shares, atol=TOLERANCE[dtype])
            assert np.array_equal(told[f"label_{k}"], model.predict(X)[:, k])


def test_bags_of_categories_are_refused() -> None:
    # Their trees know codes in the place of the categories of the table.
    X = np.column_stack([rows()[:, 0], np.arange(240) % 3 + 7.0])
    tree = cf.DecisionTreeRegressor(max_depth=2, categorical_features=[1])
    with pytest.raises(NotExportableError, match="columns of categories"):
        to_onnx(cf.BaggingRegressor(tree, 3, random_state=0).fit(X, X[:, 0] + (X[:, 1] == 8)))


def test_what_cannot_be_exported_says_so() -> None:
    X = rows(60)
    y = X[:, 0]
    with pytest.raises(NotFittedError, match="Ridge"):
        to_onnx(cf.Ridge())
    with pytest.raises(NotExportableError, match=r"LocallyWeightedRegression cannot be exported.*boosted trees can"):
        to_onnx(cf.LocallyWeightedRegression().fit(X, y))
    with pytest.raises(NotExportableError, match="OwnRidge cannot be exported"):
        to_onnx(OwnRidge().fit(X, y))
    with pytest.raises(NotExportableError, match="loss OwnLoss cannot be exported"):
        to_onnx(cf.LinearModel(OwnLoss()).fit(X, y))
    with pytest.raises(NotExportableError, match="step SplineBasis cannot be exported"):
        to_onnx(make_pipeline(cf.SplineBasis(), cf.Ridge()).fit(X, y))
    with pytest.raises(NotExportableError, match="add_indicator=False"):
        to_onnx(make_pipeline(SimpleImputer(add_indicator=True), cf.Ridge()).fit(X, y))
    model = cf.Ridge().fit(X, y)
    with pytest.raises(ValueError, match="feature_names has 2 names; the model has 4"):
        to_onnx(model, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="a name occurs twice"):
        to_onnx(model, feature_names=["a", "b", "a", "c"])
    with pytest.raises(ValueError, match="'prediction' is the name of an output"):
        to_onnx(model, feature_names=["a", "b", "prediction", "c"])
    with pytest.raises(TypeError, match="feature_names must be a list of names"):
        to_onnx(model, feature_names="abcd")
    with pytest.raises(ValueError, match="dtype must be"):
        to_onnx(model, dtype="float16")


def test_kernels_that_are_no_plain_operators_are_refused() -> None:
    X = rows(30)
    with pytest.raises(NotExportableError, match=r"the kernel .* cannot be exported"):
        to_onnx(cf.KernelRidge(kernel="laplacian").fit(X, X[:, 0]))
    with pytest.raises(NotExportableError, match="several targets"):
        to_onnx(cf.KernelRidge().fit(X, X[:, :2]))
    words = ["abab", "baba", "xyz", "zyx"]
    for model in (cf.KernelRidge(kernel=cf.kernels.Spectrum(n=2)), cf.SVC(kernel=cf.kernels.Spectrum(n=2))):
        with pytest.raises(NotExportableError, match=r"the kernel .* cannot be exported"):
            to_onnx(model.fit(words, [0, 0, 1, 1]))


def test_networks_of_several_scores_are_refused() -> None:
    X = rows()
    labels = cf.MLPClassifier(**LAYERS).fit(X, (X[:, :2] > 0).astype(int))
    several = cf.MLPRegressor(**LAYERS).fit(X, X[:, :2])
    with pytest.raises(NotExportableError, match="several scores"):
        to_onnx(several)
    with pytest.raises(NotExportableError, match="several labels"):
        to_onnx(labels)


def test_without_onnx_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **options: Any) -> Any:
        if name == "onnx":
            raise ImportError("No module named 'onnx'")
        return real(name, *rest, **options)

    monkeypatch.delitem(sys.modules, "onnx", raising=False)
    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ImportError, match=r'pip install "certifit\[onnx\]"'):
        to_onnx(cf.Ridge().fit([[0.0], [1.0]], [0.0, 1.0]))
