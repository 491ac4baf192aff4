"""Fits of every public estimator: parameters from their declarations; rows, targets and weights of every bad kind."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from tests.contract.discovery import ESTIMATORS, SEQUENCE_MODELS, Case, variants
from tests.fuzz.mutation import chosen

from certifit.optimization.objective.dispatch import SOLVERS
from certifit.parameters import parameters_of
from certifit.parameters.domains import (
    Any_,
    Choice,
    Domain,
    Either,
    Flag,
    Folds,
    Integer,
    Named,
    Nothing,
    Real,
    Reals,
    Seed,
    Threads,
)

__all__ = [
    "KINDS",
    "ROWS",
    "SPARSE",
    "WEIGHTS",
    "argument",
    "arguments_of",
    "code",
    "drawn",
    "sequences",
    "targets_of",
    "written",
]

HEAD = """import numpy as np
import scipy.sparse as sp
from numpy import array, inf
import certifit as cf
from certifit.losses import *
from certifit.penalties import *
from tests.models.structured.sequences import trees
from tests.fuzz.judge import check_fit, check_sequences"""
COSTLY = dict.fromkeys(("n_estimators", "max_iter", "n_members", "centers", "n_folds", "max_bins", "n_knots"), 4)
COSTLY["degree"] = 2
"""Parameters that only cost time or memory when they are large, and how far above the least they go."""

ROWS = [
    "X[:, 0] = 3.0",
    "X = np.zeros_like(X)",
    "X = X[np.zeros(len(X), dtype=int)]",
    "X[:, -1] = X[:, 0]",
    "X = np.round(X)",
    "X *= 1e150",
    "X *= 1e-150",
    "X *= 1e-300",
    "X *= 1e30",
    "X[0] *= 1e6",
    "X[:, 0] *= 1e12",
    "X += 1e9",
    "X[0, 0] = np.nan",
    "X[:, 0] = np.nan",
    "X[0, 0] = np.inf",
    "X[rng.random(X.shape) < 0.3] = np.nan",
    "X = np.abs(X) + 0.1",
    "X[rng.random(X.shape) < 0.7] = 0.0",
]
KINDS = [
    "X = X.astype(np.float32)",
    "X = np.rint(X).astype(int)",
    "X = np.rint(np.abs(X)).astype(np.uint8)",
    "X = X > 0",
    "X = X.astype(object)",
    "X = X.astype(object); X[0, 0] = 'text'",
    "X = X.tolist()",
    "X = np.asfortranarray(X)[::-1]",
    "X = X[0]",
    "X = X[:0]",
    "X = X[:, :0]",
    "X = X.astype(complex)",
    "import pandas as pd; X = pd.DataFrame(X)",
    "import polars as pl; X = pl.DataFrame(X)",
    "import pandas as pd; X = pd.DataFrame(X).assign(word='a')",
]
SPARSE = [
    "X = sp.csr_array(X)",
    "X = sp.csc_matrix(X)",
    "X = sp.coo_array(X)",
    "X = sp.csr_array(X); X.indices[:1] = 10**6",
    "X = sp.csc_array(X); X.indices[:1] = -10**6",
    "X = sp.csr_array(X); X.indptr[-1] += 9",
    "X = sp.csr_array(X.astype(np.float32))",
    "X = sp.csr_array(X); X.indices = X.indices[::-1].copy()",
    "X = sp.csr_array(X.shape)",
]
TARGETS = ["rng.normal(size=n)", "np.exp(rng.normal(size=n))", "rng.poisson(2.0, size=n)"]
VALUES = [
    "y = np.full(n, 2.5)",
    "y = np.zeros(n)",
    "y *= 1e150",
    "y *= 1e-170",
    "y *= 3e38",
    "y = 1e9 + y",
    "y[0] = np.nan",
    "y[0] = np.inf",
    "y[0] = 1e8",
    "y = np.rint(np.exp(y))",
    "y = np.exp(y)",
    "y = y.astype(np.float32)",
    "y = y > 0",
    "y = y.astype(str)",
    "y = y[:-1]",
    "y = np.column_stack([y, y])",
    "y = y.tolist()",
]
LABELS = [
    "y = np.zeros(n, dtype=int)",
    "y = np.where(np.arange(n) == 0, 1, 0)",
    "y = np.array(['no', 'yes', 'perhaps'])[y % 3]",
    "y = np.array(['no', 'yes', 'perhaps'], dtype=object)[y % 3]",
    "y = (y > 0)",
    "y = y.astype(float)",
    "y = y - 1",
    "y = 10**15 * y",
    "y = y.astype(float); y[0] = np.nan",
    "y = np.arange(n) % 12",
    "y = y[:-1]",
    "y = y + 0.5",
]
WEIGHTS = [
    "w = np.ones(n)",
    "w = rng.random(n)",
    "w = rng.integers(0, 3, size=n)",
    "w = np.where(np.arange(n) < n // 2, 0.0, 1.0)",
    "w = np.where(np.arange(n) == 0, 1.0, 0.0)",
    "w = np.full(n, 1e9)",
    "w = np.full(n, 1e10)",
    "w = np.full(n, 1e300)",
    "w = np.full(n, 1e-300)",
    "w = np.where(np.arange(n) == 0, 1e-18, 1.0)",
    "w = 10.0 ** rng.uniform(-20, 20, size=n)",
    "w = -np.ones(n)",
    "w = np.where(np.arange(n) == 0, np.nan, 1.0)",
    "w = np.zeros(n)",
    "w = np.ones(n - 1)",
    "w = 2.0",
    "w = np.ones(n).tolist()",
    "w = np.ones((n, 1))",
]


SENTENCES = [
    "X = []; y = []; parents = []",
    "X[0] = []; y[0] = []; parents[0] = []",
    "X[0] = X[0][:-1]",
    "y[0] = y[0] + y[0]",
    "X[0] = None",
    "X[0] = [None] * len(X[0])",
    "X[0] = 'text'",
    "X[0] = [np.nan] * len(X[0])",
    "X = [[{'a': 1e300, 'b': -1e300} for _ in x] for x in X]",
    "X = [[{'a': np.nan} for _ in x] for x in X]",
    "X = [[{'a': 1e-300} for _ in x] for x in X]",
    "X = [[i for i, _ in enumerate(x)] for x in X]",
    "X = [np.full((len(x), 2), 1e150) for x in X]",
    "X = [np.zeros((len(x), 2)) for x in X]",
    "X = [np.full((len(x), 2), np.inf) for x in X]",
    "X = [['same'] * len(x) for x in X]",
    "y = [['one'] * len(x) for x in X]",
    "y = [[0.5] * len(x) for x in X]",
    "y = [[None] * len(x) for x in X]",
    "y = [[str(i) for i, _ in enumerate(x)] for x in X]",
    "y[0] = None",
    "y = y[:-1]",
    "parents = [[0] * len(x) for x in X]",
    "parents[0] = [10**9] * len(X[0])",
]


def code(rng: np.random.Generator) -> str:
    """A case: a few lines that make data, build an estimator, fit it and look at what it says."""
    return drawn(rng, chosen(rng, ESTIMATORS), chosen(rng, [1, 2, 3, 5, 12, 40, 60]), chosen(rng, [1, 2, 3, 5, 12, 80]))


def drawn(rng: np.random.Generator, cls: Any, n: int, d: int) -> str:
    """A case of an estimator on n rows of d columns: a few bad things of each sort, as they come."""
    case = Case(cls, chosen(rng, variants(cls)))
    rows = [chosen(rng, ROWS) for _ in range(chosen(rng, [0, 0, 1, 1, 2]))]
    rows += [chosen(rng, chosen(rng, [KINDS, SPARSE]))] if rng.random() < 0.35 else []
    values = targets_of(case)
    values = [chosen(rng, values)] if values and rng.random() < 0.4 else []
    weights = [chosen(rng, WEIGHTS)] if rng.random() < 0.5 else []
    return written(rng, case, n, d, rows, values, weights, _arguments(cls, rng))


def targets_of(case: Case) -> list[str]:
    """What can be wrong with the target of an estimator; nothing where it takes none."""
    estimator = case.build()
    if is_classifier(estimator):
        return LABELS
    return VALUES if is_regressor(estimator) or case.supervised else []


def written(
    rng: np.random.Generator,
    case: Case,
    n: int,
    d: int,
    rows: Sequence[str],
    values: Sequence[str],
    weights: Sequence[str],
    arguments: Mapping[str, str],
) -> str:
    """A case as its lines: n rows of d columns and what is wrong with them, the target, the weights, the estimator."""
    lines = [HEAD, f"rng = np.random.default_rng({int(rng.integers(2**31))})", f"n = {n}"]
    lines += [f"X = rng.normal(size=(n, {d}))", *rows]
    known = targets_of(case)
    if known is LABELS:
        lines += [f"y = rng.integers({chosen(rng, [1, 2, 2, 3, 5])}, size=n)", *values]
    elif known:
        lines += [f"y = 1.0 * {chosen(rng, TARGETS)}", *values]
    else:
        lines.append("y = None")
    if case.takes_weights:
        lines += weights or ["w = None"]
    lines += _built(case, arguments)
    lines.append(f"model.fit(X, y{', sample_weight=w' if case.takes_weights else ''})")
    lines.append("check_fit(model, X)")
    return "\n".join(lines) + "\n"


def sequences(rng: np.random.Generator) -> str:
    """A case: sentences, labels and trees with something wrong, a model of sequences, and what it says."""
    cls = chosen(rng, SEQUENCE_MODELS)
    tree = ", parents=parents" if "parents" in inspect.signature(cls.fit).parameters else ""
    lines = [HEAD, f"rng = np.random.default_rng({int(rng.integers(2**31))})"]
    lines.append(f"X, y, parents = trees({chosen(rng, [1, 2, 20])}, {int(rng.integers(1000))})")
    lines += [chosen(rng, SENTENCES) for _ in range(chosen(rng, [0, 1, 1, 2]))]
    lines += ["n = len(X)", chosen(rng, WEIGHTS) if rng.random() < 0.5 else "w = None"]
    lines += _built(Case(cls), _arguments(cls, rng))
    lines.append(f"model.fit(X, y, sample_weight=w{tree})")
    lines.append(f"check_sequences(model, X{tree})")
    return "\n".join(lines) + "\n"


def _built(case: Case, arguments: Mapping[str, str]) -> list[str]:
    """The estimator, then its parameters one by one, each in a line that can be left out."""
    given = ", ".join(f"{name}={value!r}" for name, value in case.params.items())
    lines = [f"model = cf.{case.cls.__name__}({given})"]
    return lines + [f"model.set_params({name}={value})" for name, value in {**_always(case.cls), **arguments}.items()]


def _always(cls: Any) -> dict[str, str]:
    """What every case says: a seed, and how much time there is; a search for the best of all may take days, and is right to."""
    given = {"random_state": "0", "time_limit": "0.5"}
    return {name: value for name, value in given.items() if name in parameters_of(cls)}


def _arguments(cls: Any, rng: np.random.Generator) -> dict[str, str]:
    """Values within the declared domains, as text; a few parameters at a time."""
    asked = [name for name in arguments_of(cls) if rng.random() < 0.2]
    found = {name: argument(cls, name, rng) for name in asked}
    return {name: text for name, text in found.items() if text is not None}


def arguments_of(cls: Any) -> list[str]:
    """The parameters that a case may choose."""
    return [name for name in parameters_of(cls) if name not in ("random_state", "time_limit", "verbose")]


def argument(cls: Any, name: str, rng: np.random.Generator) -> str | None:
    """A value of a parameter within its declared domain, as text; None where only the data could say what it may be."""
    return _drawn(parameters_of(cls)[name].domain, rng, name)


def _drawn(domain: Domain, rng: np.random.Generator, name: str) -> str | None:
    """A value of the domain, as text; None where only the data could say what it may be."""
    if isinstance(domain, Either):
        return _drawn(chosen(rng, list(domain.parts)), rng, name)
    if isinstance(domain, Flag):
        return chosen(rng, ["True", "False"])
    if isinstance(domain, Nothing):
        return "None"
    if isinstance(domain, Choice):
        return repr(chosen(rng, list(domain.names)))
    if isinstance(domain, Real):
        return _real(domain, rng)
    if isinstance(domain, Integer):
        low = int(domain.low) if np.isfinite(domain.low) else 0
        most = low + COSTLY.get(name, 20)
        return repr(int(rng.integers(low, int(min(most, domain.high)) + 1)))
    if isinstance(domain, Reals):
        one = Real(domain.low, domain.high, domain.open_low)
        return f"[{', '.join(_real(one, rng) for _ in range(chosen(rng, [1, 2, 3])))}]"
    if isinstance(domain, (Seed, Threads)):
        return chosen(rng, ["1", "2", "None"])
    if isinstance(domain, Folds):
        return chosen(rng, ["2", "3"])
    if isinstance(domain, Named) and domain.registry:
        return repr(chosen(rng, sorted(domain.registry)))
    if isinstance(domain, Any_) and name == "solver":
        return repr(chosen(rng, sorted(SOLVERS)))
    if isinstance(domain, Any_) and name == "class_weight":
        return chosen(rng, ["None", "'balanced'", "{0: 1.0, 1: 1e-9}", "{0: 0.0, 1: 1.0}"])
    return None


def _real(domain: Real, rng: np.random.Generator) -> str:
    values = (0.0, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1.0, 1.5, 2.0, 100.0, 1e8, 1e150, domain.low, domain.high)
    inside = [float(value) for value in values if domain.refuses(float(value)) is None]
    return repr(chosen(rng, inside or [float(domain.low) + 0.5]))
