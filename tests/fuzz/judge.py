"""What counts as a failure.

An error that nobody wrote for the user: neither ValueError nor TypeError, without words, or risen from the depths of a
library instead of a `raise` of ours. A prediction or a coefficient that is not a number. A certificate that proves nothing,
a fit that breaks its own constraint, a bound above what exact arithmetic reaches. The death of the process and a case that does
not end are noticed from outside, by `run`.
"""

from __future__ import annotations

import io
import tempfile
import traceback
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from tests.oracles.exact import Exact

from certifit.contest.tagging.model import read_corpus
from certifit.penalties import Box
from certifit.persistence import ModelFileError, inspect_file, load
from certifit.printable import brief

__all__ = [
    "check_fit",
    "check_model_file",
    "check_proof",
    "check_sequences",
    "check_table",
    "check_text",
    "failure",
]

SEEN = 1e-8  # of the objective of the best constant: what a certificate may be wrong by


def failure(code: str) -> str | None:
    """Run a case; None if all is well, otherwise what is wrong, beginning with a line that tells failures apart."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(code, "<case>", "exec"), {"__name__": "case"})
    except Exception as error:
        return None if _is_fine(error) else _told(error)
    return None


def _is_fine(error: Exception) -> bool:
    """Whether somebody meant the user to read it; or the case could not be set up, which says nothing of the library."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is `failure` itself
    if not any("/certifit/" in frame.filename or frame.filename == __file__ for frame in frames):
        return True
    last = frames[-1]
    raised = "/certifit/" in last.filename and (last.line or "").startswith("raise")
    meant = raised or "/sklearn/" in last.filename  # its gate lets NumPy say what it cannot convert
    kind = type(error) in (ValueError, TypeError, NotFittedError) or type(error).__module__.startswith("certifit.")
    return meant and kind and isinstance(error, (ValueError, TypeError)) and bool(str(error).strip())


def _told(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/certifit/" in frame.filename] or frames
    place = f"{Path(ours[-1].filename).name}:{ours[-1].name}"
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__} in {place}: {text}\n{traceback.format_exc()}"


