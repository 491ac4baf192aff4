"""Pictures of networks hold the numbers they show."""

from __future__ import annotations

import numpy as np
import pytest

from certifit import MLPClassifier
from certifit.plots import plot_first_layer, plot_history

X = np.random.default_rng(0).normal(size=(120, 12))
Y = X[:, 0] * X[:, 1] > 0


def test_the_history_is_drawn() -> None:
    model = MLPClassifier(hidden=(5,), max_iter=6, early_stopping=True, random_state=0).fit(X, Y)
    training, held_out, kept = plot_history(model).lines
    np.testing.assert_array_equal(training.get_ydata(), model.loss_curve_)
    np.testing.assert_array_equal(held_out.get_ydata(), model.history_["validation_loss"])
    assert kept.get_xdata() == [model.best_epoch_]
    short = MLPClassifier(hidden=(5,), max_iter=2, random_state=0).fit(X, Y)
    assert [line.get_label() for line in plot_history(short).lines] == ["training", "kept"]
    assert plot_history(short).get_xlabel() == "epoch"
    whole = MLPClassifier(hidden=(5,), alpha=0.1, optimizer="lbfgs", max_iter=500, random_state=0).fit(X, Y)
    assert plot_history(whole).get_xlabel() == "iteration"


def test_the_first_layer_is_drawn_unit_by_unit() -> None:
    model = MLPClassifier(hidden=(5,), max_iter=2, random_state=0).fit(X, Y)
    canvas = np.asarray(plot_first_layer(model, (3, 4)).images[0].get_array().filled(np.nan))
    assert canvas.shape == (2 * 4 - 1, 3 * 5 - 1)  # five images in two rows of three
    longest = int(np.argmax(np.linalg.norm(model.coefs_[0], axis=0)))
    first = model.coefs_[0][:, longest].reshape(3, 4)
    np.testing.assert_allclose(canvas[:3, :4], first / np.abs(first).max(), rtol=1e-6)
    for wrong in ((3, 5), (-3, -4), 12, (12,)):
        with pytest.raises(ValueError, match="as many pixels"):
            plot_first_layer(model, wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n_units must be"):
        plot_first_layer(model, (3, 4), n_units=0)
