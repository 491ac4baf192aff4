"""The contract of models of sequences: what tests/contract asks of models of tables, asked of lists of sequences."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.contract.discovery import SEQUENCE_MODELS, settings_of
from tests.models.structured.sequences import repeated, text, trees

from certifit.parameters import parameters_of
from certifit.persistence import inspect_file, load, save

ROOT = Path(__file__).resolve().parents[3]
MODELS = pytest.mark.parametrize("cls", SEQUENCE_MODELS, ids=lambda cls: cls.__name__)
PRECISE = {"tol": 1e-9, "max_iter": 5000, "max_epochs": 3000, "alpha": 0.05}


def options(cls: Any, **wanted: Any) -> dict[str, Any]:
    """Those of the parameters that the class has."""
    return settings_of(cls, wanted)


def make(cls: Any, n: int = 24, seed: int = 0) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Sequences, labels, and what else `fit` needs."""
    return shaped(cls, *trees(n, seed))


def shaped(cls: Any, X: list[Any], y: list[Any], parents: list[Any]) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Trees as a class takes them: with the parents, or as sequences."""
    return X, y, {"parents": parents} if cls.__name__.startswith("Tree") else {}


def subset(extra: dict[str, Any], index: Any) -> dict[str, Any]:
    return {name: [value[i] for i in index] for name, value in extra.items()}


def fit(cls: Any, X: Any, y: Any, extra: dict[str, Any], sample_weight: Any = None, **wanted: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls(**options(cls, **wanted)).fit(X, y, sample_weight, **extra)


def outputs(model: Any, X: Any, extra: dict[str, Any]) -> np.ndarray:
    """All that a model says, as numbers."""
    if hasattr(model, "predict_marginals"):
        return np.concatenate(model.predict_marginals(X, **extra))
    return np.concatenate([np.asarray(model.coef_).ravel(), model.transition_.ravel()])


def test_there_are_models_of_sequences() -> None:
    assert {cls.__name__ for cls in SEQUENCE_MODELS} >= {"LinearChainCRF", "TreeCRF"}


DRAWS = [cls for cls in SEQUENCE_MODELS if "random_state" in parameters_of(cls) and "alpha" not in parameters_of(cls)]


@MODELS
def test_a_weight_counts_repetitions(cls: Any) -> None:
    X, y, extra = make(cls)
    weight = np.random.default_rng(0).integers(0, 3, size=len(X))
    index = [i for i in range(len(X)) for _ in range(weight[i])]
    weighted = fit(cls, X, y, extra, weight.astype(float), **PRECISE)
    if cls in DRAWS:  # visits in another order: compared by what was learned of the training data
        Xr, yr = repeated(weight, X, y)
        other = fit(cls, Xr, yr, subset(extra, index), **PRECISE)
        assert weighted.score(X, y, weight) == pytest.approx(other.score(X, y, weight), abs=0.06)
        return
    again = fit(cls, *repeated(weight, X, y), subset(extra, index), **PRECISE)
    # The objectives are strongly convex: a certificate says how far from the only optimum the weights can be.
    apart = sum(np.sqrt(2.0 * model.certificate_.gap / PRECISE["alpha"]) for model in (weighted, again))
    np.testing.assert_allclose(outputs(weighted, X, extra), outputs(again, X, extra), atol=1e-9 + apart)
    assert weighted.certificate_.objective == pytest.approx(again.certificate_.objective, rel=1e-3)


@MODELS
def test_weight_zero_drops_the_sequence(cls: Any) -> None:
    X, y, extra = make(cls)
    kept = list(range(2, len(X)))
    spoiled = [["spoiled"] * len(X[0]), ["wrong"] * len(X[1]), *X[2:]]
    labels = [["?"] * len(y[0]), ["!"] * len(y[1]), *y[2:]]
    weight = np.r_[0.0, 0.0, np.ones(len(kept))]
    dropped = fit(cls, X[2:], y[2:], subset(extra, kept), random_state=0)
    weighted = fit(cls, spoiled, labels, extra, weight, random_state=0)
    assert weighted.classes_.tolist() == dropped.classes_.tolist()
    np.testing.assert_array_equal(
        outputs(weighted, X[2:], subset(extra, kept)), outputs(dropped, X[2:], subset(extra, kept))
    )


@MODELS
def test_threads_change_nothing(cls: Any) -> None:
    X, y, extra = make(cls, 40)
    one, many = (fit(cls, X, y, extra, random_state=0, n_jobs=jobs) for jobs in (1, 3))
    np.testing.assert_array_equal(outputs(one, X, extra), outputs(many, X, extra))
    assert one.predict(X, **extra) == many.predict(X, **extra)


@MODELS
@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (lambda n: np.full(n, np.nan), "sample_weight.*NaN"),
        (lambda n: -np.ones(n), "sample_weight"),
        (lambda n: np.zeros(n), "sample_weight.*zero"),
        (lambda n: np.ones(n - 1), "sample_weight"),
        (lambda n: ["a"] * n, "sample_weight"),
    ],
    ids=["nan", "negative", "zero", "short", "text"],
)
def test_bad_weights_are_named(cls: Any, weight: Any, match: str) -> None:
    X, y, extra = make(cls)
    with pytest.raises((ValueError, TypeError), match=match):
        cls().fit(X, y, weight(len(X)), **extra)


BAD = {
    "empty sequence": (lambda X, y: ([[], *X[1:]], y), r"X\[0\] is an empty sequence"),
    "no sequences": (lambda X, y: ([], []), "X is empty"),
    "labels missing": (lambda X, y: (X, [y[0], y[1][:-1], *y[2:]]), r"X\[1\] has \d+ positions, y\[1\] has"),
    "sequences missing": (lambda X, y: (X, y[:-1]), "sequences, y has"),
    "text for a sequence": (lambda X, y: (["a b", *X[1:]], y), r"X\[0\] is the text"),
    "text for X": (lambda X, y: ("a b", y), "X must be a list"),
    "no labels": (lambda X, y: (X, None), "y must be"),
    "text for labels": (lambda X, y: (X, ["N" * len(X[0]), *y[1:]]), r"y\[0\] must be a list"),
    "None as a label": (lambda X, y: (X, [[None] * len(y[0]), *y[1:]]), "y must hold"),
    "mixed labels": (lambda X, y: (X, [[1] * len(y[0]), *y[1:]]), "y mixes"),
    "one label": (lambda X, y: (X, [["N"] * len(one) for one in y]), "at least 2 labels"),
    "numbers for tokens": (lambda X, y: ([[None] * len(one) for one in X], y), r"X"),
}


@MODELS
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(cls: Any, name: str) -> None:
    X, y, extra = make(cls)
    spoil, match = BAD[name]
    with pytest.raises((ValueError, TypeError), match=match):
        cls().fit(*spoil(X, y), **extra)


@MODELS
def test_bad_input_of_predictions_is_named(cls: Any) -> None:
    X, y, extra = make(cls)
    with pytest.raises(NotFittedError):
        cls().predict(X, **extra)
    model = fit(cls, X, y, extra)
    some = subset(extra, [0])
    with pytest.raises(ValueError, match="empty sequence"):
        model.predict([[]], **some)
    if hasattr(model, "log_likelihood"):
        with pytest.raises(ValueError, match="not seen at training: 'new'"):
            model.log_likelihood([["the"]], [["new"]], **({"parents": [[-1]]} if extra else {}))
    with pytest.raises((ValueError, TypeError), match="X"):
        model.predict([[1.5]], **({"parents": [[-1]]} if extra else {}))


@MODELS
def test_sequences_of_length_one_and_unknown_words(cls: Any) -> None:
    X, y, extra = make(cls)
    model = fit(cls, X, y, extra)
    new = {"parents": [[-1], [-1, 0]]} if extra else {}
    found = model.predict([["unheard"], ["of", "the"]], **new)
    assert [len(labels) for labels in found] == [1, 2]
    assert {label for labels in found for label in labels} <= set(model.classes_.tolist())


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        pytest.param(cls, name, value, id=f"{cls.__name__}-{name}-{value!r}")
        for cls in SEQUENCE_MODELS
        for name, declared in parameters_of(cls).items()
        for value in declared.domain.nonsense()
    ],
)
def test_nonsense_is_refused_by_name(cls: Any, name: str, value: Any) -> None:
    X, y, extra = make(cls, 3)
    with pytest.raises((ValueError, TypeError), match=name):
        cls(**{name: value}).fit(X, y, **extra)


@MODELS
def test_the_constructor_keeps_what_it_is_given(cls: Any) -> None:
    model = cls()
    assert clone(model).get_params() == model.get_params()
    assert set(parameters_of(cls)) == set(model.get_params())
    assert "Parameters\n" in cls.__doc__
    X, y, extra = make(cls)
    before = model.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, **extra)
    assert model.get_params() == before


@MODELS
def test_round_trip_through_a_file(cls: Any, tmp_path: Path) -> None:
    X, y, extra = make(cls)
    model = fit(cls, X, y, extra, random_state=0)
    before = outputs(model, X, extra)
    path = save(model, tmp_path / "model.cfit")
    twin = load(path)
    np.testing.assert_array_equal(outputs(twin, X, extra), before)
    assert twin.predict(X, **extra) == model.predict(X, **extra)
    assert twin.certificate_ == model.certificate_
    assert save(twin, tmp_path / "again.cfit").read_bytes() == path.read_bytes()
    found = inspect_file(path)
    assert found.fitted
    assert found.classes == model.classes_.tolist()


@MODELS
def test_fitting_twice_gives_the_same(cls: Any) -> None:
    X, y, extra = make(cls)
    one, other = (fit(cls, X, y, extra, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(outputs(one, X, extra), outputs(other, X, extra))


@MODELS
def test_numbers_as_labels_come_back_as_numbers(cls: Any) -> None:
    X, y, extra = make(cls)
    numbers = [[len(label) + ord(label[0]) for label in labels] for labels in y]
    model = fit(cls, X, numbers, extra)
    assert {type(label) for labels in model.predict(X, **extra) for label in labels} == {int}


SCRIPT = """
import signal, sys, time, warnings
sys.path.insert(0, {root!r})
import certifit
from tests.contract.input import test_sequences as contract
warnings.simplefilter("ignore")
rang = []
def ring(number, frame):
    rang.append(time.process_time())
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, ring)
many = contract.trees(1500, 0)
for name in {names!r}:
    cls = getattr(certifit, name)
    X, y, extra = contract.shaped(cls, *many)
    wall = None
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    started = time.perf_counter()
    try:
        while time.perf_counter() - started < 30:
            contract.fit(cls, X, y, extra, tol=1e-15, max_iter=10**6, max_epochs=10**6, alpha=1e-6)
    except KeyboardInterrupt:
        wall = time.process_time() - rang[-1]
    small = contract.make(cls)
    model = contract.fit(cls, *small)
    print(name, wall, len(model.predict(small[0], **small[2])), flush=True)
"""


def test_ctrl_c_stops_every_fit_within_a_second() -> None:
    names = [cls.__name__ for cls in SEQUENCE_MODELS]
    code = SCRIPT.format(root=str(ROOT), names=names)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, cwd=ROOT, check=False
    )
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert set(lines) == set(names), done.stderr[-2000:]
    for name, line in lines.items():
        busy, sequences = line.split()
        assert float(busy) < 1.0, name
        assert sequences == "24"


def test_labels_of_text_are_text() -> None:
    X, y = text(10)
    found = SEQUENCE_MODELS[0]().fit(X, y).predict(X) if SEQUENCE_MODELS[0].__name__ != "TreeCRF" else [["a"]]
    assert all(isinstance(label, str) for labels in found for label in labels)
