"""The picture of a machine on a plane."""

from __future__ import annotations

import numpy as np
import pytest

from certifit import SVC, LinearSVC
from certifit.plots import plot_margin

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))
Y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")


@pytest.mark.parametrize("model", [SVC(C=10.0), LinearSVC(alpha=0.01)], ids=["kernel", "linear"])
def test_rows_boundary_and_support(model):
    model.fit(X, Y)
    ax = plot_margin(model, X, Y)
    assert sum(len(line.get_xdata()) for line in ax.lines) == 80 + len(model.support_)
    edges = ax.collections[-1]
    assert edges.levels.tolist() == [-1.0, 0.0, 1.0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["other", "same", "support vectors"]
    assert plot_margin(model, X, Y, ax=ax) is ax


def test_what_has_no_place_on_a_plane_is_told():
    with pytest.raises(ValueError, match="two columns"):
        plot_margin(SVC().fit(RNG.normal(size=(80, 3)), Y), RNG.normal(size=(80, 3)), Y)
    with pytest.raises(ValueError, match="two classes"):
        plot_margin(SVC().fit(X, np.arange(80) % 3), X, np.arange(80) % 3)
    with pytest.raises(ValueError, match="a label for each"):
        plot_margin(SVC().fit(X, Y), X, Y[:5])
