"""Bad input gets an error that names the argument; never a crash, never a silent NaN."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_regressor
from tests.contract.data import D, N, features, fit, make, output, targets, unbothered
from tests.contract.discovery import CASES, ONE_EACH, Case, parametrize

from certifit.losses import LOSSES
from certifit.models.linear import BaseLinear
from certifit.penalties import PENALTIES

EVERY = parametrize()
ONE = parametrize(one_each=True)
SUPERVISED = parametrize(lambda case: case.supervised, one_each=True)
REFUSED = (ValueError, TypeError)
# Values that make no sense, by the name of the parameter.
NONSENSE: dict[str, list[Any]] = {
    "alpha": [-1.0, np.nan, np.inf, "a", None, True],
    "tol": [-1e-3, np.nan, "a", None],
    "max_iter": [0, -1, 1.5, "a", None],
    "l1_ratio": [-0.1, 1.1, np.nan, "a"],
    "quantile": [0.0, 1.0, -0.5, np.nan, "a"],
    "delta": [0.0, -1.0, np.nan, np.inf, "a"],
    "epsilon": [-1.0, np.nan, "a"],
    "loss": ["no such loss", 3, None],
    "penalty": ["no such penalty", 3],
    "constraint": ["no such constraint", 3],
    "solver": ["no such solver", 3, None],
    "fit_intercept": ["yes", 2, None],
    "positive": ["yes", 2],
    "n_jobs": ["a", 1.5, 0],
    "verbose": ["loud", -1],
    "degree": [-1, 1.5, "a"],
    "n_alphas": [0, -3, 1.5, "a"],
    "eps": [0.0, -1.0, np.nan, "a"],
    "alphas": [[], [-1.0], [np.nan], "a"],
    "cv": [1, -2, "a"],
    "interaction_only": ["yes", 2],
    "with_mean": ["yes", 2],
    "with_std": ["yes", 2],
}
BAD_PARAMETERS = [
    pytest.param(case, name, value, id=f"{case}-{name}={value!r}")
    for case in ONE_EACH
    for name, values in NONSENSE.items()
    for value in values
    if case.has(name) and value is not case.build().get_params(deep=False)[name]
]


@pytest.mark.parametrize(("case", "name", "value"), BAD_PARAMETERS)
def test_a_bad_parameter_is_named(case: Case, name: str, value: Any) -> None:
    X, y = make(case)
    estimator = case.build(**{name: value})
    with pytest.raises(REFUSED, match=rf"\b{name}\b"):
        fit(estimator, X, y)


@pytest.mark.parametrize(
    ("name", "known"), [("loss", list(LOSSES)), ("penalty", list(PENALTIES)), ("solver", ["auto"])]
)
@ONE
def test_an_unknown_name_lists_the_known_ones(case: Case, name: str, known: list[str]) -> None:
    if not case.has(name):
        return
    X, y = make(case)
    with pytest.raises(REFUSED) as caught:
        fit(case.build(**{name: "no such"}), X, y)
    message = str(caught.value)
    assert repr("no such") in message
    listed = re.findall(r"'([a-z0-9_ ]+)'", message)
    assert set(known) <= set(listed) or len(set(listed) - {"no such"}) >= 2  # all of them, or those the class takes


@EVERY
@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_missing_or_infinite_features(case: Case, bad: float, word: str) -> None:
    X, y = make(case)
    spoiled = X.copy()
    spoiled[3, 2] = bad
    if np.isnan(bad) and case.allows_missing:
        with unbothered():
            assert np.isfinite(output(fit(case.build(random_state=0), spoiled, y), spoiled)).all()
        return
    with pytest.raises(ValueError, match=rf"X\b.*{word}.*column.*2"):
        fit(case.build(), spoiled, y)
    with unbothered():
        model = fit(case.build(), X, y)
    with pytest.raises(ValueError, match=rf"X\b.*{word}"):
        output(model, spoiled)


@SUPERVISED
@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_missing_or_infinite_targets(case: Case, bad: float, word: str) -> None:
    X, y = make(case)
    assert y is not None
    y = y.astype(float)
    y[4] = bad
    with pytest.raises(ValueError, match=rf"y\b.*{word}"):
        fit(case.build(), X, y)


@ONE
@pytest.mark.parametrize(
    "shape", [(0, D), (N, 0), (N,), (N, D, 2), ()], ids=["no rows", "no columns", "1-D", "3-D", "scalar"]
)
def test_wrong_shapes_of_x(case: Case, shape: tuple[int, ...]) -> None:
    _, y = make(case)
    X = np.ones(shape)
    if y is not None and (len(shape) == 0 or shape[0] == 0):
        y = y[: X.shape[0] if X.ndim else 1]
    with pytest.raises(REFUSED, match=r"(?i)sample|feature|dim|array|shape"):
        fit(case.build(), X, y)


@SUPERVISED
@pytest.mark.parametrize("length", [0, N - 1, N + 1])
def test_lengths_that_differ(case: Case, length: int) -> None:
    X, y = make(case)
    assert y is not None
    with pytest.raises(ValueError, match=r"(?i)samples|rows|length|empty"):
        fit(case.build(), X, np.resize(y, length))


@SUPERVISED
def test_missing_target(case: Case) -> None:
    X, _ = make(case)
    with pytest.raises(REFUSED, match=r"\by\b"):
        fit(case.build(), X, None)


@SUPERVISED
def test_targets_of_two_dimensions(case: Case) -> None:
    X, y = make(case)
    assert y is not None
    with pytest.raises(ValueError, match=r"\by\b"):
        fit(case.build(), X, np.column_stack([y, y]))


@ONE
@pytest.mark.parametrize("dtype", [object, str])
def test_text_in_a_column_is_named(case: Case, dtype: Any) -> None:
    X, y = make(case)
    spoiled = X.astype(dtype)
    spoiled[:, 3] = "red"
    with pytest.raises(REFUSED, match=r"(?s)X.*\b3\b"):
        fit(case.build(), spoiled, y)


@ONE
def test_complex_numbers_are_refused(case: Case) -> None:
    X, y = make(case)
    with pytest.raises(REFUSED, match=r"(?i)complex"):
        fit(case.build(), X + 1j, y)


@SUPERVISED
def test_text_as_target_of_a_regression(case: Case) -> None:
    X, _ = make(case)
    if not is_regressor(case.build()):
        return
    with pytest.raises(REFUSED, match=r"\by\b"):
        fit(case.build(), X, np.array(["a", "b"] * N)[:N])


@EVERY
def test_objects_that_are_numbers_are_numbers(case: Case) -> None:
    X, y = make(case)
    with unbothered():
        model = fit(case.build(random_state=0), X.astype(object), y)
        wanted = fit(case.build(random_state=0), X, y)
    np.testing.assert_allclose(output(model, X), output(wanted, X), rtol=1e-9)


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
            model = fit(case.build(random_state=0), X, y)
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


@EVERY
@pytest.mark.parametrize("kind", DEGENERATE)
def test_degenerate_features(case: Case, kind: str) -> None:
    full = features(case)
    X = DEGENERATE[kind](full)
    y = targets(case, full[:, : X.shape[1]])
    y = None if y is None else (np.repeat(y[:12], 5) if kind == "duplicate rows" else y[: len(X)])
    model = assert_finite_or_refused(case, X, y)
    if kind not in ("one row", "two rows", "fewer rows than columns", "as many rows as columns", "all zero"):
        assert model is not None, "such data are ordinary"


@EVERY
@pytest.mark.parametrize("value", [0.0, 1.0, -3.5, 1e8])
def test_constant_target(case: Case, value: float) -> None:
    X, y = make(case)
    if y is None:
        return
    model = assert_finite_or_refused(case, X, np.full(N, value))
    if model is None:
        assert case.target != "real" or value == 0.0
        return
    if getattr(model, "fit_intercept", False) and case.target != "binary":
        np.testing.assert_allclose(output(model, X), value, rtol=1e-6, atol=1e-6)
        assert model.certificate_.certified


def test_the_table_of_nonsense_covers_the_parameters() -> None:
    """Parameters of predictors that no line above tries are listed by this failure."""
    quiet = {"random_state"}
    for case in CASES:
        # Families beyond the linear models try the nonsense of their own parameters in tests/models.
        if issubclass(case.cls, BaseLinear):
            missing = set(case.build().get_params(deep=False)) - NONSENSE.keys() - quiet
            assert not missing, f"{case.cls.__name__}: {sorted(missing)}"
