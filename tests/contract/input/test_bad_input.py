"""Bad input gets an error that names the argument; never a crash, never a silent NaN."""

from __future__ import annotations

import functools
import re
import time
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import get_tags
from tests.contract.data import FEW, D, N, features, fit, make, output, reference, targets, unbothered
from tests.contract.discovery import ONE_EACH, Case, parametrize
from tests.contract.input.nonsense import attempts, is_told

from certifit.losses import LOSSES
from certifit.optimization.objective.dispatch import SOLVERS
from certifit.parameters import parameters_of
from certifit.penalties import PENALTIES

EVERY = parametrize()
ONE = parametrize(one_each=True)
SUPERVISED = parametrize(lambda case: case.supervised, one_each=True)
REFUSED = (ValueError, TypeError)
# Parts that are given by name, and who knows the names: a new one is under this test at once.
REGISTRIES: dict[str, list[str]] = {"loss": list(LOSSES), "penalty": list(PENALTIES), "solver": ["auto", *SOLVERS]}
LONG = 20_000


@ONE
def test_a_bad_parameter_is_named(case: Case) -> None:
    X, y = make(case)
    for name, value in attempts(case):
        estimator = case.build(**{name: value})
        with pytest.raises(REFUSED) as caught:
            fit(estimator, X, y)
        message = str(caught.value)
        assert re.search(rf"\b{name}\b", message), f"the argument {name} is not named: {message}"
        assert is_told(value, message), f"what was found, {value!r}, is not told: {message}"
        assert re.search(r"\b(must|names?|needs?|contains|expected|one of|every)\b", message, re.IGNORECASE), message


@ONE
def test_a_bad_parameter_is_refused_before_long_work(case: Case) -> None:
    """Processor time on many rows: reading them is paid, learning from them is not."""
    X, y = make(case, n=LONG)
    for name, value in attempts(case):
        estimator = case.build(**{name: value})
        started = time.process_time()
        with pytest.raises(REFUSED):
            fit(estimator, X, y)
        assert time.process_time() - started < 0.3, f"{name}={value!r}"


@ONE
def test_every_parameter_is_declared_and_has_its_nonsense(case: Case) -> None:
    tried = {name for name, _ in attempts(case)}
    assert tried == set(case.build().get_params(deep=False)) == set(parameters_of(case.cls))


def documented_names(case: Case, name: str) -> set[str]:
    """Names in quotes on the line that documents a parameter."""
    line = re.search(rf"^ *{name} : (.*)$", case.cls.__doc__ or "", re.MULTILINE)
    return set(re.findall(r'"([^"]+)"', line[1])) if line else set()


@functools.cache
def refusal(case: Case, name: str, value: str) -> str:
    """What fit says about a name, or nothing."""
    X, y = make(case)
    try:
        with unbothered():
            fit(case.build(**{"random_state": 0, **FEW, name: value}), X, y)
    except REFUSED as error:
        return str(error)
    return ""


NAMED = [
    pytest.param(case, name, id=f"{case}-{name}")
    for case in ONE_EACH
    for name, default in case.build().get_params(deep=False).items()
    if isinstance(default, str) or name in REGISTRIES or documented_names(case, name)
]


@pytest.mark.parametrize(("case", "name"), NAMED)
def test_an_unknown_name_lists_all_the_known_ones(case: Case, name: str) -> None:
    message = refusal(case, name, "no such")
    assert re.search(rf"\b{name}\b.*got 'no such'", message), message
    listed = set(re.findall(r"'([^']+)'", message)) - {"no such"}
    registered = {known for known in REGISTRIES.get(name, []) if not refusal(case, name, known)}
    assert documented_names(case, name) | registered <= listed
    # What the message offers is taken, or refused for a reason of its own.
    for offer in listed:
        assert message.replace("no such", offer) != refusal(case, name, offer)


NOT_FINITE = {np.nan: "NaN", np.inf: "infinity", -np.inf: "infinity"}


