"""Ones and fives by two numbers: perceptron, pocket, and pocket started from regression.

    python examples/digits.py ../shared/data/usps_zip/zip.npz digits.png

The file has arrays X_train, y_train, X_test and y_test: images of 16 × 16 pixels, and which digit each of them is.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from certifit import DigitFeatures, Perceptron, PocketPerceptron, risk

LEARNERS: dict[str, Any] = {
    "perceptron": Perceptron(max_iter=20, random_state=0),
    "pocket": PocketPerceptron(max_iter=20, random_state=0),
    "pocket, started from regression": PocketPerceptron(start="regression", max_iter=20, random_state=0),
}


def ones_and_fives(images: Any, digits: Any, features: DigitFeatures) -> tuple[Any, Any]:
    """Intensity and symmetry of the ones and fives, and which of them are ones."""
    chosen = np.isin(digits, (1, 5))
    return features.transform(np.asarray(images)[chosen].astype(float)), np.asarray(digits)[chosen] == 1


def draw(ax: Any, model: Any, X: Any, y: Any) -> None:
    """The images as points, and the line where the model changes its mind."""
    for value, name, marker in ((True, "one", "o"), (False, "five", "x")):
        ax.scatter(*X[y == value].T, s=12, marker=marker, alpha=0.5, label=name)
    across = np.linspace(X[:, 0].min(), X[:, 0].max(), 2)
    (a, b), c = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    ax.plot(across, -(a * across + c) / b, color="black")
    ax.set(xlabel="intensity", ylabel="symmetry", ylim=(X[:, 1].min() - 0.02, 0.02))


def experiment(data: Any, picture: Path | None = None) -> dict[str, tuple[float, float]]:
    """Error of each learner on the images it learned from and on others; a panel for each, if a picture is wanted."""
    features = DigitFeatures().fit(np.asarray(data["X_train"], dtype=float))
    X, y = ones_and_fives(data["X_train"], data["y_train"], features)
    unseen, truth = ones_and_fives(data["X_test"], data["y_test"], features)
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    panels = figure.subplots(1, len(LEARNERS), sharey=True)
    errors = {}
    for ax, (name, learner) in zip(panels, LEARNERS.items(), strict=True):
        model = learner.fit(X, y)
        inside = float(np.mean(model.predict(X) != y))
        outside = risk(model, unseen, truth, loss="zero_one")
        errors[name] = (inside, outside.value)
        print(f"{name}: {inside:.4f} on its {len(y)} images; on {len(truth)} others {outside}")
        draw(ax, model, X, y)
        ax.set_title(f"{name}\nerror {100 * inside:.2f} %, on others {100 * outside.value:.2f} %", fontsize=10)
    panels[0].legend(loc="lower left")
    if picture is not None:
        figure.savefig(picture, dpi=110)
    return errors


if __name__ == "__main__":
    source, target = (*sys.argv[1:], "../shared/data/usps_zip/zip.npz", "digits.png")[:2]
    with np.load(source) as arrays:
        experiment(arrays, Path(target))
