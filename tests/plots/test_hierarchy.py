"""The picture of a hierarchy."""

from __future__ import annotations

import numpy as np
import pytest

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


def test_bad_trees() -> None:
    with pytest.raises(ValueError, match="four columns"):
        plot_dendrogram(np.ones((3, 2)))
    with pytest.raises(ValueError, match="names"):
        plot_dendrogram(AgglomerativeClustering().fit([[0.0], [1.0]]), names=["a"])
