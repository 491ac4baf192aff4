"""Data frames of pandas, polars and Arrow: names are kept and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from tests.contract.data import D, assert_same, features, fit, make, output, targets, unbothered, weights
from tests.contract.discovery import Case, parametrize

NAMES = [f"column {j}" for j in range(D)]
FRAMES: dict[str, Callable[[np.ndarray, list[str]], Any]] = {
    "pandas": lambda X, names: pd.DataFrame(X, columns=names),
    "polars": lambda X, names: pl.DataFrame(X, schema=names),
    "pyarrow": lambda X, names: pa.table({name: X[:, j] for j, name in enumerate(names)}),
}
SERIES: dict[str, Callable[[np.ndarray], Any]] = {
    "pandas": pd.Series,
    "polars": pl.Series,
    "pyarrow": pa.array,
}
FRAME = pytest.mark.parametrize("kind", FRAMES)


@parametrize()
@FRAME
def test_a_frame_is_its_numbers(case: Case, kind: str) -> None:
    X, y = make(case)
    frame = FRAMES[kind](X, NAMES)
    weight = weights() if case.takes_weights else None
    series = SERIES[kind]
    with unbothered():
        model = fit(
            case.build(random_state=0),
            frame,
            None if y is None else series(y),
            None if weight is None else series(weight),
        )
        wanted = fit(case.build(random_state=0), X, y, weight)
    assert list(model.feature_names_in_) == NAMES
    assert model.n_features_in_ == D
    assert_same(output(model, frame), output(wanted, X), 1e-9)


@parametrize(one_each=True)
@FRAME
def test_other_names_are_refused(case: Case, kind: str) -> None:
    X, y = make(case)
    make_frame = FRAMES[kind]
    with unbothered():
        model = fit(case.build(random_state=0), make_frame(X, NAMES), y)
    apply = model.predict if case.predicts else model.transform
    for names in (NAMES[::-1], ["other", *NAMES[1:]]):
        with pytest.raises(ValueError, match=r"(?i)feature names"):
            apply(make_frame(X, names))
    with pytest.raises(ValueError, match=r"(?i)feature"):
        apply(make_frame(X[:, 1:], NAMES[1:]))


@parametrize(one_each=True)
def test_no_names_without_a_frame(case: Case) -> None:
    X, y = make(case)
    with unbothered():
        model = fit(case.build(random_state=0), X, y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == D
    with pytest.raises(ValueError, match="features"):
        output(model, X[:, 1:])


@parametrize(one_each=True)
def test_columns_of_many_numeric_types(case: Case) -> None:
    """Whole, logical, single-precision and nullable columns side by side."""
    X = np.abs(np.round(4 * features(case))) % 2 + (1 if case.positive_features else 0)
    y = targets(case, X)
    columns = [X[:, 0].astype(np.int64), X[:, 1].astype(bool), X[:, 2].astype(np.float32)]
    numbers = np.column_stack([*columns, X[:, 3], X[:, 4]]).astype(float)
    pandas = pd.DataFrame(
        dict(zip(NAMES, [*columns, X[:, 3], pd.array(X[:, 4].astype(int), dtype="Int64")], strict=True))
    )
    polars = pl.DataFrame(dict(zip(NAMES, [*columns, X[:, 3], X[:, 4].astype(np.int8)], strict=True)))
    with unbothered():
        wanted = output(fit(case.build(random_state=0), numbers, y), numbers)
        for frame in (pandas, polars):
            assert_same(output(fit(case.build(random_state=0), frame, y), frame), wanted, 1e-6)


@parametrize(one_each=True)
@FRAME
@pytest.mark.parametrize("bad", ["text", "missing", "infinite"])
def test_a_bad_column_is_named(case: Case, kind: str, bad: str) -> None:
    X, y = make(case)
    good = {name: X[:, j].copy() for j, name in enumerate(NAMES)}
    if bad == "text":
        columns: dict[str, Any] = {**good, NAMES[2]: ["red"] * len(X)}
    else:
        columns = good
        columns[NAMES[2]][7] = np.nan if bad == "missing" else np.inf
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind](columns)
    if (bad == "missing" and case.allows_missing) or (bad == "text" and case.takes_text):
        fit(case.build(), frame, y)  # what a model can use is not refused
        return
    with pytest.raises((ValueError, TypeError), match=NAMES[2]):
        fit(case.build(), frame, y)


@parametrize(lambda case: case.transforms)
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_set_output(case: Case, kind: str) -> None:
    X, y = make(case)
    frame = FRAMES[kind](X, NAMES)
    plain = output(fit(case.build(random_state=0), frame, y), frame)
    model = fit(case.build(random_state=0).set_output(transform=kind), frame, y)
    if sp.issparse(fit(case.build(random_state=0), frame, y).transform(frame)):
        with pytest.raises(ValueError, match="sparse"):  # a frame cannot hold a sparse result, and says so
            model.transform(frame)
        return
    result = model.transform(frame)
    assert isinstance(result, pd.DataFrame if kind == "pandas" else pl.DataFrame)
    model = fit(case.build(random_state=0), frame, y)
    assert list(result.columns) == list(model.get_feature_names_out())
    assert len(set(result.columns)) == result.shape[1] == plain.shape[1]
    assert_same(np.asarray(result, dtype=plain.dtype), plain, 1e-12)
