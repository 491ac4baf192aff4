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
from tests.contract.data import (
    FEW,
    D,
    assert_same,
    features,
    fit,
    make,
    output,
    reference,
    targets,
    transformed,
    unbothered,
)
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


@parametrize(kind=list(FRAMES))
def test_a_frame_is_its_numbers(case: Case, kind: str) -> None:
    wanted = reference(case, weighted=True)
    frame, series = FRAMES[kind](wanted.X, NAMES), SERIES[kind]
    target, weight = (None if given is None else series(given) for given in (wanted.y, wanted.weight))
    with unbothered():
        model = fit(case.build(random_state=0), frame, target, weight)
    assert list(model.feature_names_in_) == NAMES
    assert model.n_features_in_ == D
    assert_same(output(model, frame), wanted.output, 1e-9)


@parametrize(one_each=True, kind=list(FRAMES))
def test_other_names_are_refused(case: Case, kind: str) -> None:
    X, y = make(case)
    make_frame = FRAMES[kind]
    with unbothered():
        model = fit(case.build(random_state=0, **FEW), make_frame(X, NAMES), y)
    for names in (NAMES[::-1], ["other", *NAMES[1:]]):
        with pytest.raises(ValueError, match=r"(?i)feature names"):
            output(model, make_frame(X, names))
    with pytest.raises(ValueError, match=r"(?i)feature"):
        output(model, make_frame(X[:, 1:], NAMES[1:]))


@parametrize(one_each=True)
def test_no_names_without_a_frame(case: Case) -> None:
    one = reference(case)
    assert not hasattr(one.model, "feature_names_in_")
    assert one.model.n_features_in_ == D
    with pytest.raises(ValueError, match="features"):
        output(one.model, one.X[:, 1:])


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


@parametrize(one_each=True, bad=["text", "missing", "infinite"], kind=list(FRAMES))
def test_a_bad_column_is_named(case: Case, bad: str, kind: str) -> None:
    X, y = make(case)
    good = {name: X[:, j].copy() for j, name in enumerate(NAMES)}
    if bad == "text":
        columns: dict[str, Any] = {**good, NAMES[2]: ["red"] * len(X)}
    else:
        columns = good
        columns[NAMES[2]][7] = np.nan if bad == "missing" else np.inf
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind](columns)
    if (bad == "missing" and case.allows_missing) or (bad == "text" and case.takes_text):
        with unbothered():
            fit(case.build(**FEW), frame, y)  # what a model can use is not refused
        return
    with pytest.raises((ValueError, TypeError), match=NAMES[2]):
        fit(case.build(), frame, y)


@parametrize(lambda case: case.transforms, kind=["pandas", "polars"])
def test_set_output(case: Case, kind: str) -> None:
    X, y = make(case)
    frame = FRAMES[kind](X, NAMES)
    without = fit(case.build(random_state=0), frame, y)
    plain = transformed(without, frame)
    model = fit(case.build(random_state=0).set_output(transform=kind), frame, y)
    if sp.issparse(without.transform(frame)):
        with pytest.raises(ValueError, match="sparse"):  # a frame cannot hold a sparse result, and says so
            model.transform(frame)
        return
    result = model.transform(frame)
    assert isinstance(result, pd.DataFrame if kind == "pandas" else pl.DataFrame)
    assert list(result.columns) == list(without.get_feature_names_out())
    assert len(set(result.columns)) == result.shape[1] == plain.shape[1]
    if plain.shape[1]:  # old versions of polars do not turn a frame without columns into an array
        assert_same(np.asarray(result, dtype=plain.dtype), plain, 1e-12)
