"""The boundary of the search for subsets: what Python should have coerced is refused."""

from __future__ import annotations

import numpy as np
import pytest

from certifit._native import subset

GRAM = np.eye(4)


def test_independent_columns_without_effect() -> None:
    rss, aside, support, nodes = subset.best_subsets(GRAM, np.ones(3), 2, 1e-11, 1e-14, 100, np.inf)
    assert rss[0] == 1.0
    assert np.isinf(aside).all()
    assert support.shape == (3, 3)
    assert nodes >= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gram": np.ones((3, 4))}, "gram must be square"),
        ({"delta": np.ones(2)}, "delta has length 2, wanted 3"),
        ({"most": 4}, "most must be between"),
        ({"least_pivot": 0.0}, "least_pivot must be positive"),
        ({"seconds": -1.0}, "seconds must not be negative"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, object], message: str) -> None:
    given = {
        "gram": GRAM,
        "delta": np.ones(3),
        "most": 2,
        "least_pivot": 1e-11,
        "slack": 1e-14,
        "limit": 100,
        "seconds": 1.0,
    }
    with pytest.raises(ValueError, match=message):
        subset.best_subsets(**{**given, **change})
    with pytest.raises(TypeError):
        subset.best_subsets(**{**given, "gram": GRAM.astype(np.float32)})
