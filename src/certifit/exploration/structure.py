"""Whether rows fall into groups, and what tells these apart.

1. Rows are compared by `Dissimilarity`: each column counts the same on average, numbers far out are drawn in to three times the
   interquartile range, what is missing is left out.
2. `ClassicalMDS` of a sample turns dissimilarities into points; the other rows are placed among them.
3. `KMeans` groups the points. Every clusterer finds as many groups as it is asked for, so the number is chosen among those
   whose groups agree well when samples of the rows are grouped anew, and better, or farther apart, than those of tables like
   this one but without groups (`stability`). These are drawn as tables and mapped like this one: a map bends even a plain
   cloud, and what bends is cut apart more easily than a cloud of the same covariance.
   Groups that are apart stay so when one of them is cut in two. So a number whose silhouette is below that of a smaller one is
   compared with tables whose groups are those fewer too, each a cloud: it survives only where the cut is steady, or parts more,
   than a cut of clouds.
4. The same is asked of tables whose columns are shuffled, each by itself: groups that are as steady and nearly as far apart
   there are the values of single columns, and no structure between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, eigsh

from certifit._types import Array
from certifit.evaluation.risk.clouds import Cloud
from certifit.evaluation.risk.stability import Stability, stability
from certifit.models.cluster.choice import ClusterCount, choose_k
from certifit.models.cluster.kmeans import KMeans
from certifit.models.cluster.rows import rows_of
from certifit.models.cluster.starts import start_centers
from certifit.models.embedding.classical_mds import ClassicalMDS
from certifit.models.hierarchy.cuts import by_size
from certifit.representation.table.dissimilarity import Dissimilarity
from certifit.representation.table.frames import Columns

__all__ = ["STEADY", "Map", "Structure", "grouped", "is_steady", "mapped_rows"]

LANDMARKS = 700  # rows whose dissimilarities are all computed
AXES = 10  # most dimensions that groups are looked for in
FAINT = 0.01  # share of the variance below which a dimension says nothing
MOST_GROUPS = 8
JUDGED = 500  # rows whose groups are found anew in every sample
RESAMPLES = 10
LEVEL = 0.99  # of their intervals: several numbers of groups are tried
STEADY = 0.75  # agreement from which two groupings are the same one, but for a few rows
SHUFFLES = 8
PLAINLY = 0.95  # of the variance that groups of shuffled columns leave within them: less is plainly less


@dataclass(frozen=True)
class Map:
    """Rows as points."""

    rows: Array
    """Numbers of the rows, in the table."""
    points: Array
    """Their coordinates, the longest axis first."""
    share: Array
    """What share of the variance each axis has."""
    non_euclidean: float
    near: Array
    """Distance of each row to the fifth nearest landmark."""


@dataclass(frozen=True)
class Structure:
    """Groups of the rows, and whether they are more than what every clusterer finds."""

    verdict: str
    """"groups" that survive resampling; "columns": groups that do but are as steady and nearly as far apart in shuffled columns;
    "none": no structure that survives."""
    k: int
    """How many; 1 where there is no structure."""
    labels: Array
    """The group of each row of the map; 0 is the largest."""
    count: ClusterCount | None
    stabilities: Mapping[int, Stability]
    shuffled: Stability | None
    """The same, beside tables with shuffled columns."""
    steady: tuple[int, ...] = ()
    """The numbers whose groups survive."""
    fewer: Mapping[int, tuple[int, Stability]] = field(default_factory=dict)
    """For numbers that fewer groups explain as well: how many, and the stability beside tables that have only these."""


def mapped_rows(features: pl.DataFrame, kinds: Mapping[str, str], rows: Array, seed: int) -> Map:
    """The rows of a table as points."""
    drawn_in = _drawn_in(features[rows], kinds)
    empty = np.all([drawn_in.get_column(name).is_null().to_numpy() for name in drawn_in.columns], axis=0)
    rows, drawn_in = rows[~empty], drawn_in.filter(~pl.Series(empty))
    rng = np.random.default_rng(seed)
    few = np.sort(rng.choice(rows.shape[0], min(LANDMARKS, rows.shape[0]), replace=False))
    compare = _comparison(drawn_in[few], kinds)
    D = _among(compare, drawn_in[few])
    model = ClassicalMDS(min(AXES, few.shape[0]), metric="precomputed", n_jobs=1).fit(D)
    values = np.maximum(model.eigenvalues_, 0.0)
    total = max(float(np.trace(-0.5 * _centered(D * D))), 1e-300)
    kept = np.arange(values.shape[0]) < max(2, int((values > FAINT * total).sum()))
    points, near = np.empty((rows.shape[0], values.shape[0])), np.empty(rows.shape[0])
    own = np.isin(np.arange(rows.shape[0]), few)

    def place(block: slice, to_few: Array) -> None:
        points[block], near[block] = model.transform(to_few), _fifth_nearest(to_few, own[block])

    compare.by_blocks(drawn_in, place)
    return Map(rows, points[:, kept], values[kept] / total, model.non_euclidean_, near)


def _comparison(frame: pl.DataFrame, kinds: Mapping[str, str]) -> Dissimilarity:
    """How far rows are from these."""
    return Dissimilarity(scale="mean", root=True, kinds=dict(kinds)).fit(frame)


def _among(compare: Dissimilarity, frame: pl.DataFrame) -> Array:
    """Dissimilarities of the rows that others are compared with, symmetric to the last bit."""
    D = compare.transform(frame)
    return np.asarray(0.5 * (D + D.T))


def _fifth_nearest(D: Array, own: Array) -> Array:
    """The fifth smallest of each row; of rows that are themselves among those compared with, and at zero, one further."""
    last = D.shape[1] - 1
    nearest = np.partition(D, min(5, last), axis=1)[:, : min(5, last) + 1]
    return np.where(own, nearest.max(axis=1), nearest[:, : min(4, last) + 1].max(axis=1))


def _centered(square: Array) -> Array:
    means = square.mean(axis=0)
    return np.asarray(square - means - means[:, None] + means.mean())


def _drawn_in(frame: pl.DataFrame, kinds: Mapping[str, str]) -> pl.DataFrame:
    """Numbers within three interquartile ranges of the quartiles: one row far out is an outlier, and no axis of the map."""
    drawn = []
    for values in frame.get_columns():
        if kinds[values.name] == "numeric":
            low, high = values.quantile(0.25), values.quantile(0.75)
            if low is not None and high is not None and np.isfinite(high - low) and high > low:
                values = values.clip(low - 3 * (high - low), high + 3 * (high - low))
        drawn.append(values)
    return pl.DataFrame(drawn)


def grouped(found: Map, features: pl.DataFrame, kinds: Mapping[str, str], seed: int) -> Structure:
    """Groups of the rows of a map, and whether they survive resampling."""
    n = found.points.shape[0]
    none = Structure("none", 1, np.zeros(n, dtype=np.int64), None, {}, None)
    if np.unique(found.points.round(12), axis=0).shape[0] < 4:
        return none
    rng = np.random.default_rng(seed)
    judged = np.sort(rng.choice(n, min(JUDGED, n), replace=False))
    points = found.points[judged]
    distinct = np.unique(points.round(12), axis=0).shape[0]
    most = min(MOST_GROUPS, distinct - 1, n // 5)
    if most < 2:
        return none
    count = choose_k(points, max_k=most, n_references=5, n_init=2, random_state=seed, n_jobs=1)
    judged_rows = features[found.rows[judged]]

    def beside(k: int, tables: list[Array]) -> Stability:
        return stability(_Means(k), points, n_resamples=RESAMPLES, reference=tables, level=LEVEL, random_state=seed)

    def clouds(groups: Array) -> list[Array]:
        return _clouds(judged_rows, kinds, groups, points.shape[1], rng)

    plain = clouds(np.zeros(points.shape[0], dtype=np.int64))
    stabilities = {k: beside(k, plain) for k in range(2, most + 1)}
    silhouettes = np.nan_to_num(count.silhouettes, nan=-1.0)
    rivals = {k: m for k, value in stabilities.items() if is_steady(value) and (m := _better_fewer(silhouettes, k))}
    tables = {m: clouds(_Means(m).fit_predict(points)) for m in sorted(set(rivals.values()))}
    fewer = {k: (m, beside(k, tables[m])) for k, m in rivals.items()}
    steady = [k for k, value in stabilities.items() if is_steady(value) and (k not in fewer or is_steady(fewer[k][1]))]
    if not steady:
        return Structure("none", 1, none.labels, count, stabilities, None, (), fewer)
    k = max(steady, key=lambda k: float(silhouettes[k - 1]))
    labels = by_size(KMeans(k, n_init=3, random_state=0, n_jobs=1).fit(found.points).labels_)
    shuffled = beside(k, _shuffled(judged_rows, kinds, points.shape[1], rng))
    verdict = "groups" if len(kinds) > 1 and _is_between(shuffled) else "columns"
    return Structure(verdict, k, labels, count, stabilities, shuffled, tuple(steady), fewer)


def _better_fewer(silhouettes: Array, k: int) -> int:
    """Of the smaller numbers of groups that have a silhouette above that of k the one with the best; 0 where there is none."""
    m = 2 + int(np.argmax(silhouettes[1 : k - 1])) if k > 2 else k
    return m if silhouettes[m - 1] > silhouettes[k - 1] else 0


def is_steady(found: Stability) -> bool:
    """Whether groups agree better, or are farther apart, than those of a single table without groups may, and are the same groups
    in every sample.
    """
    return found.survives and found.low >= STEADY


def _is_between(shuffled: Stability) -> bool:
    """Whether groups are steadier, or plainly farther apart, than those of a single table of shuffled columns may be."""
    left, usual = 1.0 - shuffled.separation, 1.0 - shuffled.separation_high
    return shuffled.low > shuffled.reference_high or left < PLAINLY * usual


@dataclass(frozen=True)
class _Means:
    """The labels of `KMeans`, without what it proves of them: rows are grouped hundreds of times."""

    k: int

    def __sklearn_clone__(self) -> _Means:
        return self

    def fit_predict(self, X: Array) -> Array:
        """The cheapest of three runs."""
        weight, rng = np.ones(X.shape[0]), np.random.RandomState(0)
        rows = rows_of(X, weight, 1)
        starts = (start_centers("k-means++", rows, X, weight, self.k, rng) for _ in range(3))
        return min((rows.run(centers, 300, 0.0) for centers in starts), key=lambda run: run.inertia).labels


def _leading_axes(D: Array, k: int) -> Array:
    """The points of `ClassicalMDS`, without what it proves of them."""
    B = -0.5 * _centered(D * D)
    n = B.shape[0]
    start: Any = np.random.default_rng(0).standard_normal(n)
    try:
        values, vectors = eigsh(B, k=min(k, n - 2), which="LA", v0=start)
    except ArpackError:  # many equal eigenvalues, as few distinct rows have
        values, vectors = eigh(B, subset_by_index=(max(0, n - k), n - 1))
    return np.asarray(vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0)))


def _mapped(frame: pl.DataFrame, kinds: Mapping[str, str], axes: int) -> Array:
    """Rows of a small table as points."""
    drawn_in = _drawn_in(frame, kinds)
    return _leading_axes(_among(_comparison(drawn_in, kinds), drawn_in), axes)


def _clouds(
    frame: pl.DataFrame, kinds: Mapping[str, str], groups: Array, axes: int, rng: np.random.Generator
) -> list[Array]:
    """Maps of tables like this one, whose groups are these and clouds: in each, numbers and dates of one cloud, other columns
    dealt anew.
    """
    table = Columns(Dissimilarity(), frame, reset=True)
    numbers = [j for j, name in enumerate(table.names) if kinds[name] in ("numeric", "date")]
    values = [table.numbers(j) if kinds[table.names[j]] == "numeric" else table.moments(j) for j in numbers]
    members = [np.flatnonzero(groups == group) for group in range(int(groups.max()) + 1)]
    clouds = [Cloud(np.column_stack(values)[rows]) for rows in members] if numbers else []
    found = []
    for _ in range(RESAMPLES):
        columns = [column[_dealt(members, rng)] for column in frame.get_columns()]
        drawn = np.empty((frame.height, len(numbers)))
        for rows, cloud in zip(members, clouds, strict=False):
            drawn[rows] = cloud.draw(rng)
        for j, column in zip(numbers, drawn.T, strict=True):
            series = pl.Series(table.names[j], column, nan_to_null=True)
            columns[j] = series if kinds[table.names[j]] == "numeric" else series.cast(pl.Int64).cast(pl.Datetime("us"))
        found.append(_mapped(pl.DataFrame(columns), kinds, axes))
    return found


def _dealt(members: list[Array], rng: np.random.Generator) -> Array:
    """Rows in another order, each in the place of one of its own group."""
    order = np.empty(sum(rows.size for rows in members), dtype=np.int64)
    for rows in members:
        order[rows] = rng.permutation(rows)
    return order


def _shuffled(frame: pl.DataFrame, kinds: Mapping[str, str], axes: int, rng: np.random.Generator) -> list[Array]:
    """Maps of tables whose columns are shuffled, each by itself."""
    tables = (
        pl.DataFrame([values[rng.permutation(frame.height)] for values in frame.get_columns()]) for _ in range(SHUFFLES)
    )
    return [_mapped(table, kinds, axes) for table in tables]
