"""How many clusters: right where groups are plain, one where there are none, and each curve by its definition."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from certifit import KMeans, choose_k

RNG = np.random.default_rng(0)
GROUPS = np.concatenate([RNG.normal(size=(40, 2)) + 9.0 * np.array([c // 2, c % 2]) for c in range(4)])


def test_plain_groups_are_counted_by_all() -> None:
    found = choose_k(GROUPS, max_k=7, random_state=0)
    assert (found.k, found.by["silhouette"], found.by["gap"]) == (4, 4, 4)
    assert found.by["kink"] in (3, 4)  # of a square of groups the cost bends at both
    assert choose_k(GROUPS, method="gap", max_k=7, random_state=0).k == 4
    assert (np.diff(found.costs) < 0).all()
    labels = KMeans(4, random_state=0, n_init=3).fit(GROUPS).labels_
    assert found.silhouettes[3] == pytest.approx(silhouette_score(GROUPS, labels))
    assert np.isnan(found.silhouettes[0])


def test_rows_without_groups_are_one_by_the_gap() -> None:
    found = choose_k(RNG.normal(size=(200, 3)), method="gap", max_k=5, random_state=0)
    assert found.k == 1
    assert str(found).startswith("1 cluster by gap (silhouette ")


def test_a_weight_of_zero_drops_the_row() -> None:
    far = np.vstack([GROUPS, [[1e3, 1e3]]])
    found = choose_k(far, max_k=6, n_references=3, random_state=0, sample_weight=[1.0] * 160 + [0.0])
    wanted = choose_k(GROUPS, max_k=6, n_references=3, random_state=0)
    np.testing.assert_allclose(found.costs, wanted.costs)
    np.testing.assert_allclose(found.gaps, wanted.gaps)


def test_many_rows_are_sampled_for_their_silhouettes() -> None:
    X = np.repeat(GROUPS, 20, axis=0) + 0.1 * RNG.normal(size=(3200, 2))
    assert choose_k(X, max_k=5, n_references=2, n_init=1, random_state=0).k == 4


def test_the_picture_marks_the_choices() -> None:
    found = choose_k(GROUPS, max_k=5, n_references=2, random_state=0)
    axes = found.plot()
    assert [ax.get_title() for ax in axes] == [f"cost: {found.by['kink']}", "silhouette: 4", f"gap: {found.by['gap']}"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "elbow"}, "method must be one of"),
        ({"max_k": 1}, "max_k must be an integer"),
        ({"n_references": 1}, "n_references must be an integer"),
        ({"n_init": 0}, "n_init must be an integer"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose_k(GROUPS, **options)  # type: ignore[arg-type]


def test_equal_rows_have_no_number_of_clusters() -> None:
    with pytest.raises(ValueError, match="at least 3 distinct rows"):
        choose_k(np.ones((10, 2)))
