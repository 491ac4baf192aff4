"""What is no model of tables and meets the same hardships: models of sequences and of texts, the page of an exploration, the
report of a contest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from tests.contest.report.samples import multiclass
from tests.contract.discovery import DOCUMENT_MODELS, SEQUENCE_MODELS, settings_of
from tests.exploration.tables import cloud
from tests.models.structured.sequences import trees

from certifit.contest.folder import write_text
from certifit.contest.report import render
from certifit.exploration import page
from certifit.exploration.exploration import explore
from certifit.persistence import save

__all__ = ["BESIDE", "Work"]

SHORT = {"max_iter": 20, "max_epochs": 2, "n_jobs": 2, "random_state": 0}
LONG = {**SHORT, "max_iter": 10**6, "max_epochs": 10**6, "tol": 1e-15}


@dataclass(frozen=True)
class Work:
    """Something made of data, what it says as numbers, and the file that keeps it."""

    data: Callable[[int], Any]
    made: Callable[[Any, dict[str, Any]], Any]
    said: Callable[[Any], NDArray[Any]]
    kept: Callable[[Any, Path], object]
    few: int = 24
    many: int = 30_000
    forks: bool = True  # whether it can be made in a child that was forked after another was made

    def small(self) -> Any:
        """One that is made at once."""
        return self.made(self.data(self.few), SHORT)


def _trees(n: int) -> tuple[list[Any], ...]:
    """Sequences, labels and parents, again and again: many are drawn as fast as few."""
    return tuple((part * (n // 24 + 1))[:n] for part in trees(24))


def _sentences(n: int) -> list[str]:
    return [" ".join(words) for words in _trees(n)[0]]


def _tagger(cls: Any, data: Any, settings: dict[str, Any]) -> Any:
    X, y, parents = data
    extra = {"parents": parents} if cls.__name__.startswith("Tree") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls(**settings_of(cls, settings)).fit(X, y, **extra)


def _parts(model: Any) -> NDArray[Any]:
    parts = [getattr(model, name) for name in ("coef_", "transition_") if hasattr(model, name)]
    return np.concatenate([np.ravel(part.toarray() if sp.issparse(part) else part) for part in parts])


def _letters(page: str) -> NDArray[Any]:
    return np.frombuffer(page.encode(), dtype=np.uint8)


BESIDE: dict[str, Work] = {
    **{cls.__name__: Work(_trees, partial(_tagger, cls), _parts, save) for cls in SEQUENCE_MODELS},
    **{
        cls.__name__: Work(
            _sentences,
            lambda texts, settings, cls=cls: cls().fit(texts),
            lambda model: model.transform(_sentences(20)).toarray(),
            save,
        )
        for cls in DOCUMENT_MODELS
    },
    "exploration": Work(
        lambda n: cloud()[:n],
        lambda table, settings: explore(table),
        lambda record: np.array([record["map"]["x"], record["map"]["y"]], dtype=float),
        lambda record, path: write_text(path, page.render(record)),
        few=60,
        forks=False,
    ),
    "report": Work(
        lambda n: n,
        lambda n, settings: multiclass(n=1500),
        lambda record: _letters(render(record)),
        lambda record, path: write_text(path, render(record)),
    ),
}
