"""Pictures of resampling show the numbers that were found."""

from __future__ import annotations

import numpy as np
import pytest

from certifit import Ridge, bias_variance
from certifit.plots import plot_bias_variance

X = np.random.default_rng(0).normal(size=(40, 3))


def test_a_group_of_bars_for_each_model() -> None:
    known = {
        alpha: bias_variance(Ridge(alpha), X, target=lambda X: X.sum(axis=1), noise=0.5, n_rounds=20)
        for alpha in (0.01, 1.0)
    }
    ax = plot_bias_variance(known)
    heights = [[bar.get_height() for bar in group] for group in ax.containers if hasattr(group, "patches")]
    wanted = [[getattr(one, name).value for one in known.values()] for name in ("noise", "bias", "variance")]
    np.testing.assert_allclose(heights, wanted)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.01", "1.0"]
    data = plot_bias_variance({"": bias_variance(Ridge(1.0), X, X[:, 0], n_rounds=20)})
    assert [text.get_text() for text in data.get_legend().get_texts()] == ["bias and noise", "variance"]
    with pytest.raises(ValueError, match="empty"):
        plot_bias_variance({})
