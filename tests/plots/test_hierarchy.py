"""The picture of a hierarchy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import dendrogram, linkage

from certifit import AgglomerativeClustering
from certifit.plots import plot_dendrogram


def test_brackets_stand_at_the_heights_of_their_merges() -> None:
    X = np.random.default_rng(0).normal(size=(12, 2))
    model = AgglomerativeClustering(3).fit(X)
    ax = plot_dendrogram(model, names=[f"row {i}" for i in range(12)])
    tops = sorted(segment[1, 1] for segment in ax.collections[0].get_segments())
    np.testing.assert_allclose(tops, model.distances_)
    assert {text.get_text() for text in ax.get_xticklabels()} == {f"row {i}" for i in range(12)}
    cut = ax.lines[0].get_ydata()[0]
    assert model.distances_[-3] < cut < model.distances_[-2]
    assert len(plot_dendrogram(model.linkage_matrix_, max_leaves=5).get_xticklabels()) == 5


@pytest.mark.parametrize(("method", "leaves"), [("ward", 60), ("single", 60), ("average", 13), ("single", 2)])
def test_trees_are_drawn_as_scipy_draws_them(method: str, leaves: int) -> None:
    Z = linkage(np.random.default_rng(1).normal(size=(60, 2)), method)
    expected = dendrogram(Z, p=leaves, truncate_mode="lastp" if leaves < 60 else None, no_plot=True)
    ax = plot_dendrogram(Z, max_leaves=leaves)
    assert [text.get_text() for text in ax.get_xticklabels()] == expected["ivl"]
    brackets = sorted(np.column_stack(one).tolist() for one in zip(expected["icoord"], expected["dcoord"], strict=True))
    np.testing.assert_allclose(sorted(one.tolist() for one in ax.collections[0].get_segments()), brackets)


def test_a_chain_deeper_than_python_recurses() -> None:
    n = 1500
    model = AgglomerativeClustering(linkage="single").fit((np.arange(n) ** 1.1)[:, None])
    ax = plot_dendrogram(model, max_leaves=2 * n)
    assert len(ax.collections[0].get_segments()) == n - 1


def test_heights_that_fall_are_not_cut() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = AgglomerativeClustering(8, connectivity=np.eye(30, k=1)).fit(X)
    assert model.distances_[:22].max() > model.distances_[22:].min()
    ax = plot_dendrogram(model)
    assert not ax.lines
    assert ax.get_ylim()[1] > model.distances_.max()


def test_bad_trees() -> None:
    with pytest.raises(ValueError, match="four columns"):
        plot_dendrogram(np.ones((3, 2)))
    with pytest.raises(ValueError, match="names"):
        plot_dendrogram(AgglomerativeClustering().fit([[0.0], [1.0]]), names=["a"])
