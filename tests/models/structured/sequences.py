"""Small data for the tests of structured models."""

from __future__ import annotations

from typing import Any

import numpy as np

WORDS = ["the", "a", "Dog", "cat", "mouse", "sees", "chases", "eats", "red", "Old", "quickly", "never"]
TAGS = {"the": "D", "a": "D", "Dog": "N", "cat": "N", "mouse": "N", "sees": "V", "chases": "V", "eats": "V", "red": "A"}


def text(n: int = 40, seed: int = 0, noise: float = 0.1) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences of a small language, with a share of wrong labels."""
    rng = np.random.default_rng(seed)
    labels = ["A", "D", "N", "R", "V"]
    X, y = [], []
    for _ in range(n):
        words = [WORDS[k] for k in rng.integers(len(WORDS), size=int(rng.integers(1, 8)))]
        tags = [TAGS.get(word, "A" if word == "Old" else "R") for word in words]
        # What follows a determiner is a noun more often than its word says.
        for t in range(1, len(tags)):
            if tags[t - 1] == "D" and rng.random() < 0.3:
                tags[t] = "N"
        tags = [str(rng.choice(labels)) if rng.random() < noise else tag for tag in tags]
        X.append(words)
        y.append(tags)
    return X, y


def matrices(n: int = 30, d: int = 4, labels: int = 3, seed: int = 0) -> tuple[list[np.ndarray], list[list[int]]]:
    """Rows of numbers whose labels depend on them and on the label before."""
    rng = np.random.default_rng(seed)
    W, A = rng.normal(size=(d, labels)), rng.normal(size=(labels, labels))
    X, y = [], []
    for _ in range(n):
        rows = rng.normal(size=(int(rng.integers(1, 7)), d))
        path: list[int] = []
        for row in rows:
            scores = row @ W + (A[path[-1]] if path else 0.0) + rng.gumbel(size=labels)
            path.append(int(np.argmax(scores)))
        X.append(rows)
        y.append(path)
    return X, y


def trees(n: int = 30, seed: int = 0) -> tuple[list[list[str]], list[list[str]], list[list[int]]]:
    """The small language with a random tree over each sentence."""
    X, y = text(n, seed)
    rng = np.random.default_rng(seed + 1)
    parents = []
    for words in X:
        order = rng.permutation(len(words))
        parent = [-1] * len(words)
        for k in range(1, len(words)):
            parent[order[k]] = int(order[rng.integers(k)])
        parents.append(parent)
    return X, y, parents


def repeated(weight: Any, *lists: list[Any]) -> tuple[list[Any], ...]:
    """Each sequence as often as its weight says."""
    return tuple([one for one, times in zip(some, weight, strict=True) for _ in range(int(times))] for some in lists)