@parametrize(bad=list(NOT_FINITE))
def test_missing_or_infinite_features(case: Case, bad: float) -> None:
    one, word = reference(case), NOT_FINITE[bad]
    y, spoiled = one.y, one.X.copy()
    spoiled[3, 2] = bad
    if np.isnan(bad) and case.allows_missing:
        with unbothered():
            assert np.isfinite(output(fit(case.build(random_state=0), spoiled, y), spoiled)).all()
        return
    with pytest.raises(ValueError, match=rf"X\b.*{word}.*column.*2"):
        fit(case.build(), spoiled, y)
    with pytest.raises(ValueError, match=rf"X\b.*{word}"):
        output(one.model, spoiled)


@ONE
def test_wrong_x_is_refused(case: Case) -> None:
    """The gate's own tests try everything; here every estimator is seen to stand behind it."""
    X, y = make(case)
    for shape in ((0, D), (N, 0), (N,), (N, D, 2), ()):
        target = y if y is None or (shape and shape[0] > 0) else y[: shape[0] if shape else 1]
        with pytest.raises(REFUSED, match=r"(?i)sample|feature|dim|array|shape"):
            fit(case.build(), np.ones(shape), target)
    with pytest.raises(REFUSED, match=r"(?i)complex"):
        fit(case.build(), X + 1j, y)


@SUPERVISED
def test_wrong_y_is_refused(case: Case) -> None:
    X, y = make(case)
    assert y is not None
    for length in (0, N - 1, N + 1):
        with pytest.raises(ValueError, match=r"(?i)samples|rows|length|empty"):
            fit(case.build(), X, np.resize(y, length))
    with pytest.raises(REFUSED, match=r"\by\b"):
        fit(case.build(), X, None)
    tags = get_tags(case.build())
    if not tags.target_tags.multi_output:
        labels = tags.classifier_tags is not None and tags.classifier_tags.multi_label
        with pytest.raises(ValueError, match=r"\by\b"):  # columns of labels hold 0 and 1
            fit(case.build(), X, np.column_stack([y, y]) * (2 if labels else 1))
    for bad, word in NOT_FINITE.items():
        spoiled = y.astype(float)
        spoiled[4] = bad
        with pytest.raises(ValueError, match=rf"y\b.*{word}"):
            fit(case.build(), X, spoiled)
    if is_regressor(case.build()):
        with pytest.raises(REFUSED, match=r"\by\b"):
            fit(case.build(), X, np.array(["a", "b"] * N)[:N])


@parametrize(lambda case: not get_tags(case.build()).input_tags.string, one_each=True)
def test_text_in_a_column_is_named(case: Case) -> None:
    one = reference(case)
    for dtype in (object, str):
        spoiled = one.X.astype(dtype)
        spoiled[:, 3] = "red"
        with pytest.raises(REFUSED, match=r"(?s)X.*\b3\b"):
            fit(case.build(), spoiled, one.y)
        with pytest.raises(REFUSED, match=r"(?s)X.*\b3\b"):
            output(one.model, spoiled)


@EVERY
def test_objects_that_are_numbers_are_numbers(case: Case) -> None:
    wanted = reference(case)
    with unbothered():
        model = fit(case.build(random_state=0), wanted.X.astype(object), wanted.y)
    np.testing.assert_allclose(output(model, wanted.X), wanted.output, rtol=1e-9)


DEGENERATE: dict[str, Any] = {
    "one row": lambda X: X[:1],
    "two rows": lambda X: X[:2],
    "fewer rows than columns": lambda X: X[:3],
    "as many rows as columns": lambda X: X[:D],
    "one column": lambda X: X[:, :1],
    "constant columns": lambda X: np.where(np.arange(D) % 2 == 0, 1.5, X),
    "all constant": lambda X: np.full_like(X, 2.0),
    "all zero": lambda X: np.zeros_like(X),
    "duplicate columns": lambda X: X[:, [0, 0, 1, 1, 2]],
    "duplicate rows": lambda X: np.repeat(X[:12], 5, axis=0),
    "dependent columns": lambda X: np.column_stack([X[:, :3], X[:, 0] + X[:, 1], X[:, 2] * 2]),
    "nearly dependent columns": lambda X: np.column_stack([X[:, :4], X[:, 0] + 1e-9 * X[:, 4]]),
    "an outlier": lambda X: np.where(np.arange(len(X))[:, None] == 0, 1e6 * X, X),
    "far from zero": lambda X: X + 1e8,
}


