"""Kernels against their formulas, the calculus against explicit feature maps, Mercer's condition against eigenvalues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from certifit import load, save
from certifit.kernels import (
    KERNELS,
    RBF,
    Custom,
    Laplacian,
    Linear,
    Mahalanobis,
    Polynomial,
    Precomputed,
    Sets,
    Spectrum,
    is_mercer,
    resolve_kernel,
)

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(12, 4)), RNG.normal(size=(5, 4))
A = np.array([[2.0, 0.5, 0, 0], [0.5, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 0.5]])
FORMULAS = {
    "linear": (Linear(), lambda x, z: x @ z),
    "polynomial": (Polynomial(3, gamma=0.5, offset=2.0), lambda x, z: (0.5 * x @ z + 2.0) ** 3),
    "quadratic": (Polynomial(2, gamma=1.0), lambda x, z: (x @ z + 1.0) ** 2),
    "rbf": (RBF(gamma=0.3), lambda x, z: np.exp(-0.3 * ((x - z) ** 2).sum())),
    "rbf by width": (RBF(sigma=2.0), lambda x, z: np.exp(-((x - z) ** 2).sum() / 8.0)),
    "laplacian": (Laplacian(gamma=0.3), lambda x, z: np.exp(-0.3 * np.abs(x - z).sum())),
    "mahalanobis": (Mahalanobis(A), lambda x, z: x @ A @ z),
    "custom": (Custom(lambda a, b: a @ b.T), lambda x, z: x @ z),
    "custom pairs": (Custom(lambda x, z: float(x @ z) ** 2, pairwise=True), lambda x, z: (x @ z) ** 2),
    "sum": (Linear() + RBF(0.1) + 2.0, lambda x, z: x @ z + np.exp(-0.1 * ((x - z) ** 2).sum()) + 2.0),
    "product": (Linear() * RBF(0.1) * 3, lambda x, z: 3 * x @ z * np.exp(-0.1 * ((x - z) ** 2).sum())),
    "power": ((Linear() + 1) ** 2, lambda x, z: (x @ z + 1.0) ** 2),
    "exp": ((0.1 * Linear()).exp(), lambda x, z: np.exp(0.1 * x @ z)),
    "polynomial of": (Linear().polynomial([1.0, 0.0, 2.0]), lambda x, z: 1.0 + 2.0 * (x @ z) ** 2),
    "map": (RBF(0.5).map(np.tanh), lambda x, z: np.exp(-0.5 * ((np.tanh(x) - np.tanh(z)) ** 2).sum())),
    "scaled by": (
        RBF(0.5).scaled_by(lambda X: X[:, 0]),
        lambda x, z: x[0] * z[0] * np.exp(-0.5 * ((x - z) ** 2).sum()),
    ),
    "on columns": (Linear().on([0, 2]), lambda x, z: x[0] * z[0] + x[2] * z[2]),
    "blocks": (Linear().on(slice(0, 2)) * RBF(1.0).on(3), lambda x, z: (x[:2] @ z[:2]) * np.exp(-((x[3] - z[3]) ** 2))),
    "normalized": (Polynomial(2, gamma=1.0).normalized(), lambda x, z: (x @ z + 1) ** 2 / ((x @ x + 1) * (z @ z + 1))),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_kernel_is_its_formula(name: str) -> None:
    kernel, formula = FORMULAS[name]
    wanted = np.array([[formula(x, z) for z in Z] for x in X])
    np.testing.assert_allclose(kernel(X, Z), wanted, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), [formula(x, x) for x in X], rtol=1e-10)
    np.testing.assert_allclose(clone(kernel)(X, Z), wanted, rtol=1e-10, atol=1e-12)
    assert str(kernel)
    assert is_mercer(kernel(X))


@pytest.mark.parametrize(
    "name", [name for name in FORMULAS if "custom" not in name and name not in ("map", "scaled by")]
)
def test_a_kernel_is_saved_with_its_parts(name: str, tmp_path: Path) -> None:
    kernel = FORMULAS[name][0]
    loaded = load(save(kernel, tmp_path / "kernel.cfit"))
    assert str(loaded) == str(kernel)
    np.testing.assert_array_equal(loaded(X, Z), kernel(X, Z))


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Polynomial(3, gamma=0.5, offset=2.0),
        Polynomial(2, gamma=1.0, offset=0.0),
        Mahalanobis(A),
        Linear() + Polynomial(2, gamma=1.0),
        Linear() * Linear().on([0, 1]),
        (Linear() + 1) ** 3,
        Linear().on([0, 1]).polynomial([1.0, 0.0, 2.0, 0.5]),
        2 * Linear().normalized(),
        Linear().scaled_by(lambda X: X[:, 1]),
        Linear().map(np.sin),
    ],
    ids=str,
)
def test_feature_maps_reproduce_the_kernel(kernel: object) -> None:
    phi = kernel.feature_map()  # type: ignore[attr-defined]
    np.testing.assert_allclose(phi(X) @ phi(Z).T, kernel(X, Z), rtol=1e-9, atol=1e-10)  # type: ignore[operator]


def test_the_gaussian_kernel_has_no_finite_map() -> None:
    with pytest.raises(ValueError, match="no feature map with finitely many"):
        RBF(1.0).feature_map()


@pytest.mark.parametrize(
    "kernel", [Linear(), RBF(0.2), Polynomial(2, gamma=1.0), Linear() + RBF(0.1), Laplacian(0.1)], ids=str
)
def test_sparse_rows_have_the_same_kernel(kernel: object) -> None:
    sparse = np.where(np.abs(X) > 0.8, X, 0.0)
    np.testing.assert_allclose(
        kernel(sp.csr_array(sparse), sp.csr_array(sparse[:4])), kernel(sparse, sparse[:4]), atol=1e-12
    )  # type: ignore[operator]


def test_a_row_is_not_away_from_itself() -> None:
    far = X + 1e6
    for rows in (far, sp.csr_array(far)):
        np.testing.assert_array_equal(np.diagonal(RBF(0.3)(rows)), 1.0)


def products(X: Any, Z: Any) -> Any:
    return X @ Z.T  # sparse if X and Z are


def test_functions_join_kernels_on_numbers_and_see_sparse_rows() -> None:
    wanted = X @ Z.T + RBF(0.2)(np.sin(X), np.sin(Z)) * Linear()(X, Z)
    joined = Custom(products) + RBF(0.2).map(np.sin) * Linear()
    np.testing.assert_allclose(joined(X, Z), wanted, rtol=1e-12)
    np.testing.assert_allclose(joined(sp.csr_array(X), sp.csr_array(Z)), wanted, rtol=1e-10)
    np.testing.assert_allclose(Custom(products)(sp.csr_array(X), sp.csr_array(Z)), X @ Z.T, atol=1e-12)
    np.testing.assert_allclose(Custom(products).diagonal(sp.csr_array(X)), (X**2).sum(axis=1))
    one = Custom(lambda x, z: float((x * z).sum()), pairwise=True)
    np.testing.assert_allclose(one(sp.csr_array(X), sp.csr_array(Z)), X @ Z.T, atol=1e-12)
    with pytest.raises(ValueError, match="joins kernels on different things: numbers, objects"):
        _ = (Spectrum(2) + Custom(products) + Linear()).takes


@pytest.mark.parametrize(("gamma", "wanted"), [("scale", 1 / (4 * X.var())), ("auto", 0.25)])
def test_gamma_by_name(gamma: str, wanted: float) -> None:
    assert RBF(gamma).bound(X).gamma == pytest.approx(wanted)


def test_gamma_of_the_median() -> None:
    distances = [((X[i] - X[j]) ** 2).sum() for i in range(12) for j in range(i)]
    assert RBF("median").bound(X).gamma == pytest.approx(0.5 / np.median(distances))
    assert RBF("median").bound(np.zeros((3, 2))).gamma == 1.0


def test_a_search_reaches_the_parameters_of_a_part() -> None:
    kernel = 2 * RBF(0.3) + Linear()
    kernel.set_params(k1__k__gamma=1.0)
    np.testing.assert_allclose(kernel(X), (2 * RBF(1.0) + Linear())(X))


def test_formulas_print_as_mathematics() -> None:
    assert str(2 * RBF(0.5) + Polynomial(2, gamma=1.0)) == "2·exp(−0.5‖x − z‖²) + (x·z + 1)^2"
    assert str((Linear() + 1) ** 2) == "(x·z + 1)^2"


def test_strings_by_their_substrings() -> None:
    words = ["banana", "bandana", "cab"]
    gram = Spectrum(n=2)(words)

    def count(word: str) -> dict[str, int]:
        parts = [word[i : i + 2] for i in range(len(word) - 1)]
        return {part: parts.count(part) for part in parts}

    wanted = [[sum(c * count(b).get(s, 0) for s, c in count(a).items()) for b in words] for a in words]
    np.testing.assert_array_equal(gram, wanted)
    np.testing.assert_array_equal(Spectrum(n=2).diagonal(words), np.diag(wanted))
    assert Spectrum(n=1, unit="word")(["a b a"], ["a"])[0, 0] == 2.0
    with pytest.raises(TypeError, match="takes strings"):
        Spectrum()([1, 2])
    with pytest.raises(TypeError, match="single string"):
        Spectrum()("abc")


@pytest.mark.parametrize(("kind", "value"), [("common", 1.0), ("jaccard", 0.25), ("subsets", 2.0)])
def test_sets_by_what_they_share(kind: str, value: float) -> None:
    kernel = Sets(kind)
    sets = [{1, 2}, {2, 3, 4}, set()]
    assert kernel(sets)[0, 1] == value
    np.testing.assert_allclose(kernel.diagonal(sets), np.diag(kernel(sets)))
    assert is_mercer(kernel([{1, 2}, {2, 3}, {1, 3}, {1, 2, 3}]))


def test_mercer_names_the_vector_that_shows_it() -> None:
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    answer = is_mercer(K)
    assert not answer
    assert answer.witness @ K @ answer.witness == pytest.approx(-1.0)
    assert is_mercer(np.eye(3) * 1e-200)
    assert not is_mercer(np.array([[1.0, 0.5], [0.4, 1.0]]))
    assert "not symmetric" in str(is_mercer(np.array([[1.0, 0.5], [0.4, 1.0]])))
    assert "not symmetric" in str(is_mercer(np.array([[1.0, 3.0], [0.4, 1.0]])))


@pytest.mark.parametrize("K", [[[1.0, 2.0]], [[np.nan]], "a", [], [["a"]]])
def test_mercer_refuses_what_is_no_matrix(K: object) -> None:
    with pytest.raises(ValueError, match="K"):
        is_mercer(K)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Polynomial(0)(X),
        lambda: RBF(-1.0)(X),
        lambda: RBF("no such")(X),
        lambda: Linear().polynomial([1.0, -2.0])(X),
        lambda: (Linear() * -1.0)(X),
        lambda: Mahalanobis([[-1.0]])(np.ones((2, 1))),
        lambda: Mahalanobis(np.eye(3))(X),
        lambda: Linear().on([9])(X),
        lambda: Linear().on("a")(X),
        lambda: Linear().map(lambda X: X[:2])(X),
        lambda: Linear().scaled_by(lambda X: X)(X),
        lambda: resolve_kernel("no such kernel"),
        lambda: Linear() + "a",
        lambda: Custom(3)(X),
        lambda: (Spectrum() + RBF(1.0)).takes,
        lambda: RBF(1.0)(X, Z[:, :2]),
        lambda: RBF(1.0)(X[0]),
        lambda: RBF(1.0)(np.where(X > 0, np.nan, X)),
        lambda: RBF(1.0).diagonal([["a"]]),
    ],
)
def test_nonsense_is_refused(wrong: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        wrong()  # type: ignore[operator]


@pytest.mark.parametrize("name", KERNELS)
def test_every_registered_name_resolves(name: str) -> None:
    assert isinstance(resolve_kernel(name), KERNELS[name])


def test_a_precomputed_matrix_is_taken_as_it_is() -> None:
    K = RBF(1.0)(X)
    np.testing.assert_array_equal(Precomputed()(K), K)
