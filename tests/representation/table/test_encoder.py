"""TableEncoder: values, weights, unseen and missing values, every kind of frame."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as Reference

from certifit import Ridge
from certifit.representation.table.encoder import TableEncoder

N = 90
RNG = np.random.default_rng(0)
DATA: dict[str, Any] = {
    "age": RNG.normal(40, 10, N),
    "wage": [None if i % 9 == 0 else float(v) for i, v in enumerate(RNG.lognormal(size=N))],
    "job": [["smith", "cook", "pilot", None, "smith"][i % 5] for i in range(N)],
    "born": [
        None if i % 30 == 7 else dt.datetime(2020, 1, 1) + dt.timedelta(days=11 * i, hours=i % 24) for i in range(N)
    ],
    "glad": [bool(i % 3) for i in range(N)],
    "note": [f"{'good' if i % 2 else 'bad'} food, number{i} of the week" for i in range(N)],
}
FRAMES: dict[str, Any] = {
    "polars": lambda d: pl.DataFrame(d),
    "pandas": lambda d: pd.DataFrame(d),
    "arrow": lambda d: pa.table({k: pa.array(list(v), from_pandas=True) for k, v in d.items()}),
}
VARIANTS: list[dict[str, Any]] = [
    {},
    {"numeric": "raw", "categories": "ordinal", "missing": "keep"},
    {"numeric": "raw", "categories": "ordinal"},
    {"missing": "keep"},
    {"sparse_output": True},
]


def dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)


def table(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame(columns)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_every_frame_gives_the_same_matrix(options: dict[str, Any], kind: str) -> None:
    first = TableEncoder(**options).fit(FRAMES["polars"](DATA))
    other = TableEncoder(**options).fit(FRAMES[kind](DATA))
    assert first.columns_ == other.columns_
    np.testing.assert_array_equal(
        dense(first.transform(FRAMES["polars"](DATA))), dense(other.transform(FRAMES[kind](DATA)))
    )


def test_numbers_are_standardized_as_elsewhere() -> None:
    X = RNG.normal(3, 5, size=(50, 4))
    weight = RNG.integers(0, 4, 50)
    ours = TableEncoder().fit(X, sample_weight=weight).transform(X)
    np.testing.assert_allclose(ours, Reference().fit(X, sample_weight=weight).transform(X), atol=1e-12)
    np.testing.assert_array_equal(TableEncoder(numeric="raw").fit_transform(X), X)


def test_missing_numbers() -> None:
    frame = table(a=[1.0, None, 3.0, 100.0], b=[1.0, 2.0, 3.0, 4.0])
    encoder = TableEncoder(numeric="raw").fit(frame)
    assert list(encoder.get_feature_names_out()) == ["a", "a missing", "b"]
    np.testing.assert_array_equal(encoder.transform(frame)[1], [3.0, 1.0, 2.0])
    np.testing.assert_array_equal(encoder.transform(table(a=[5.0], b=[None]))[0], [5.0, 0.0, 2.5])
    kept = TableEncoder(numeric="raw", missing="keep").fit(frame)
    np.testing.assert_array_equal(kept.transform(frame)[1], [np.nan, 2.0])
    empty = TableEncoder().fit(table(a=[None, None], b=[1.0, 2.0]).with_columns(pl.col("a").cast(pl.Float64)))
    assert np.isfinite(empty.transform(table(a=[None, 3.0], b=[1.0, 2.0]))).all()


def test_levels() -> None:
    frame = table(k=["a"] * 50 + ["b"] * 40 + ["c"] * 6 + ["d"] * 4)
    encoder = TableEncoder(min_frequency=0.05).fit(frame)
    assert list(encoder.get_feature_names_out()) == ["k=a", "k=b", "k=c", "k=(other)"]
    got = encoder.transform(table(k=["b", "d", "never", None]))
    np.testing.assert_array_equal(got, [[0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    few = TableEncoder(max_levels=2).fit(frame)
    assert list(few.get_feature_names_out()) == ["k=a", "k=(other)"]
    all_ = TableEncoder(min_frequency=0.0).fit(frame)
    assert list(all_.get_feature_names_out()) == ["k=a", "k=b", "k=c", "k=d"]
    np.testing.assert_array_equal(all_.transform(table(k=["never"])), [[0, 0, 0, 0]])


def test_codes() -> None:
    frame = table(x=[1.0, 2.0, 3.0, 4.0], k=["b", "a", None, "b"])
    encoder = TableEncoder(numeric="raw", categories="ordinal", missing="keep").fit(frame)
    np.testing.assert_array_equal(encoder.categorical_features_, [False, True])
    np.testing.assert_array_equal(
        encoder.transform(table(x=[1.0] * 4, k=["a", "b", None, "c"]))[:, 1], [0, 1, np.nan, np.nan]
    )
    filled = TableEncoder(categories="ordinal").fit(frame)
    np.testing.assert_array_equal(filled.transform(table(x=[1.0] * 4, k=["a", "b", None, "c"]))[:, 1], [0, 1, 2, 2])


def test_dates() -> None:
    days = [dt.datetime(2020, 2, 29), dt.datetime(2021, 12, 31), dt.datetime(1969, 7, 20)]
    encoder = TableEncoder(numeric="raw").fit(table(d=days))
    names = [str(n) for n in encoder.get_feature_names_out()]
    assert names == ["d days", "d year", "d month", "d weekday", "d season sine", "d season cosine"]
    got = encoder.transform(table(d=days))
    for row, day in zip(got, days, strict=True):
        angle = 2 * np.pi * (day.timetuple().tm_yday - 1) / 365.2425
        wanted = [(day - days[2]).days, day.year, day.month, day.weekday(), np.sin(angle), np.cos(angle)]
        np.testing.assert_allclose(row, wanted, atol=1e-12)
    clock = TableEncoder(numeric="raw").fit(table(d=[dt.datetime(2020, 1, 1, 13, 30), dt.datetime(2020, 1, 2)]))
    assert clock.get_feature_names_out()[-1] == "d hour"
    assert clock.transform(table(d=[dt.datetime(2020, 1, 1, 13, 30)]))[0, -1] == 13.5
    strings = TableEncoder(numeric="raw", kinds={"d": "date"}).fit(table(d=["2020-02-29", "2021-12-31", "1969-07-20"]))
    np.testing.assert_array_equal(strings.transform(table(d=["2020-02-29"]))[0], got[0])


def test_truth_values() -> None:
    encoder = TableEncoder(numeric="raw", kinds={"b": "boolean"}).fit(table(b=["Yes", "no", None, "Yes"]))
    np.testing.assert_array_equal(
        encoder.transform(table(b=["Yes", "no", None, "maybe"])), [[1, 0], [0, 0], [1, 1], [1, 1]]
    )
    with pytest.raises(ValueError, match="'b' is no boolean"):
        TableEncoder(kinds={"b": "boolean"}).fit(table(b=["a", "b", "c"]))


def test_words_are_those_of_scikit_learn() -> None:
    texts = ["Good food, good price", "bad food", "the price of the food", "nothing else", None]
    encoder = TableEncoder(kinds={"s": "text"}, min_frequency=0.0).fit(table(s=texts))
    words = [str(name).removeprefix("s: ") for name in encoder.get_feature_names_out()]
    reference = CountVectorizer(binary=True, token_pattern=r"\w+").fit(texts[:4])
    assert sorted(words) == sorted(reference.get_feature_names_out())
    order = [reference.vocabulary_[word] for word in words]
    got = encoder.transform(table(s=texts))
    np.testing.assert_array_equal(got[:4], reference.transform(texts[:4]).toarray()[:, order])
    assert not got[4].any()
    assert words[:3] == ["food", "price", "bad"]


def test_which_words_are_learned() -> None:
    texts = table(s=["Good food, good price", "bad food", "the price of the food", "nothing else"])

    def words(weight: Any = None, **settings: Any) -> list[str]:
        encoder = TableEncoder(kinds={"s": "text"}, **settings).fit(texts, sample_weight=weight)
        return [str(name) for name in encoder.get_feature_names_out()]

    assert words(min_frequency=0.5) == ["s: food", "s: price"]
    assert words(np.array([0, 0, 0, 1.0])) == ["s: else", "s: nothing"]
    assert words(text_features=2) == ["s: food", "s: price"]
    assert words(min_frequency=0.9) == []
    assert TableEncoder(kinds={"s": "text"}, min_frequency=0.9).fit(texts).transform(texts).shape == (4, 0)


def test_text_columns() -> None:
    encoder = TableEncoder(text_features=3).fit(pl.DataFrame(DATA))
    names = [str(n) for n in encoder.get_feature_names_out()]
    assert names[-3:] == ["note: food", "note: of", "note: the"]
    short = TableEncoder(kinds={"s": "text"}).fit(table(s=["red car", "blue car"]))
    assert list(short.get_feature_names_out()) == ["s: car", "s: blue", "s: red"]


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_a_weight_counts_repetitions(options: dict[str, Any]) -> None:
    frame = pl.DataFrame(DATA)
    weight = RNG.integers(0, 4, N)
    repeated = frame[RNG.permutation(np.repeat(np.arange(N), weight))]
    one = TableEncoder(min_frequency=0.02, **options).fit(frame, sample_weight=weight)
    other = TableEncoder(min_frequency=0.02, **options).fit(repeated)
    scaled = TableEncoder(min_frequency=0.02, **options).fit(frame, sample_weight=1e-100 * weight)
    assert list(one.get_feature_names_out()) == list(other.get_feature_names_out())
    np.testing.assert_allclose(dense(one.transform(frame)), dense(other.transform(frame)), atol=1e-11)
    np.testing.assert_allclose(dense(one.transform(frame)), dense(scaled.transform(frame)), atol=1e-11)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_what_was_learned_is_plain_json(options: dict[str, Any]) -> None:
    encoder = TableEncoder(**options).fit(pl.DataFrame(DATA))
    twin = pickle.loads(pickle.dumps(encoder))
    twin.columns_ = json.loads(json.dumps(encoder.columns_, allow_nan=False))
    frame = pl.DataFrame(DATA)
    np.testing.assert_array_equal(dense(twin.transform(frame)), dense(encoder.transform(frame)))


def test_sparse_is_dense() -> None:
    frame = pl.DataFrame(DATA)
    sparse = TableEncoder(sparse_output=True).fit_transform(frame)
    assert sp.issparse(sparse)
    assert sparse.format == "csr"
    np.testing.assert_array_equal(sparse.toarray(), TableEncoder().fit_transform(frame))
    assert not TableEncoder(sparse_output="auto").fit(frame).sparse_
    many = table(k=[f"k{i % 300}" for i in range(900)])
    wide = TableEncoder(sparse_output="auto", min_frequency=0.0, max_levels=1000).fit(many)
    assert wide.sparse_
    assert wide.transform(many).shape == (900, 300)


def test_names_are_unique_and_frames_come_back() -> None:
    frame = table(a=[1.0, None], **{"a missing": [1.0, 2.0]})
    encoder = TableEncoder().set_output(transform="polars").fit(frame)
    result = encoder.transform(frame)
    assert isinstance(result, pl.DataFrame)
    assert len(set(result.columns)) == 3
    assert result.columns == list(encoder.get_feature_names_out())


def test_single_precision_stays_single() -> None:
    X = RNG.normal(size=(20, 3)).astype(np.float32)
    assert TableEncoder().fit_transform(X).dtype == np.float32
    assert TableEncoder().fit_transform(pl.DataFrame(X)).dtype == np.float32
    assert TableEncoder(sparse_output=True).fit_transform(X).dtype == np.float32
    assert TableEncoder().fit_transform(X.astype(float)).dtype == np.float64


def test_arrays_of_objects() -> None:
    X = np.array([["a", 1.5, None], ["b", 2.5, 3], ["a", np.nan, 4]], dtype=object)
    encoder = TableEncoder(numeric="raw").fit(X)
    assert list(encoder.get_feature_names_out()) == ["x0=a", "x0=b", "x1", "x1 missing", "x2", "x2 missing"]
    np.testing.assert_array_equal(encoder.transform([["b", 7, None]]), [[0, 1, 7, 0, 3.5, 1]])
    codes = TableEncoder(kinds={1: "category"}).fit([[1.0, 3], [2.0, 4]])
    assert list(codes.get_feature_names_out()) == ["x0", "x1=3", "x1=4"]


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_extreme_magnitudes(scale: float) -> None:
    X = RNG.normal(size=(30, 2))
    np.testing.assert_allclose(TableEncoder().fit_transform(X * scale), TableEncoder().fit_transform(X), rtol=1e-9)


def test_inside_a_pipeline() -> None:
    y = np.asarray(DATA["age"]) / 10 + np.asarray(DATA["glad"])
    model = make_pipeline(TableEncoder(), Ridge(alpha=1e-6)).fit(pl.DataFrame(DATA), y)
    assert model.score(pl.DataFrame(DATA), y) > 0.99


BAD: list[tuple[dict[str, Any], str]] = [
    ({"numeric": "scaled"}, "numeric"),
    ({"categories": "hash"}, "categories"),
    ({"missing": "drop"}, "missing"),
    ({"min_frequency": 1.5}, "min_frequency"),
    ({"min_frequency": "a"}, "min_frequency"),
    ({"max_levels": 0}, "max_levels"),
    ({"text_features": 0}, "text_features"),
    ({"sparse_output": "yes"}, "sparse_output"),
    ({"kinds": ["numeric"]}, "kinds"),
    ({"kinds": {"age": "money"}}, "kinds"),
    ({"kinds": {"agee": "numeric"}}, "'agee'"),
    ({"kinds": {"note": "numeric"}}, "'note' holds 'bad food"),
    ({"kinds": {"note": "date"}}, "'note' holds"),
    ({"kinds": {"born": "numeric"}}, "'born' holds dates"),
]


@pytest.mark.parametrize(("options", "word"), BAD)
def test_bad_parameters_are_named(options: dict[str, Any], word: str) -> None:
    with pytest.raises((ValueError, TypeError), match=word):
        TableEncoder(**options).fit(pl.DataFrame(DATA))


def test_bad_tables_are_named() -> None:
    encoder = TableEncoder().fit(pl.DataFrame(DATA))
    with pytest.raises(ValueError, match=r"(?i)feature names"):
        encoder.transform(pl.DataFrame(DATA).rename({"age": "years"}))
    with pytest.raises(ValueError, match="'age' holds 'old'"):
        encoder.transform(pl.DataFrame({**DATA, "age": ["old"] * N}))
    with pytest.raises(ValueError, match="infinity in column 'age'"):
        encoder.transform(pl.DataFrame({**DATA, "age": [np.inf] * N}))
    with pytest.raises(ValueError, match="0 sample"):
        TableEncoder().fit(pl.DataFrame(DATA).clear())