def assert_finite_or_refused(case: Case, X: Any, y: Any) -> Any:
    """A clear refusal, or a model whose output is finite on its own rows."""
    refusal, model = "", None
    try:
        with unbothered():
            # Enough to see what becomes of such rows: not every solver is quick on them, and all say how far they came.
            model = fit(case.build(random_state=0, max_epochs=50, max_iter=100), X, y)
    except REFUSED as error:
        refusal = str(error)
    values = None
    if model is not None:
        try:
            values = output(model, X)
        except REFUSED as error:  # what overflows only when applied is refused then
            refusal = str(error)
    if values is None:
        assert re.search(r"\b(X|y|cv|rows?|columns?|samples?|features?|class(es)?)\b", refusal), refusal
        return None
    assert np.isfinite(values).all()
    if hasattr(model, "certificate_"):
        certificate = model.certificate_
        assert not np.isnan([certificate.objective, certificate.gap, certificate.relative_gap]).any()
        assert np.isfinite(certificate.objective)
    return model


@parametrize(kind=list(DEGENERATE))
def test_degenerate_features(case: Case, kind: str) -> None:
    full = features(case)
    X = DEGENERATE[kind](full)
    y = targets(case, full[:, : X.shape[1]])
    y = None if y is None else (np.repeat(y[:12], 5) if kind == "duplicate rows" else y[: len(X)])
    model = assert_finite_or_refused(case, X, y)
    if case.takes_codes and not (np.floor(X) == X).all():
        assert model is None, "fractions are no codes"
        return
    if case.takes_codes and kind == "far from zero":
        return  # codes are numbered from 0
    if kind not in ("one row", "two rows", "fewer rows than columns", "as many rows as columns", "all zero"):
        assert model is not None, "such data are ordinary"


@parametrize(shape=[(12, 20), (16, 17), (3, 50)])
def test_more_columns_than_rows(case: Case, shape: tuple[int, int]) -> None:
    """Such data are ordinary: no refusal, and a finite answer."""
    X = features(case, *shape)
    y = targets(case, X)
    with unbothered():
        model = fit(case.build(random_state=0, max_epochs=50), X, y)
    assert np.isfinite(output(model, X)).all()


@parametrize(lambda case: is_classifier(case.build()), one_each=True, label=[0, 1, 7, -2.0, "only", True])
def test_one_class(case: Case, label: Any) -> None:
    """A refusal that says so, or a model that knows this class alone; also when the others have weight zero."""
    X, y = make(case)
    assert y is not None
    other = "other" if isinstance(label, str) else 3
    given: list[tuple[Any, Any]] = [(np.full(N, label), None)]
    if case.takes_weights:
        given.append((np.where(y == 0, other, label), (y != 0).astype(float)))
    for target, weight in given:
        model, told = case.build(random_state=0), ""
        try:
            with unbothered():
                fit(model, X, target, weight)
        except ValueError as error:
            told = str(error)
        if told:
            assert re.search(r"(?i)\bclass\b", told), told
        else:
            assert len(model.classes_) == 1
            assert (model.predict(X) == label).all()


@parametrize(lambda case: case.supervised, value=[0.0, 1.0, -3.5, 1e8])
def test_constant_target(case: Case, value: float) -> None:
    X, _ = make(case)
    model = assert_finite_or_refused(case, X, np.full(N, value))
    if model is None:
        assert case.target != "real" or value == 0.0
        return
    if getattr(model, "fit_intercept", False) and case.target != "labels":
        np.testing.assert_allclose(output(model, X), value, rtol=1e-6, atol=1e-6)
        assert model.certificate_.certified