def check_fit(model: Any, X: Any) -> None:
    """The fitted model says numbers, keeps its constraint, and is certified of nothing that is not one."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        if not hasattr(model, name) or (name == "transform" and _has_holes(X)):
            continue
        if getattr(model, "refit", True) is False:  # then there is no model, and asking for one is refused by name
            continue
        found = getattr(model, name)(X)
        values = found.data if sp.issparse(found) else np.asarray(found)
        assert found.shape[0] == n, f"{name} of {n} rows gives {found.shape[0]}"
        _check_numbers(values, name)
    for name in ("coef_", "intercept_", "feature_importances_"):
        try:
            values = getattr(model, name, None)
        except AttributeError:
            continue
        if isinstance(values, (np.ndarray, float)):
            _check_numbers(np.asarray(values), name)
    _check_certificate(model)


def check_sequences(model: Any, X: Any, **extra: Any) -> None:
    """One label a position, from a model whose certificate is of numbers."""
    said = model.predict(X, **extra)
    assert [len(one) for one in said] == [len(one) for one in X], "a label is missing, or there is one too many"
    if hasattr(model, "predict_marginals"):
        for one in model.predict_marginals(X, **extra):
            _check_numbers(np.asarray(one), "predict_marginals")
    _check_certificate(model)


def check_proof(model: Any, X: Any, y: Any, w: Any) -> None:
    """In sixty digits, the bound is below what can be reached, the objective is that of the coefficients that are given, and what
    is certified is as near to the optimum as was asked.

    Both up to the gap that is stated: numbers that rounding leaves uncertain have to say how much.
    """
    loss, penalty, alpha, _ = model._objective()
    alpha = 0.0 if penalty.name == "none" else alpha
    exact = Exact(X, y, w, loss, penalty, alpha, fit_intercept=model.fit_intercept)
    given, said = exact.objective(model.coef_, model.intercept_), model.certificate_
    unit = max(exact.constant(), Decimal("1e-15") * exact.objective(np.zeros(X.shape[1]), 0.0), Decimal("1e-300"))
    gap = said.relative_gap if np.isfinite(said.relative_gap) else np.inf
    off = abs(float((Decimal(said.objective) - given) / unit))
    assert off <= max(SEEN, gap), f"the objective is {off:.1e} of the scale off"
    if np.isfinite(said.bound):
        best = min(given, exact.better(model.coef_, model.intercept_))
        above = float((Decimal(said.bound) - best) / unit)
        assert above <= SEEN, f"the bound is {above:.1e} of the scale above the optimum"
        left = float((given - best) / unit)
        assert not said.certified or left <= max(SEEN, 1.01 * model.tol), f"certified at {left:.1e} from the optimum"


def _check_numbers(values: Any, name: str) -> None:
    if values.dtype.kind == "f":
        assert np.isfinite(values).all(), f"{name} gives {values[~np.isfinite(values)][0]}"


def _check_certificate(model: Any) -> None:
    certificate = getattr(model, "certificate_", None)
    if certificate is None or not certificate.certified:
        return
    assert np.isfinite(certificate.objective), f"certified with objective {certificate.objective}"
    assert certificate.gap >= 0, f"certified with gap {certificate.gap}"
    coef = np.asarray(getattr(model, "coef_", 0.0))
    if coef.dtype.kind == "f":
        _check_constraint(model, coef)


def _check_constraint(model: Any, coef: Any) -> None:
    scale = 1e-6 * float(np.abs(coef).max(initial=0.0))
    constraint = getattr(model, "constraint", None)
    if getattr(model, "positive", False) or constraint == "non_negative":
        assert coef.min(initial=0.0) >= -scale, f"certified with a coefficient of {coef.min()} below 0"
    if isinstance(constraint, Box):
        low, high = constraint.lower, constraint.upper
        assert (coef >= low - scale).all(), f"certified with a coefficient below its bound: {coef}"
        assert (coef <= high + scale).all(), f"certified with a coefficient above its bound: {coef}"


def _has_holes(X: Any) -> bool:
    try:
        values = X.data if sp.issparse(X) else np.asarray(X, dtype=float)
    except (TypeError, ValueError):
        return True
    return not bool(np.isfinite(values).all())


def _on_disk(data: bytes, suffix: str) -> Path:
    path = Path(tempfile.gettempdir()) / f"certifit-fuzz{suffix}"  # `run` gives each process a folder of its own
    path.write_bytes(data)
    return path


def _check_one_line(error: Exception) -> None:
    assert "\n" not in str(error), f"an error of several lines: {error!r}"


def check_model_file(data: bytes) -> None:
    """A file opens or is refused by the one error of files; what it makes may be wrong but does not end the process."""
    path = _on_disk(data, ".cfit")
    try:
        text = str(inspect_file(path))
        assert not (set(text) - {"\n"}) & set(map(chr, range(32))), "control characters in a description"
        model = load(path)
    except ModelFileError as error:
        _check_one_line(error)
        return
    assert len(brief(model)) < 100_000
    width = getattr(model, "n_features_in_", 5)
    X = np.zeros((3, width if type(width) is int and 0 < width < 100 else 5))
    for name in ("predict", "predict_proba", "transform"):
        try:
            getattr(model, name)(X)
        except Exception:  # the parts of a forged model need not fit together
            continue


def check_table(source: Any, target: str = "y", **options: Any) -> None:
    """A table is read, its columns are understood and new rows conform; or one line says why not."""
    from certifit.contest.table.reading import TableError
    from certifit.contest.table.table import Table

    def opened() -> Any:
        return io.BytesIO(bytes(source)) if isinstance(source, (bytes, bytearray)) else source

    try:
        table = Table.from_source(opened(), target, **options)
        assert table.features.height == len(table.y), "rows and targets differ in number"
        table.describe()
        table.schema.conform(opened())
    except TableError as error:
        _check_one_line(error)
        raise


def check_text(data: bytes, suffix: str) -> None:
    """Annotated text is read into columns of one shape, and its trees lead to words; or an error says where not."""
    corpus = read_corpus(_on_disk(data, suffix))
    shapes = {tuple(map(len, column)) for column in corpus.columns.values()}
    assert len(shapes) <= 1, "columns of different shapes"
    if "head" in corpus.columns:
        for parents in corpus.parents:
            assert all(-1 <= parent < len(parents) for parent in parents), "a head that is no word"
