"""Kernel support vector machines: the same scores as scikit-learn's at a tight tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from certifit.sklearn import svm

RNG = np.random.default_rng(0)
X = RNG.normal(size=(70, 4))
SCORE = X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * RNG.normal(size=70)
TWO, THREE = np.where(SCORE > 0, "yes", "no"), np.digitize(SCORE, [-1.0, 1.0])
WEIGHT = RNG.uniform(0.5, 2.0, 70)
CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("SVC", TWO, {}),
    ("SVC", TWO, {"C": 5.0, "kernel": "poly", "coef0": 1.0, "class_weight": "balanced"}),
    ("SVC", THREE, {"kernel": "linear", "decision_function_shape": "ovo"}),
    ("SVC", THREE, {"gamma": 0.3, "class_weight": {0: 4.0}}),
    ("NuSVC", TWO, {"nu": 0.3}),
    ("SVR", SCORE, {"epsilon": 0.05, "C": 2.0}),
    ("NuSVR", SCORE, {"nu": 0.4}),
    ("OneClassSVM", None, {"nu": 0.2}),
]


@pytest.mark.parametrize(("name", "target", "settings"), CASES)
def test_scores_are_those_of_scikit_learn(name: str, target: Any, settings: dict[str, Any]) -> None:
    weight = None if name == "NuSVC" else WEIGHT
    theirs, ours = (
        getattr(home, name)(tol=1e-7, **settings).fit(X, target, sample_weight=weight) for home in (sklearn.svm, svm)
    )
    ask = "predict" if name in ("SVR", "NuSVR") else "decision_function"
    assert_allclose(getattr(ours, ask)(X), getattr(theirs, ask)(X), atol=1e-4)
    if ask != "predict":
        sure = (
            np.abs(theirs.decision_function(X)).reshape(len(X), -1).min(axis=1) > 1e-3
        )  # rows on the boundary are rounding
        assert_array_equal(ours.predict(X)[sure], theirs.predict(X)[sure])
    for told in ("n_support_", "dual_coef_", "intercept_", "support_vectors_", "class_weight_", "offset_"):
        if hasattr(theirs, told):
            assert np.shape(getattr(ours, told)) == np.shape(getattr(theirs, told)), told
    assert ours.certificate_.certified
    if settings.get("kernel") == "linear":
        assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    else:
        assert not hasattr(ours, "coef_")


def test_what_is_not_offered() -> None:
    with pytest.raises(NotImplementedError, match="sample_weight"):
        svm.NuSVC(class_weight="balanced").fit(X, TWO)


def test_rows_of_negative_weight_are_absent() -> None:
    weight = np.where(np.arange(70) < 20, -1.0, 1.0)
    assert_allclose(svm.SVC(gamma=0.2).fit(X, TWO, weight).decision_function(X),
                    svm.SVC(gamma=0.2).fit(X[20:], TWO[20:]).decision_function(X), atol=1e-3)  # fmt: skip
    with pytest.raises(ValueError, match="zero or negative weights"):
        svm.SVR().fit(X, SCORE, -np.ones(70))
    with pytest.raises(ValueError, match="same class"):
        svm.SVC().fit(X, TWO, np.where(TWO == "yes", 1.0, 0.0))


@pytest.mark.parametrize("cls", [svm.SVC, svm.NuSVC])
def test_probabilities_where_they_are_asked_for(cls: Any) -> None:
    assert not hasattr(cls(), "predict_proba")
    with pytest.warns(FutureWarning, match="probability"):
        model = cls(probability=True).fit(X, TWO)
    told = model.predict_proba(X)
    assert_allclose(told.sum(axis=1), 1.0)
    assert np.mean(model.classes_[told.argmax(axis=1)] == model.predict(X)) > 0.9
    assert_allclose(np.exp(model.predict_log_proba(X)), told)
    later = cls().fit(X, TWO).set_params(probability=True)
    with pytest.raises(NotFittedError, match="fitted with probability=False"):
        later.predict_proba(X)
    with pytest.warns(FutureWarning, match="probability"):
        assert not hasattr(model.set_params(probability=False).fit(X, TWO), "calibrated_")


def test_a_function_compares_rows_of_any_kind() -> None:
    words = ["a a", "a", "b", "b b", "a b"]
    counts = np.array([[word.count("a"), word.count("b")] for word in words], dtype=np.float64)

    def common(left: Any, right: Any) -> Any:
        return [[sum(x.count(c) * z.count(c) for c in "ab") for z in right] for x in left]

    for cls, target in ((svm.SVC, [1, 1, 2, 2, 1]), (svm.SVR, [0.0, 1.0, 2.0, 3.0, 1.0])):
        of_words, of_counts = cls(kernel=common).fit(words, target), cls(kernel="linear").fit(counts, target)
        assert_allclose(of_words.predict(words), of_counts.predict(counts), atol=1e-6)
    with pytest.raises(NotImplementedError, match="CalibratedClassifierCV"), pytest.warns(FutureWarning):
        svm.SVC(kernel=common, probability=True).fit(words, [1, 1, 2, 2, 1])


def test_what_scikit_learn_refuses() -> None:
    with pytest.raises(ValueError, match="trained on dense data"):
        svm.SVC().fit(X, TWO).predict(csr_array(X))
    with pytest.raises(ValueError, match=r"not finite.*variance of X"):
        svm.SVC().fit(X * 1e300, TWO)
    with pytest.raises(ValueError, match="read-only"):
        svm.SVC(kernel="linear").fit(X, TWO).coef_[0, 0] = 1.0
    for settings in (
        {"penalty": "l1", "dual": True},
        {"penalty": "l1", "loss": "hinge"},
        {"loss": "hinge", "dual": False},
    ):
        with pytest.raises(ValueError, match="Unsupported set of arguments"):
            svm.LinearSVC(**settings).fit(X, TWO)


@pytest.mark.parametrize(("given", "used"), [(1000, 10_000), (200_000, 200_000)])
def test_crammer_and_singer_take_the_passes_that_are_allowed(given: int, used: int) -> None:
    model = svm.LinearSVC(multi_class="crammer_singer", max_iter=given).fit(X, THREE)
    assert model.model_.max_iter == used
