"""Dissimilarities of mixed tables against Gower's formula, pair by pair, and against the properties that it promises."""

from __future__ import annotations

from datetime import date
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from certifit import ClassicalMDS, Dissimilarity, KMedoids
from certifit.representation.design.blocks import row_blocks

RNG = np.random.default_rng(3)
TEXTS = ["the cat sat on a mat", "a dog sat on the mat", "birds fly over the quiet sea", "", None]


def table(n: int = 24, *, holes: bool = True) -> pl.DataFrame:
    size = RNG.normal(size=n).tolist()
    kind: list[Any] = RNG.choice(["a", "b", "c"], size=n).tolist()
    if holes:
        size[3] = size[7] = None
        kind[5] = kind[7] = None
    return pl.DataFrame(
        {
            "size": size,
            "kind": kind,
            "born": [date(1990 + int(i), 3, 1) for i in RNG.integers(0, 20, size=n)],
            "yes": RNG.random(n) < 0.4,
            "note": [TEXTS[int(i)] for i in RNG.integers(0, 4 if not holes else 5, size=n)],
        },
        schema_overrides={"size": pl.Float64, "kind": pl.String, "note": pl.String},
    )


def by_hand(frame: pl.DataFrame, weight: dict[str, float], *, level: bool = False) -> np.ndarray:
    """Gower's formula for each pair, in plain Python."""
    rows = frame.to_dicts()
    spread = {
        "size": max(r["size"] for r in rows if r["size"] is not None)
        - min(r["size"] for r in rows if r["size"] is not None),
        "born": (max(r["born"] for r in rows) - min(r["born"] for r in rows)).days,
        "yes": 1.0,
    }
    out = np.zeros((len(rows), len(rows)))
    for i, k in product(range(len(rows)), repeat=2):
        top = bottom = 0.0
        for name in frame.columns:
            x, z = rows[i][name], rows[k][name]
            if x is None or z is None:
                if not level:
                    continue
                d = float((x is None) != (z is None))
            elif name == "kind":
                d = float(x != z)
            elif name == "note":
                a, b = set(x.split()), set(z.split())
                d = 1 - len(a & b) / len(a | b) if a | b else 0.0
            elif name == "born":
                d = abs((x - z).days) / spread["born"]
            else:
                d = abs(float(x) - float(z)) / spread[name]
            top, bottom = top + weight.get(name, 1.0) * d, bottom + weight.get(name, 1.0)
        out[i, k] = top / bottom
    return out


@pytest.mark.parametrize("missing", ["omit", "level"])
@pytest.mark.parametrize("weight", [{}, {"size": 3.0, "note": 0.5, "yes": 0.0}])
def test_every_pair_is_gowers_formula(missing: str, weight: dict[str, float]) -> None:
    frame = table()
    model = Dissimilarity(weights=weight or None, missing=missing, kinds={"note": "text"}).fit(frame)
    expected = by_hand(frame, weight, level=missing == "level")
    np.testing.assert_allclose(model.transform(frame), expected, atol=1e-12)
    np.testing.assert_allclose(model.transform(frame[4:9]), expected[4:9], atol=1e-12)


def test_frames_of_either_make_and_arrays_of_objects_agree() -> None:
    frame = table().select("size", "kind", "yes")
    one = Dissimilarity().fit_transform(frame)
    np.testing.assert_array_equal(one, Dissimilarity().fit_transform(frame.to_pandas()))
    objects = np.array([[r["size"], r["kind"], float(r["yes"])] for r in frame.to_dicts()], dtype=object)
    np.testing.assert_allclose(one, Dissimilarity().fit_transform(objects), atol=1e-15)


def test_a_scale_of_means_lets_every_column_count_the_same() -> None:
    frame = table(holes=False).select("size", "kind", "yes", "born")
    off = ~np.eye(frame.height, dtype=bool)
    each = [Dissimilarity(scale="mean").fit_transform(frame.select(name))[off].mean() for name in frame.columns]
    np.testing.assert_allclose(each, 1.0)
    whole = Dissimilarity(scale="mean").fit_transform(frame)
    assert whole[off].mean() == pytest.approx(1.0)
    alone = np.mean([Dissimilarity(scale="mean").fit_transform(frame.select(name)) for name in frame.columns], axis=0)
    np.testing.assert_allclose(whole, alone)


