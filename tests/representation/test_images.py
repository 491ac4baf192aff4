"""Intensity and symmetry of images."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from certifit import DigitFeatures

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("shape", "given"), [((4, 6), (4, 6)), ((5, 5), None), ((1, 7), None), ((3, 4), None)])
@pytest.mark.parametrize("mirror", ["both", "left_right", "top_bottom"])
def test_by_hand(shape: tuple[int, int], given: tuple[int, int] | None, mirror: str) -> None:
    images = RNG.normal(size=(300, *shape))
    found = DigitFeatures(shape=given, mirror=mirror).fit_transform(images.reshape(300, -1))
    assert_allclose(found[:, 0], [image.mean() for image in images])
    apart = {
        "left_right": [np.abs(image - image[:, ::-1]).mean() for image in images],
        "top_bottom": [np.abs(image - image[::-1]).mean() for image in images],
    }
    wanted = np.mean(list(apart.values()), axis=0) if mirror == "both" else apart[mirror]
    assert_allclose(-found[:, 1], wanted)


def test_symmetric_images_have_symmetry_zero() -> None:
    quarter = RNG.normal(size=(10, 3, 3))
    half = np.concatenate([quarter, quarter[:, :, ::-1]], axis=2)
    whole = np.concatenate([half, half[:, ::-1]], axis=1).reshape(10, -1)
    assert not DigitFeatures().fit_transform(whole)[:, 1].any()
    assert DigitFeatures(mirror="top_bottom").fit_transform(half.reshape(10, -1))[:, 1].max() < 0


def test_single_precision_stays_and_is_summed_in_double() -> None:
    X = RNG.normal(size=(50, 256))
    found = DigitFeatures().fit_transform(X.astype(np.float32))
    assert found.dtype == np.float32
    assert_allclose(found, DigitFeatures().fit_transform(X.astype(np.float32).astype(np.float64)), rtol=1e-6)
    assert DigitFeatures().fit(X).get_feature_names_out().tolist() == ["intensity", "symmetry"]


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"\(4, 4\) has 16 pixels, and X has 15 columns"):
        DigitFeatures(shape=(4, 4)).fit(np.ones((3, 15)))
    with pytest.raises(ValueError, match="pair of positive integers"):
        DigitFeatures(shape=(0, 15)).fit(np.ones((3, 15)))


def test_truth_values_are_no_sides() -> None:
    with pytest.raises(ValueError, match="shape must be a pair of positive integers"):
        DigitFeatures(shape=(True, 4)).fit([[0.0, 1.0, 2.0, 3.0]])
