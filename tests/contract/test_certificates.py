"""Every fit says how far it is from the optimum, and what it says is true, by an independent solver."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from tests.contract.data import fit, make, reference, unbothered, weights
from tests.contract.discovery import Case, parametrize
from tests.contract.objectives import Objective, Statement, design, stated, statements

from certifit import Certificate, LinearModel
from certifit.losses import Huber

PREDICTORS = parametrize(lambda case: case.predicts)


def is_convex(case: Case) -> bool:
    """Whether the model states an objective that an independent solver can check."""
    return stated(case.cls) is not None


def assert_valid(certificate: Certificate, tol: float) -> None:
    """The fields agree with each other."""
    assert isinstance(certificate, Certificate)
    assert certificate.kind
    assert certificate.objective >= 0
    assert certificate.gap >= 0
    assert not math.isnan(certificate.relative_gap)
    assert certificate.iterations >= 0
    assert certificate.seconds >= 0
    if certificate.kind == "none":
        assert not certificate.certified
    else:
        part = "parts are not certified" in certificate.note  # a sum may be near its optimum while a part of it is not
        assert certificate.certified == (certificate.relative_gap <= tol and not part)
    if math.isfinite(certificate.bound):
        assert certificate.gap == pytest.approx(max(0.0, certificate.objective - certificate.bound), rel=1e-12)
        # A bound above the objective by more than rounding would prove the impossible.
        assert certificate.bound <= certificate.objective * (1 + 1e-9) + 1e-300
    sentence = str(certificate)
    if certificate.certified:
        assert sentence.startswith("Certified")
    else:
        assert sentence.startswith("No certificate: " if certificate.kind == "none" else "Not certified: ")
    assert "\n" not in sentence
    json.dumps(certificate.as_dict())
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate.objective = 0.0  # type: ignore[misc]


def assert_honest(statement: Statement, X: Any, weight: Any, fit_intercept: bool) -> None:
    """Objective and bound against independent values."""
    certificate, claim, coef, y = statement.certificate, statement.claim, statement.coef, statement.y
    optimum = claim.optimum(X, y, weight, fit_intercept)
    scale = claim.of_best_constant(y, weight, fit_intercept)
    reached = claim.at(coef, statement.intercept, X, y, weight)
    assert certificate.objective == pytest.approx(reached, rel=1e-9, abs=1e-13 * scale)
    accuracy = 1e-9 * max(scale, optimum)
    assert certificate.bound <= optimum + accuracy, "the bound is above the optimum"
    assert certificate.objective >= optimum - accuracy, "the objective is below the optimum"
    assert certificate.gap == pytest.approx(certificate.relative_gap * scale, rel=1e-6, abs=1e-300)
    if claim.constraint is not None:
        constraint = claim.constraint
        if isinstance(constraint, str):
            assert constraint == "non_negative"
            assert (coef >= 0).all()
        else:
            assert constraint.contains(coef)


def assert_all_honest(model: Any, X: Any, y: Any, weight: Any = None) -> None:
    """Everything that a fitted model states, against independent values."""
    matrix = design(model, X, weight)
    told = statements(model, y)
    for statement in told:
        if statement.certificate.kind != "none":
            assert_honest(statement, matrix, weight, getattr(model, "fit_intercept", True))
    if len(told) > 1:  # one certificate for each class: the model as a whole is as good as the worst
        worst = max(told, key=lambda statement: statement.certificate.relative_gap).certificate
        assert model.certificate_.relative_gap == worst.relative_gap
        assert model.certificate_.certified == all(statement.certificate.certified for statement in told)


@parametrize(lambda case: case.predicts, weighted=[False, True])
def test_every_predictor_has_a_valid_certificate(case: Case, weighted: bool) -> None:
    model = reference(case, weighted=weighted).model
    assert_valid(model.certificate_, getattr(model, "tol", np.inf))


@PREDICTORS
def test_default_settings_are_certified_on_easy_data(case: Case) -> None:
    X, y = make(case)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = fit(case.build(random_state=0), X, y)
    assert model.certificate_.certified or model.certificate_.kind == "none"


def separable(case: Case) -> tuple[Any, Any]:
    """Classes that planes keep apart, for claims that exist on such rows only."""
    X, y = make(case)
    assert y is not None
    around = np.random.default_rng(4).normal(size=(case.classes, X.shape[1]))
    return 0.1 * X + around[y], y


@PREDICTORS
def test_every_linear_model_with_a_certificate_states_its_objective(case: Case) -> None:
    # Classes are kept apart by planes through zero, so some features are negative: not for counts and codes.
    apart = is_classifier(case.build()) and not case.positive_features
    data = [make(case)] + ([separable(case)] if apart else [])
    for X, y in data:
        with unbothered():
            model = fit(case.build(random_state=0), X, y)
        # Densities are of greatest likelihood in closed form; tests/models/bayes compares each with its formula.
        counted = case.cls.__module__.startswith("certifit.models.bayes")
        if hasattr(model, "coef_") and model.certificate_.kind != "none" and not counted:
            assert stated(case.cls), "write its formula down in tests/contract/objectives.py"


@parametrize(lambda case: is_convex(case) and is_classifier(case.build()))
def test_the_certificate_is_honest_on_classes_that_planes_keep_apart(case: Case) -> None:
    X, y = separable(case)
    with unbothered():
        model = fit(case.build(random_state=0), X, y)
    assert_valid(model.certificate_, getattr(model, "tol", np.inf))
    assert model.certificate_.kind != "none"
    assert_all_honest(model, X, y)


@parametrize(is_convex, weighted=[False, True], fit_intercept=[True, False])
def test_the_certificate_is_honest(case: Case, weighted: bool, fit_intercept: bool) -> None:
    X, y = make(case)
    assert y is not None
    weight = weights() if weighted else None
    model = case.build(fit_intercept=fit_intercept, random_state=0)
    with unbothered():
        fit(model, X, y, weight)
    assert_valid(model.certificate_, getattr(model, "tol", np.inf))
    assert_all_honest(model, X, y, weight)


@parametrize(is_convex, shape=[(10, 16), (16, 15)])
def test_the_certificate_is_honest_with_many_columns(case: Case, shape: tuple[int, int]) -> None:
    """Unpenalized models fit such rows exactly: every bound above zero would then be false."""
    X, y = make(case, *shape)
    assert y is not None
    with unbothered():
        model = fit(case.build(random_state=0), X, y)
    assert_valid(model.certificate_, getattr(model, "tol", np.inf))
    assert_all_honest(model, X, y)


@parametrize(is_convex, most=[1, 2])
def test_a_fit_that_stops_early_says_so_once_and_stays_honest(case: Case, most: int) -> None:
    if not case.has("max_iter"):
        return
    X, y = make(case)
    assert y is not None
    model = case.build(max_iter=most, max_epochs=most, tol=1e-13, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(model, X, y)
    told = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    silent = model.certificate_.certified or model.certificate_.kind == "none"
    assert len(told) == (0 if silent else 1)
    assert not [w for w in caught if issubclass(w.category, RuntimeWarning)]
    if told:
        assert case.cls.__name__ in str(told[0].message)
        assert told[0].filename.endswith("data.py"), "the warning should point at the caller of fit"
    assert_valid(model.certificate_, getattr(model, "tol", np.inf))
    assert_all_honest(model, X, y)


def refused(model: Any, X: Any, y: Any) -> str:
    """Why the solver does not take the objective, or nothing after a fit."""
    try:
        with unbothered():
            model.fit(X, y)
    except ValueError as error:
        return str(error)
    return ""


WEAK = [Huber(0.01), Huber(0.3), Huber(2.0), "hinge", "absolute", "squared"]


@functools.cache
def hard_proofs() -> list[tuple[Any, Any, dict[str, Any]]]:
    """Rows, targets and settings, the same for every solver: the oracle is asked once."""
    rng, problems = np.random.default_rng(4), []
    for _ in range(60):
        n, d = int(rng.integers(4, 40)), int(rng.integers(1, 30))
        X, loss = rng.normal(size=(n, d)), WEAK[int(rng.integers(len(WEAK)))]
        y = X @ rng.normal(size=d) * rng.integers(0, 2) + rng.standard_t(1.2, size=n)
        if loss == "hinge":
            y = (y > np.median(y)).astype(float)
        settings = {
            "loss": loss,
            "constraint": "non_negative" if rng.random() < 0.2 else None,
            "max_iter": int(rng.choice([1, 2, 3, 5, 300])),
            "fit_intercept": bool(rng.random() < 0.7),
        }
        problems.append((X, y, settings))
    return problems


@functools.cache
def hard_optimum(k: int) -> tuple[float, float]:
    """The optimal value of a problem, and its unit."""
    X, y, settings = hard_proofs()[k]
    claim = Objective(settings["loss"], None, 0.0, settings["constraint"])
    optimum = claim.optimum(X, y, None, settings["fit_intercept"])
    return optimum, max(optimum, claim.of_best_constant(y, None, settings["fit_intercept"]))


@pytest.mark.parametrize("solver", ["auto", "newton", "newton_cg", "gradient", "prox_newton", "smoothing"])
def test_no_bound_is_above_the_optimum_where_proofs_are_hard(solver: str) -> None:
    """Unpenalized models need dual points orthogonal to every column, which rows without curvature cannot give."""
    tried = 0
    for k, (X, y, settings) in enumerate(hard_proofs()):
        model = LinearModel(**settings, penalty=None, solver=solver)
        if refused(model, X, y):
            continue
        tried += 1
        optimum, scale = hard_optimum(k)
        assert model.certificate_.bound <= optimum + 1e-7 * scale, f"{model} on {X.shape}"
        assert model.certificate_.objective >= optimum - 1e-7 * scale
    assert tried >= 5


@pytest.mark.parametrize("seed", [5, 15, 19, 29])
def test_a_dual_point_outside_its_domain_proves_nothing(seed: int) -> None:
    """At the start all scores are zero, and say nothing about what moving a slope into its domain costs."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(26, 8)), (rng.normal(size=26) > 0).astype(float)
    model = LinearModel(loss="hinge", penalty=None, constraint="non_negative", solver="smoothing", max_iter=1)
    with unbothered():
        model.fit(X, y)
    assert_all_honest(model, X, y)
