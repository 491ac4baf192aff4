"""Inside scikit-learn: pipelines, column transformers, searches, clones, pickles."""

from __future__ import annotations

import copy
import functools
import io
import pickle
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.contract.data import FEW, D, assert_same, fit, make, output, reference, transformed, unbothered
from tests.contract.discovery import ONE_EACH, Case, parametrize
from tests.grids import each

EVERY = parametrize()
PREDICTORS = parametrize(lambda case: case.supervised and case.predicts)
TRANSFORMERS = parametrize(lambda case: case.transforms)
# A parameter to search over, where a class has it.
GRIDS: dict[str, list[Any]] = {"alpha": [0.01, 0.3], "tol": [1e-4, 1e-8], "fit_intercept": [True, False]}


@PREDICTORS
def test_pipeline(case: Case) -> None:
    X, y = make(case)
    change = np.sign if case.takes_codes else np.tanh  # codes stay codes
    with unbothered():
        pipeline = make_pipeline(FunctionTransformer(change), case.build(random_state=0)).fit(X, y)
        alone = fit(case.build(random_state=0), change(X), y)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(change(X)))
    assert np.isfinite(pipeline.score(X, y))


@TRANSFORMERS
def test_column_transformer_and_pipeline(case: Case) -> None:
    X, y = make(case)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(D)])
    some = ["x1", "x3"]
    parts = ColumnTransformer([("part", case.build(random_state=0), some)], remainder="passthrough")
    result = parts.fit_transform(frame, y)
    result = result.toarray() if hasattr(result, "toarray") else np.asarray(result)
    alone = transformed(fit(case.build(random_state=0), frame[some], y), frame[some])
    assert_same(result[:, : alone.shape[1]], alone, 1e-12)
    assert len(parts.get_feature_names_out()) == result.shape[1]
    pipeline = make_pipeline(case.build(random_state=0), FunctionTransformer()).fit(frame, y)
    np.testing.assert_array_equal(
        transformed(pipeline[:-1], frame), transformed(fit(case.build(random_state=0), frame, y), frame)
    )


@TRANSFORMERS
def test_fit_transform_is_fit_then_transform(case: Case) -> None:
    X, y = make(case)
    both = case.build(random_state=0).fit_transform(X, y)
    both = both.toarray() if hasattr(both, "toarray") else np.asarray(both)
    assert_same(both, transformed(fit(case.build(random_state=0), X, y), X), 1e-12)


@PREDICTORS
def test_grid_search(case: Case) -> None:
    X, y = make(case)
    grid = next(({name: values} for name, values in GRIDS.items() if case.has(name)), {})
    with unbothered():
        search = GridSearchCV(case.build(random_state=0, **FEW), grid, cv=3, error_score="raise").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_.keys() == grid.keys()


def test_cross_val_score_in_two_processes() -> None:
    """One item: the two processes start once."""
    predictors = (case for case in ONE_EACH if case.supervised and case.predicts)
    each((str(case), functools.partial(check_two_processes, case)) for case in predictors)


def check_two_processes(case: Case) -> None:
    X, y = make(case)
    with unbothered():
        one, two = (
            cross_val_score(case.build(random_state=0), X, y, cv=3, error_score="raise", n_jobs=jobs) for jobs in (1, 2)
        )
    assert np.isfinite(one).all()
    np.testing.assert_array_equal(one, two)


@EVERY
def test_clone(case: Case) -> None:
    one = reference(case)
    twin = clone(one.model)
    assert not [name for name in vars(twin) if name.endswith("_") and not name.startswith("__")]
    assert repr(twin) == repr(one.model)
    with unbothered():
        np.testing.assert_array_equal(output(fit(twin, one.X, one.y), one.X), one.output)


def through_joblib(estimator: Any) -> Any:
    buffer = io.BytesIO()
    joblib.dump(estimator, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle 2": lambda estimator: pickle.loads(pickle.dumps(estimator, 2)),
    "pickle": lambda estimator: pickle.loads(pickle.dumps(estimator, pickle.HIGHEST_PROTOCOL)),
    "deepcopy": copy.deepcopy,
    "joblib": through_joblib,
}


@EVERY
def test_pickle_and_copy(case: Case) -> None:
    one = reference(case)
    for name, copied in COPIES.items():
        twin = copied(one.model)
        np.testing.assert_array_equal(output(twin, one.X), one.output, err_msg=name)
        if hasattr(one.model, "certificate_"):
            assert twin.certificate_ == one.model.certificate_
            assert str(twin.certificate_) == str(one.model.certificate_)
        assert repr(copied(case.build())) == repr(case.build())


@EVERY
def test_parameters_round_trip(case: Case) -> None:
    estimator = case.build()
    params = estimator.get_params()
    other = case.cls().set_params(**estimator.get_params(deep=False))
    assert other.get_params(deep=False).keys() == estimator.get_params(deep=False).keys()
    assert repr(other) == repr(estimator)
    assert repr(case.build().set_params(**params)) == repr(estimator)
    with pytest.raises(ValueError, match="no_such_parameter"):
        estimator.set_params(no_such_parameter=1)


@EVERY
def test_the_constructor_only_stores(case: Case) -> None:
    """Arguments are checked in fit; the constructor keeps them as given."""
    marker = object()
    for name in case.build().get_params(deep=False):
        assert getattr(case.cls(**{name: marker}), name) is marker


@EVERY
def test_before_fit_there_is_nothing_to_apply(case: Case) -> None:
    X, _ = make(case)
    estimator = case.build()
    if estimator.__sklearn_tags__().requires_fit:
        with pytest.raises(NotFittedError, match=case.cls.__name__):
            output(estimator, X)


@EVERY
def test_representations(case: Case) -> None:
    estimator = case.build()
    assert case.cls.__name__ in repr(estimator)
    for shown in (estimator, reference(case).model):
        assert case.cls.__name__ in shown._repr_html_()


@parametrize(one_each=True)
def test_every_parameter_and_every_fitted_attribute_is_documented(case: Case) -> None:
    text = case.cls.__doc__ or ""
    for name in case.build().get_params(deep=False):
        assert name in text, f"{case.cls.__name__} does not document {name}"
    assert ">>>" in text