def test_the_root_of_complete_rows_is_a_distance_of_points() -> None:
    D = Dissimilarity(root=True).fit_transform(table(40, holes=False).select("size", "kind", "yes", "born"))
    assert ClassicalMDS(5, metric="precomputed").fit(D).non_euclidean_ < 1e-20


def test_new_rows_new_levels_and_values_beyond_the_range() -> None:
    model = Dissimilarity().fit(pl.DataFrame({"x": [0.0, 10.0], "k": ["a", "b"]}))
    np.testing.assert_allclose(model.transform(pl.DataFrame({"x": [20.0], "k": ["new"]})), [[1.5, 1.0]])


def test_rows_with_nothing_in_common_are_as_far_as_rows_are_on_average() -> None:
    frame = pl.DataFrame({"x": [1.0, None, 2.0, 4.0], "k": [None, "a", "b", "b"]})
    found = Dissimilarity().fit_transform(frame)
    number = np.mean([1 / 3, 2 / 3, 1.0])  # |1 − 2|, |2 − 4| and |1 − 4|, over the range
    category = np.mean([1.0, 1.0, 0.0])
    assert found[0, 1] == found[1, 0] == pytest.approx((number + category) / 2)
    assert Dissimilarity(missing="level").fit_transform(frame)[0, 1] == 1.0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"weights": {"z": 1.0}}, "weights names 'z', which is not a column of X"),
        ({"weights": {"x": -1.0}}, r"weights\['x'\] must be a number in \[0"),
        ({"weights": {"x": 0.0, "k": 0}}, "weights must be positive for one column at least"),
        ({"kinds": {"z": "numeric"}}, "kinds names 'z', which is not a column of X"),
        ({"kinds": {"x": "colour"}}, "kinds must be one of"),
    ],
)
def test_wrong_columns_and_weights_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Dissimilarity(**wrong).fit(pl.DataFrame({"x": [1.0, 2.0], "k": ["a", "b"]}))


def test_threads_change_nothing_and_a_pipeline_clusters_and_predicts() -> None:
    frame = table(60, holes=False)
    frame = frame.with_columns(pl.Series("size", np.r_[RNG.normal(size=30), RNG.normal(size=30) + 40]))
    frame = frame.with_columns(pl.Series("kind", ["a"] * 30 + ["b"] * 30))
    one, two = (Dissimilarity(n_jobs=jobs).fit_transform(frame) for jobs in (1, 3))
    np.testing.assert_array_equal(one, two)
    apart = frame.select("size", "kind", "yes")  # two of three columns tell the groups apart, whatever is drawn
    pipeline = make_pipeline(Dissimilarity(), KMedoids(2, metric="precomputed", random_state=0)).fit(apart)
    found = pipeline.predict(apart)
    assert len(set(found[:30])) == len(set(found[30:])) == 1
    assert found[0] != found[-1]


@pytest.mark.parametrize("missing", ["omit", "level"])
def test_blocks_are_the_rows_of_the_matrix(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However rows are cut, and whichever values repeat in a block, each pair is as far as in a table of two."""
    frame = table(90, holes=True)
    model = Dissimilarity(missing=missing, root=True).fit(frame[:40])
    whole = model.transform(frame)
    alone = np.vstack([model.transform(frame[i : i + 1]) for i in range(frame.height)])
    np.testing.assert_allclose(whole, alone, rtol=1e-13, atol=1e-13)
    least = partial(row_blocks, entries=1)  # 64 rows
    monkeypatch.setattr("certifit.representation.table.dissimilarity.row_blocks", least)
    found = np.full_like(whole, np.nan)
    seen = []

    def keep(block: slice, part: Any) -> None:
        seen.append(block.start)
        found[block] = part

    model.by_blocks(frame, keep)
    np.testing.assert_allclose(found, whole, rtol=1e-13, atol=1e-13)
    assert sorted(seen) == [0, 64]
    with pytest.raises(NotFittedError):
        Dissimilarity().by_blocks(frame, print)
