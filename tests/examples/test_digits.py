"""The experiment of ones and fives, on a part of the images."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest


def test_perceptron_pocket_and_pocket_from_regression(root: Path, real_data: Path, tmp_path: Path) -> None:
    program = runpy.run_path(str(root / "examples" / "digits.py"))
    with np.load(real_data / "usps_zip" / "zip.npz") as arrays:
        part = {name: arrays[name][:1500] for name in arrays}
    errors = program["experiment"](part, tmp_path / "digits.png")
    perceptron, pocket, started = errors.values()
    assert pocket[0] <= perceptron[0]  # the pocket keeps the best plane that the perceptron met
    assert started[0] <= perceptron[0]
    assert max(outside for _, outside in errors.values()) < 0.05
    assert (tmp_path / "digits.png").stat().st_size > 10_000


def test_ones_are_lighter_and_more_symmetric(root: Path, real_data: Path) -> None:
    program = runpy.run_path(str(root / "examples" / "digits.py"))
    with np.load(real_data / "usps_zip" / "zip.npz") as arrays:
        images, digits = arrays["X_test"], arrays["y_test"]
    X, ones = program["ones_and_fives"](images, digits, program["DigitFeatures"]().fit(images.astype(float)))
    assert X.shape == (np.isin(digits, (1, 5)).sum(), 2)
    first, second = X[ones].mean(axis=0), X[~ones].mean(axis=0)
    assert first[0] < second[0]
    assert first[1] > second[1]
    with pytest.raises(ValueError, match="X has 256 features"):
        program["DigitFeatures"]().fit(images[:, :250]).transform(images)
