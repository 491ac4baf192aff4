"""The pictures of a machine on a plane and of a Gram matrix."""

from __future__ import annotations

import numpy as np
import pytest

from certifit import SVC, KernelLogisticRegression, LinearSVC
from certifit.kernels import RBF
from certifit.plots import plot_gram, plot_margin

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


def shown(ax):
    return np.asarray(ax.images[0].get_array())


def test_rows_of_a_gram_matrix_are_ordered_by_likeness():
    line = RNG.permutation(30)[:, None].astype(float)
    image = shown(plot_gram(RBF(gamma=0.01), line))
    steps = np.diagonal(image, 1)
    np.testing.assert_allclose(
        steps, np.exp(-0.01), err_msg="rows next to each other on the line are so in the picture"
    )
    for model in (SVC(gamma=0.01).fit(line, line[:, 0] > 15), "rbf", lambda X, Z: X @ Z.T):
        assert shown(plot_gram(model, line)).shape == (30, 30)


def test_classes_of_a_gram_matrix_are_blocks():
    ax = plot_gram("linear", X, Y)
    halves = int((Y == "other").sum())
    np.testing.assert_allclose(np.sort(np.diagonal(shown(ax))[:halves]), np.sort((X[Y == "other"] ** 2).sum(axis=1)))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["other", "same"]
    assert [float(line.get_ydata()[0]) for line in ax.lines[:1]] == [halves - 0.5]
    assert plot_gram("linear", X, Y, ax=ax) is ax


def test_what_is_no_gram_matrix_is_told():
    with pytest.raises(ValueError, match="square"):
        plot_gram("precomputed", np.ones((2, 3)))
    with pytest.raises(ValueError, match="a label for each"):
        plot_gram("linear", X, Y[:5])
    with pytest.raises(ValueError, match="kernel must be"):
        plot_gram("no such kernel", X)


def test_a_machine_without_support_vectors_is_told():
    with pytest.raises(TypeError, match="with support vectors, such as SVC; got KernelLogisticRegression"):
        plot_margin(KernelLogisticRegression().fit(X, Y), X, Y)
