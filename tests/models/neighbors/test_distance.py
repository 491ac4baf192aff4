"""The search for neighbors against all distances, sorted; under every metric, by every algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.metrics import nan_euclidean_distances
from sklearn.metrics.pairwise import haversine_distances

from certifit import KNeighborsRegressor, NearestNeighbors, kernels
from certifit._native import neighbors as native

COUNTED = (
    "braycurtis",
    "canberra",
    "hamming",
    "dice",
    "jaccard",
    "rogerstanimoto",
    "russellrao",
    "sokalsneath",
    "yule",
)
METRICS: dict[str, tuple[dict[str, Any], tuple[str, dict[str, float]]]] = {
    "euclidean": ({"metric": "euclidean"}, ("euclidean", {})),
    "manhattan": ({"metric": "manhattan"}, ("cityblock", {})),
    "chebyshev": ({"metric": "chebyshev"}, ("chebyshev", {})),
    "minkowski 3": ({"p": 3}, ("minkowski", {"p": 3.0})),
    "minkowski 1.5": ({"p": 1.5}, ("minkowski", {"p": 1.5})),
    "minkowski inf": ({"p": np.inf}, ("chebyshev", {})),
    "cosine": ({"metric": "cosine"}, ("cosine", {})),
    "correlation": ({"metric": "correlation"}, ("correlation", {})),
    "sqeuclidean": ({"metric": "sqeuclidean"}, ("sqeuclidean", {})),
    **{name: ({"metric": name}, (name, {})) for name in COUNTED},
}
WITHOUT_TREE = ("cosine", "correlation", *COUNTED)
# Few columns and many; rounded, so that many distances are equal, and not.
SHAPES = [(500, 3, 1), (700, 2, 8), (300, 40, 8), (90, 7, 1), (40, 1, 0)]


def data(n: int, d: int, digits: int, queries: int = 37) -> tuple[Any, Any]:
    rng = np.random.default_rng(n + d)
    return (rng.normal(size=(n, d)) + 0.3).round(digits), (rng.normal(size=(queries, d)) + 0.3).round(digits)


def nearest(distances: Any, k: int) -> tuple[Any, Any]:
    """By sorting all of them; of equal distances the first rows."""
    row = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, row, axis=1), row


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree", "sparse"])
def test_neighbors_are_those_of_all_distances_sorted(name: str, algorithm: str) -> None:
    if name in WITHOUT_TREE and algorithm == "kd_tree":
        with pytest.raises(ValueError, match=f"kd_tree.*{name}"):
            NearestNeighbors(metric=name, algorithm="kd_tree").fit(data(*SHAPES[0])[0])
        return
    if name in WITHOUT_TREE[1:] and algorithm == "sparse":
        with pytest.raises(TypeError, match="dense data is required"):
            NearestNeighbors(metric=name).fit(sp.csr_array(data(*SHAPES[0])[0]))
        return
    given, (metric, options) = METRICS[name]
    for n, d, digits in SHAPES:
        X, Q = data(n, d, digits)
        if name in COUNTED:
            X, Q = (np.abs(part).round() for part in (X, Q))  # counts, and many zeros
        pair = (Q != 0, X != 0) if name in COUNTED[3:] else (Q, X)
        undefined = 0.0 if name in COUNTED else 1.0  # two rows without anything in common; the cosine of a row of zeros
        with np.errstate(invalid="ignore"):
            full = np.nan_to_num(cdist(*pair, metric, **options), nan=undefined)
        for k in (1, 5, 33, n) if n < 100 else (1, 10, 80):
            wanted, _ = nearest(full, k)
            rows = sp.csr_array(X) if algorithm == "sparse" else X
            model = NearestNeighbors(
                n_neighbors=k, algorithm="auto" if algorithm == "sparse" else algorithm, **given
            ).fit(rows)
            distance, row = model.kneighbors(Q)
            np.testing.assert_allclose(distance, wanted, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(np.take_along_axis(full, row, axis=1), wanted, rtol=1e-9, atol=1e-9)
            assert all(np.unique(line).size == k for line in row)


ROOT = np.array([[1.0, 0.3, 0.0], [0.0, 2.0, -0.7], [0.5, 0.0, 0.4]])
FURTHER: dict[str, tuple[dict[str, Any], tuple[str, dict[str, Any]]]] = {
    "weights": ({"p": 3, "metric_params": {"w": [2.0, 0.0, 0.5]}}, ("minkowski", {"p": 3, "w": [2.0, 0.0, 0.5]})),
    "weights, p = ∞": (
        {"p": np.inf, "metric_params": {"w": [2.0, 0.0, 0.5]}},
        ("minkowski", {"p": np.inf, "w": [1.0, 0.0, 1.0]}),
    ),
    "variances": (
        {"metric": "seuclidean", "metric_params": {"V": [4.0, 1.0, 0.1]}},
        ("seuclidean", {"V": [4.0, 1.0, 0.1]}),
    ),
    "inverse": (
        {"metric": "mahalanobis", "metric_params": {"VI": ROOT @ ROOT.T}},
        ("mahalanobis", {"VI": ROOT @ ROOT.T}),
    ),
    "covariance": (
        {"metric": "mahalanobis", "metric_params": {"V": ROOT @ ROOT.T}},
        ("mahalanobis", {"VI": np.linalg.inv(ROOT @ ROOT.T)}),
    ),
}


@pytest.mark.parametrize("name", FURTHER)
@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree", "sparse"])
def test_metrics_with_arguments(name: str, algorithm: str) -> None:
    given, (metric, options) = FURTHER[name]
    X, Q = data(900, 3, 8)
    full = cdist(Q, X, metric, **options)
    if algorithm == "sparse" and metric == "mahalanobis":
        return
    rows = sp.csr_array(X) if algorithm == "sparse" else X
    model = NearestNeighbors(algorithm="auto" if algorithm == "sparse" else algorithm, **given).fit(rows)
    distance, row = model.kneighbors(Q)
    wanted = nearest(full, 5)
    np.testing.assert_array_equal(row, wanted[1])
    np.testing.assert_allclose(distance, wanted[0], rtol=1e-9)
    near = model.radius_neighbors(Q, radius=0.5, return_distance=False)
    assert [set(line) for line in near] == [set(np.flatnonzero(line <= 0.5)) for line in full]


@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree"])
def test_places_on_the_globe(algorithm: str) -> None:
    rng = np.random.default_rng(0)
    X, Q = (np.column_stack([rng.uniform(-1.5, 1.5, n), rng.uniform(-3.1, 3.1, n)]) for n in (1200, 20))
    Q = np.vstack([Q, X[:3] + 1e-7, -X[:1]])
    full = haversine_distances(Q, X)
    distance, row = NearestNeighbors(metric="haversine", algorithm=algorithm).fit(X).kneighbors(Q)
    np.testing.assert_array_equal(row, nearest(full, 5)[1])
    np.testing.assert_allclose(distance, nearest(full, 5)[0], rtol=1e-7)
    near = NearestNeighbors(metric="haversine", algorithm=algorithm).fit(X).radius_neighbors(Q, 0.2)[1]
    assert [set(line) for line in near] == [set(np.flatnonzero(line <= 0.2)) for line in full]
    with pytest.raises(ValueError, match="2 dimensions"):
        NearestNeighbors(metric="haversine").fit(np.zeros((9, 3))).kneighbors(np.zeros((2, 3)))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_distances_given_as_a_sparse_matrix(form: str) -> None:
    X, Q = data(60, 3, 8)
    known = NearestNeighbors(n_neighbors=12).fit(X)
    given, asked = (known.kneighbors_graph(rows, mode="distance").asformat(form) for rows in (X, Q))
    model = NearestNeighbors(metric="precomputed").fit(given)
    for one, other in zip(model.kneighbors(asked), known.kneighbors(Q, 5), strict=True):
        np.testing.assert_array_equal(one, other)
    near, wanted = model.radius_neighbors(asked, 0.4)[1], known.radius_neighbors(Q, 0.4)[1]
    assert [list(line) for line in near] == [list(line) for line in wanted]
    # Asked about itself a row is left out, wherever its zero is stored; rows given densely are complete.
    for one, other in zip(model.kneighbors(), known.kneighbors(n_neighbors=5), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(model.kneighbors(cdist(Q, X))[1], known.kneighbors(Q, 5)[1])
    with pytest.raises(ValueError, match=r"13 neighbors per samples are required.* only 12"):
        model.kneighbors(asked, 13)
    with pytest.raises(TypeError, match="explicit zeros"):
        model.kneighbors(asked.todok())
    with pytest.raises(TypeError, match="explicit zeros"):
        NearestNeighbors(metric="precomputed").fit(given.asformat("bsr"))
    with pytest.raises(ValueError, match="negative"):
        model.kneighbors(-sp.csr_array(asked))


def test_weights_leave_rows_out_of_sparse_distances() -> None:
    X, Q = data(40, 3, 8)
    weight = np.r_[np.zeros(10), np.ones(30)]
    full = KNeighborsRegressor(3, metric="precomputed").fit(cdist(X, X), X[:, 0], weight).predict(cdist(Q, X))
    given = KNeighborsRegressor(3, metric="precomputed").fit(sp.csr_array(cdist(X, X)), X[:, 0], weight)
    np.testing.assert_allclose(given.predict(sp.csr_array(cdist(Q, X))), full)


def test_a_function_of_blocks() -> None:
    class Blocks:
        def __call__(self, x: Any, z: Any) -> float:
            raise AssertionError("The blocks are there to be asked.")

        def pairwise(self, A: Any, B: Any) -> Any:
            return cdist(A, B, "canberra")

    X, Q = data(60, 3, 8)
    np.testing.assert_array_equal(
        NearestNeighbors(metric=Blocks()).fit(X).kneighbors(Q)[1], nearest(cdist(Q, X, "canberra"), 5)[1]
    )
    Blocks.pairwise = lambda self, A, B: -cdist(A, B)  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="distances >= 0"):
        NearestNeighbors(metric=Blocks()).fit(X).kneighbors(Q)


def test_a_radius_for_each_query() -> None:
    X, Q = data(80, 3, 8)
    radius = np.linspace(0.0, 2.0, Q.shape[0])
    near = NearestNeighbors().fit(X).radius_neighbors(Q, radius, return_distance=False)
    full = cdist(Q, X)
    assert [set(line) for line in near] == [set(np.flatnonzero(d <= r)) for d, r in zip(full, radius, strict=True)]
    with pytest.raises(ValueError, match="radius must be"):
        NearestNeighbors().fit(X).radius_neighbors(Q, radius[1:])


@pytest.mark.parametrize("algorithm", ["brute", "kd_tree"])
@pytest.mark.parametrize("norm", ["squared", "absolute"])
def test_equal_distances_are_in_the_order_of_the_rows(algorithm: str, norm: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(400, 4)).astype(float)
    Q = rng.integers(0, 4, size=(40, 4)).astype(float)
    full = cdist(Q, X, "cityblock" if norm == "absolute" else "euclidean")
    p = 1 if norm == "absolute" else 2
    for k in (3, 100):
        wanted = nearest(full, k)
        distance, row = NearestNeighbors(n_neighbors=k, algorithm=algorithm, p=p).fit(X).kneighbors(Q)
        np.testing.assert_array_equal(row, wanted[1])
        np.testing.assert_allclose(distance, wanted[0], rtol=1e-15)


SPREADS = {
    "normal": lambda rng, n: rng.normal(size=(n, 3)),
    "sorted": lambda rng, n: np.sort(rng.normal(size=(n, 3)), axis=0),
    "decades": lambda rng, n: 10.0 ** rng.uniform(-12, 12, size=(n, 3)) * rng.choice([-1, 1], size=(n, 3)),
    "close": lambda rng, n: 1.0 + rng.integers(-40, 40, size=(n, 3)) * 2.0**-52,
    "few": lambda rng, n: rng.integers(-2, 3, size=(n, 3)) * 1.0,
    "signs": lambda rng, n: rng.choice([-0.0, 0.0, 5e-324, -5e-324, 1.0], size=(n, 3)),
    "outlier": lambda rng, n: np.vstack([rng.normal(size=(n - 1, 3)), [[1e12, -1e12, 0.0]]]),
}


@pytest.mark.parametrize("spread", SPREADS)
def test_trees_of_any_spread_hold_all_rows_between_their_cuts(spread: str) -> None:
    rng = np.random.default_rng(0)
    X = SPREADS[spread](rng, 20_011)  # more rows than one branch of the tree
    trees = [native.build(X, threads) for threads in (1, 3)]
    for one, other in zip(*trees, strict=True):
        assert_array_equal(one, other)
    order, _, column, left, right = trees[0]
    assert_array_equal(np.sort(order), np.arange(X.shape[0]))
    spans = [(0, 0, X.shape[0])]
    for node, a, b in spans:
        if node < column.shape[0]:
            mid, x = a + (b - a) // 2, X[:, column[node]]
            assert x[order[a:mid]].max() <= left[node]
            assert x[order[mid:b]].min() >= right[node]
            spans += [(2 * node + 1, a, mid), (2 * node + 2, mid, b)]
    Q = np.vstack([X[:40], SPREADS[spread](rng, 40)])
    models = [NearestNeighbors(n_neighbors=7, algorithm=algorithm).fit(X) for algorithm in ("kd_tree", "brute")]
    for found, wanted in zip(*(model.kneighbors(Q) for model in models), strict=True):
        assert_array_equal(found, wanted)


def test_trees_with_smaller_leaves_are_read() -> None:
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(400, 2)), rng.normal(size=(9, 2))
    built = native.build(X, 1)
    assert built[2].shape == (15,)
    finer = (np.arange(400), X.copy(), np.zeros(31, dtype=np.int32), np.full(31, np.inf), np.full(31, -np.inf))
    for a in range(0, 400, 25):  # leaves keep their columns one after the other, split where halves of halves are
        for i, j in ((a, a + 12), (a + 12, a + 25)):
            finer[1][i:j] = X[i:j].T.reshape(j - i, 2)
    found = [(np.empty((9, 3)), np.empty((9, 3), dtype=np.int64)) for _ in range(2)]
    for tree, (distance, row) in zip((built, finer), found, strict=True):
        native.nearest(native.Tree(*tree), Q, "squared", 2.0, distance, row, None, 1)
    assert_array_equal(found[0][1], found[1][1])
    with pytest.raises(ValueError, match="number of rows"):
        native.Tree(*built[:2], *(part[:7] for part in built[2:]))


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_single_precision_filters_and_never_decides(offset: float, dtype: Any) -> None:
    """Far from zero, or with columns of other magnitude, products in single precision know nothing; neighbors stay exact."""
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(600, 20)) * np.geomspace(1e-6, 1.0, 20) + offset).astype(dtype)
    X[300:] = X[:300]
    Q = X[::7] + dtype(0.0)
    full = cdist(Q.astype(float), X.astype(float), "sqeuclidean")
    wanted = nearest(full, 4)
    distance, row = NearestNeighbors(n_neighbors=4, algorithm="brute").fit(X).kneighbors(Q)
    np.testing.assert_allclose(distance.astype(float) ** 2, wanted[0], rtol=1e-6)
    assert (row[:, :2] == np.sort(row[:, :2], axis=1)).all()
    assert (distance[:, :2] == 0).all()
    assert distance.dtype == dtype


@pytest.mark.parametrize("scale", [1e-200, 1e-150, 1e150, 1e200])
@pytest.mark.parametrize("p", [1, 2, 3, np.inf])
def test_units_do_not_matter(scale: float, p: float) -> None:
    X, Q = data(300, 3, 6)
    one = NearestNeighbors(p=p).fit(X).kneighbors(Q)
    other = NearestNeighbors(p=p).fit(X * scale).kneighbors(Q * scale)
    np.testing.assert_array_equal(other[1], one[1])
    np.testing.assert_allclose(other[0] / scale, one[0], rtol=1e-12)


def test_a_query_far_away_has_finite_distances() -> None:
    X, _ = data(300, 3, 6)
    distance, _ = NearestNeighbors().fit(X).kneighbors(np.full((1, 3), 1e200))
    np.testing.assert_allclose(distance, np.sqrt(3) * 1e200)


def test_rows_without_direction_have_cosine_zero() -> None:
    X = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    for rows in (X, sp.csr_array(X)):
        distance, row = NearestNeighbors(n_neighbors=3, metric="cosine").fit(rows).kneighbors([[0.0, 0.0], [2.0, 0.0]])
        np.testing.assert_allclose(distance, [[1.0, 1.0, 1.0], [0.0, 1.0, 2.0]], atol=1e-15)
        np.testing.assert_array_equal(row, [[0, 1, 2], [1, 0, 2]])


def test_missing_values() -> None:
    rng = np.random.default_rng(2)
    X, Q = rng.normal(size=(80, 4)), rng.normal(size=(20, 4))
    X[rng.random(X.shape) < 0.3] = np.nan
    Q[rng.random(Q.shape) < 0.3] = np.nan
    X[5], Q[3] = np.nan, [np.nan, 1.0, np.nan, np.nan]
    full = np.nan_to_num(nan_euclidean_distances(Q, X), nan=np.inf)
    distance, row = NearestNeighbors(n_neighbors=7, metric="nan_euclidean").fit(X).kneighbors(Q)
    wanted = nearest(full, 7)
    np.testing.assert_allclose(distance, wanted[0], rtol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(full, row, axis=1), wanted[0], rtol=1e-12)
    with pytest.raises(ValueError, match="NaN"):
        NearestNeighbors().fit(X)


def test_kernels_functions_and_given_distances() -> None:
    X, Q = data(60, 3, 8)
    kernel = kernels.RBF(gamma=0.3) + 0.5 * kernels.Linear()
    gram = kernel(np.vstack([Q, X]))
    own, m = np.diagonal(gram), Q.shape[0]
    full = np.sqrt(own[:m, None] - 2 * gram[:m, m:] + own[m:])
    given = NearestNeighbors(metric="precomputed").fit(cdist(X, X)).kneighbors(cdist(Q, X))
    for model, wanted in (
        (NearestNeighbors(metric=kernel).fit(X).kneighbors(Q), nearest(full, 5)),
        (NearestNeighbors(metric=kernel).fit(sp.csr_array(X)).kneighbors(Q), nearest(full, 5)),
        (NearestNeighbors(metric=kernel.map(np.positive)).fit(X).kneighbors(Q), nearest(full, 5)),
        (
            NearestNeighbors(metric=lambda x, z: abs(x - z).max()).fit(X).kneighbors(Q),
            nearest(cdist(Q, X, "chebyshev"), 5),
        ),
        (given, nearest(cdist(Q, X), 5)),
    ):
        np.testing.assert_allclose(model[0], wanted[0], rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(model[1], wanted[1])

    def power(x: Any, z: Any, p: float) -> float:
        return float((abs(x - z) ** p).sum() ** (1 / p))

    bound = NearestNeighbors(metric=power, metric_params={"p": 4}).fit(X).kneighbors(Q)
    np.testing.assert_allclose(bound[0], nearest(cdist(Q, X, "minkowski", p=4), 5)[0])


@pytest.mark.parametrize(
    "options", [{}, {"algorithm": "brute"}, {"metric": "cosine"}, {"p": 3}, {"metric": "precomputed"}]
)
def test_all_rows_within_a_radius(options: dict[str, Any]) -> None:
    X, Q = data(500, 3, 1)
    metric = {"metric": "cosine"}.get("metric") if options.get("metric") == "cosine" else "minkowski"
    full = cdist(Q, X, metric, **({} if metric == "cosine" else {"p": options.get("p", 2)}))
    precomputed = options.get("metric") == "precomputed"
    model = NearestNeighbors(radius=0.5, **options).fit(cdist(X, X) if precomputed else X)
    distance, row = model.radius_neighbors(full if precomputed else Q)
    graph = model.radius_neighbors_graph(full if precomputed else Q, mode="distance")
    assert graph.shape == full.shape
    for i in range(Q.shape[0]):
        # Distances that are 0.5 but for rounding may be on either side.
        assert set(np.flatnonzero(full[i] < 0.5 - 1e-9)) <= set(row[i]) <= set(np.flatnonzero(full[i] < 0.5 + 1e-9))
        np.testing.assert_allclose(distance[i], full[i, row[i]], atol=1e-9)
        assert (np.diff(distance[i]) >= 0).all()


def test_rows_asked_about_themselves_leave_themselves_out() -> None:
    X = np.vstack([data(60, 3, 8)[0], data(60, 3, 8)[0]])  # every row has a copy
    model = NearestNeighbors(n_neighbors=3).fit(X)
    for rows in (model.kneighbors(return_distance=False), model.radius_neighbors(radius=0.8, return_distance=False)):
        assert all(i not in line for i, line in enumerate(rows))
        assert all(line[0] == (i + 60) % 120 for i, line in enumerate(rows))
    graph = model.kneighbors_graph(mode="distance")
    assert graph.shape == (120, 120)
    assert graph.diagonal().sum() == 0
    with pytest.raises(ValueError, match="besides the row itself"):
        NearestNeighbors(n_neighbors=120).fit(X).kneighbors()


def test_bad_input_is_refused() -> None:
    X, Q = data(20, 3, 8)
    with pytest.raises(ValueError, match="n_neighbors = 30, n_samples_fit = 20"):
        NearestNeighbors(n_neighbors=30).fit(X).kneighbors(Q)
    with pytest.raises(ValueError, match="square"):
        NearestNeighbors(metric="precomputed").fit(X)
    with pytest.raises(ValueError, match="negative"):
        NearestNeighbors(metric="precomputed").fit(-cdist(X, X))
    with pytest.raises(ValueError, match="distances >= 0"):
        NearestNeighbors(metric=lambda x, z: -1.0).fit(X).kneighbors(Q)
    with pytest.raises(ValueError, match="other things than numbers"):
        NearestNeighbors(metric=kernels.Spectrum(2)).fit(X)
    for metric, further in (
        ("seuclidean", None),
        ("seuclidean", {"V": [1.0, 0.0, 1.0]}),
        ("seuclidean", {"V": [1.0, 2.0]}),
        ("mahalanobis", None),
        ("mahalanobis", {"VI": -np.eye(3)}),
        ("mahalanobis", {"V": np.ones((3, 3))}),
        ("mahalanobis", {"VI": [[1.0, 2.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]}),
        ("minkowski", {"w": [1.0, -1.0, 1.0]}),
        ("minkowski", {"w": "no"}),
        ("cosine", {"w": [1.0, 1.0, 1.0]}),
    ):
        with pytest.raises(ValueError, match="metric_params"):
            NearestNeighbors(metric=metric, metric_params=further).fit(X)
    with pytest.raises(ValueError, match="not numeric"):
        NearestNeighbors().fit([["a", 1.0], ["b", 2.0]])


def test_the_native_search_refuses_what_does_not_fit() -> None:
    X = np.zeros((50, 3))
    distance, row = np.empty((2, 4)), np.empty((2, 4), dtype=np.int64)
    tree = native.build(X, 1)
    bad = [
        lambda: native.nearest(X, np.zeros((2, 2)), "squared", 2.0, distance, row, None, 1),
        lambda: native.nearest(X, np.zeros((3, 3)), "squared", 2.0, distance, row, None, 1),
        lambda: native.nearest(X[:3], np.zeros((2, 3)), "squared", 2.0, distance, row, None, 1),
        lambda: native.nearest(X, np.zeros((2, 3)), "no such", 2.0, distance, row, None, 1),
        lambda: native.nearest(X, np.zeros((2, 3)), "squared", 2.0, distance, row, np.zeros(5, dtype=np.int64), 1),
        lambda: native.panels(X, np.zeros((2, 3)), np.zeros(2), 1.0, distance, row, None, 1),
        lambda: native.Tree(tree[0], tree[1], tree[2] + 7, tree[3], tree[4]),
        lambda: native.Tree(tree[0][:5], *tree[1:]),
        lambda: native.Sparse(np.ones(1), np.array([9]), np.array([0, 1]), 3),
    ]
    for call in bad:
        with pytest.raises(ValueError, match=r"."):
            call()
