"""Tables with numbers, truth values, categories and holes: the encoder is exported with the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from tests.onnx.sessions import compare, run, session

import certifit as cf
from certifit.contest.record.model import Blend, Chain, TableModel
from certifit.contest.search.calibrated import calibrated
from certifit.onnx import to_onnx
from certifit.onnx.errors import NotExportableError
from certifit.persistence import load, save

KINDS = {"age": "numeric", "member": "boolean", "job": "category", "size": "numeric"}
ENCODINGS = {
    "matrix": {"numeric": "standard", "categories": "onehot", "missing": "indicator"},
    "codes": {"numeric": "raw", "categories": "ordinal", "missing": "keep"},
    "codes without holes": {"numeric": "raw", "categories": "ordinal", "missing": "indicator"},
    "matrix with holes": {"numeric": "raw", "categories": "onehot", "missing": "keep"},
}


def frame(n: int, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    jobs = rng.choice(["smith", "cook", "pilot", "clown"], p=[0.4, 0.35, 0.24, 0.01], size=n).tolist()
    return pl.DataFrame(
        {
            "age": [
                None if hole else round(x, 1) for x, hole in zip(rng.normal(40, 9, n), rng.random(n) < 0.1, strict=True)
            ],
            "member": [("yes", "no", None)[k] for k in rng.choice(3, p=[0.5, 0.4, 0.1], size=n)],
            "job": [None if hole else job for job, hole in zip(jobs, rng.random(n) < 0.1, strict=True)],
            "size": rng.normal(size=n).round(2),
        }
    )


def target(table: pl.DataFrame) -> Any:
    parts = table.select(
        (pl.col("age").fill_null(60) - 40) / 9,
        (pl.col("member") == "yes").fill_null(False).cast(pl.Float64),
        pl.col("job").replace_strict({"smith": 1.0, "cook": -1.0, "pilot": 0.3, "clown": 3.0}).fill_null(2.0),
        pl.col("size"),
    )
    return parts.to_numpy().sum(axis=1)


def feeds(table: pl.DataFrame, dtype: str = "float64") -> dict[str, Any]:
    """The columns as a runtime takes them: numbers with NaN, text with empty strings."""
    found: dict[str, Any] = {}
    for name, kind in KINDS.items():
        if kind == "numeric":
            found[name] = table[name].cast(pl.Float64).fill_null(np.nan).to_numpy()[:, None].astype(dtype)
        else:
            found[name] = np.array(table[name].fill_null("").to_list(), dtype=object)[:, None]
    return found


def new_rows() -> pl.DataFrame:
    """Rows with values that were not seen in training."""
    table = frame(300, seed=1)
    odd = {"age": [41.0] * 3, "member": ["perhaps", None, "no"], "job": ["king", None, "clown"], "size": [0.0] * 3}
    return pl.concat([table, pl.DataFrame(odd)])


def encoder(encoding: str, **options: Any) -> Any:
    return cf.TableEncoder(kinds=KINDS, **ENCODINGS[encoding], **options)


@pytest.mark.parametrize("other", [True, False], ids=["pooled", "all levels"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encoders(encoding: str, other: bool) -> None:
    table = frame(400)
    codes = np.flatnonzero(encoder(encoding).fit(table).categorical_features_).tolist()
    last = cf.GradientBoostingRegressor(n_estimators=15, categorical_features=codes)
    if encoding == "matrix":
        last = cf.Ridge(0.1)
    model = make_pipeline(encoder(encoding, min_frequency=0.05 if other else 0.0), last).fit(table, target(table))
    made = session(to_onnx(model))
    assert [item.name for item in made.get_inputs()] == list(KINDS)
    new = new_rows()
    compare(model, run(made, feeds(new)), new, "float64")


def test_single_precision() -> None:
    table = frame(400).with_columns(pl.col("age", "size").cast(pl.Float32))
    model = make_pipeline(encoder("matrix"), cf.DecisionTreeClassifier()).fit(table, target(table) > 1)
    new = new_rows().with_columns(pl.col("age", "size").cast(pl.Float32))
    compare(model, run(session(to_onnx(model, dtype="float32")), feeds(new, "float32")), new, "float32")


def chain(estimator: Any, encoding: str, table: pl.DataFrame, y: Any, *steps: Any) -> Chain:
    made = encoder(encoding).fit(table)
    X, fitted = made.transform(table), []
    for step in steps:
        fitted.append(step.fit(X))
        X = fitted[-1].transform(X)
    return Chain(made, fitted, estimator.fit(X, y), len(np.unique(y)) if y.dtype.kind == "i" else 0)


def winner(core: Any, classes: tuple[str, ...] = (), threshold: float | None = None) -> TableModel:
    return TableModel(schema=None, core=core, name="one", label="One", classes=classes, threshold=threshold)  # type: ignore[arg-type]


def winners() -> dict[str, TableModel]:
    table = frame(400)
    value = target(table)
    two, three = (value > 1).astype(int), np.digitize(value, [0.5, 2.0])
    logistic = chain(cf.LogisticRegression(), "matrix", table, two)
    boosted = chain(cf.GradientBoostingClassifier(n_estimators=10), "codes", table, two)
    proof = boosted.estimator.certificate_
    products = (cf.PolynomialFeatures(degree=2), cf.StandardScaler())
    return {
        "logistic": winner(logistic, ("no", "yes")),
        "threshold": winner(boosted, ("no", "yes"), 0.2),
        "blend": winner(Blend({"a": logistic, "b": boosted}, {"a": 0.3, "b": 0.7}, proof), ("no", "yes"), 0.4),
        "calibrated": winner(chain(calibrated(cf.LinearSVC(alpha=0.01)), "matrix", table, two), ("no", "yes")),
        "calibrated of three": winner(
            chain(calibrated(cf.LinearSVC(alpha=0.01)), "matrix", table, three), tuple("abc")
        ),
        "forest": winner(
            chain(cf.RandomForestClassifier(n_estimators=5, random_state=0), "codes", table, three), tuple("abc")
        ),
        "products": winner(chain(cf.Ridge(0.1), "matrix", table, value, *products)),
    }


@pytest.mark.parametrize("name", winners())
def test_winners_of_contests(name: str, tmp_path: Path) -> None:
    model, new = winners()[name], new_rows()
    wanted = model.predict_features(new)
    twin = load(save(model, tmp_path / "model.cfit"))
    np.testing.assert_array_equal(twin.predict_features(new), wanted)
    found = run(session(to_onnx(model)), feeds(new))
    if model.classes:
        np.testing.assert_allclose(found["probabilities"], wanted, atol=1e-9)
        np.testing.assert_array_equal(found["label"], model.decide(wanted))
    else:
        np.testing.assert_allclose(found["prediction"], wanted, rtol=1e-9)


def test_dates_and_names_of_outputs_are_refused() -> None:
    table = frame(60).with_columns(pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 2, 29), "1d").alias("day"))
    model = make_pipeline(cf.TableEncoder(), cf.Ridge()).fit(table, target(table))
    with pytest.raises(NotExportableError, match="column 'day' is a column of kind 'date'"):
        to_onnx(model)
    renamed = frame(60).rename({"size": "prediction"})
    model = make_pipeline(cf.TableEncoder(), cf.Ridge()).fit(renamed, target(frame(60)))
    with pytest.raises(ValueError, match="'prediction' is the name of an output"):
        to_onnx(model)
    new = feeds(frame(60))
    named = {"a": new["age"], "b": new["member"], "c": new["job"], "d": new["size"]}
    compare(model, run(session(to_onnx(model, feature_names=list("abcd"))), named), renamed, "float64")
