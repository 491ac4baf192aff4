"""Codes of two-class problems: against scikit-learn's wrappers, brute force, and their own promises."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.linear_model import RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from certifit import OneVsOne, OneVsRest, OutputCode, Perceptron, SGDClassifier
from certifit.models.reductions.multiclass import exhaustive_code, min_hamming_distance

WRAPPERS = [OneVsRest, OneVsOne, OutputCode]


def data(n=200, K=4, seed=0, noise=0.6):
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    X = np.column_stack([np.eye(K)[y], np.zeros((n, 2))]) + noise * rng.normal(size=(n, K + 2))
    return X, np.array(["ant", "bee", "cat", "dog", "eel", "fox"])[y]


@pytest.mark.parametrize("base", [TheirLogistic(), RidgeClassifier(), GaussianNB(), KNeighborsClassifier()], ids=repr)
@pytest.mark.parametrize(("ours", "theirs"), [(OneVsRest, OneVsRestClassifier), (OneVsOne, OneVsOneClassifier)])
def test_wrappers_of_foreign_classifiers_are_scikit_learns(ours, theirs, base):
    X, y = data()
    mine, other = ours(base).fit(X, y), theirs(base).fit(X, y)
    wanted = other.predict(X)
    if ours is OneVsRest or hasattr(base, "decision_function"):
        # Releases differ in which of several best classes they take; neighbors vote in fifths, so that there are some.
        scores = np.sort(
            mine.predict_proba(X) if hasattr(other, "predict_proba") else mine.decision_function(X), axis=1
        )
        clear = scores[:, -1] > scores[:, -2]
        assert clear.mean() > 0.8
        np.testing.assert_array_equal(mine.predict(X)[clear], wanted[clear])
    else:  # votes are the same; their ties are broken on probabilities around 1/2, ours too, but not shifted alike
        assert np.mean(mine.predict(X) == wanted) > 0.97
    if hasattr(other, "predict_proba"):
        np.testing.assert_allclose(mine.predict_proba(X), other.predict_proba(X), rtol=1e-9)
    if hasattr(base, "decision_function"):
        scores = other.decision_function(X)
        np.testing.assert_allclose(mine.decision_function(X), _as_ours(scores, ours), rtol=1e-9, atol=1e-12)
    assert mine.certificate_.kind == "none"


def _as_ours(scores, wrapper):
    """Their votes count a win as 1 and a loss as 0, ours as ±1: twice the votes, less the number of rivals."""
    if wrapper is OneVsRest:
        return scores
    votes = np.round(scores)
    return 2 * votes - (scores.shape[1] - 1) + (scores - votes)


def test_pair_probabilities_agree_with_consistent_pairs():
    """If the pairs come from one distribution p, r_ij = p_i/(p_i + p_j), coupling gives p back."""

    class Fixed(GaussianNB):
        def predict_proba(self, X):
            i, j = self.pair
            p = np.asarray(X)
            share = p[:, j] / (p[:, i] + p[:, j])
            return np.column_stack([1 - share, share])

    rng = np.random.default_rng(0)
    X, y = rng.dirichlet(np.ones(4), size=60), np.arange(60) % 4
    model = OneVsOne(GaussianNB()).fit(X, y)
    for column, part in enumerate(model.estimators_):
        part.__class__ = Fixed
        part.pair = (int(np.argmin(model.code_[:, column])), int(np.argmax(model.code_[:, column])))
    np.testing.assert_allclose(model.predict_proba(X), X, atol=1e-5)


def test_hamming_decoding_against_brute_force():
    X, y = data(K=5)
    model = OutputCode(SGDClassifier(alpha=0.01, random_state=0), decoding="hamming", random_state=3).fit(X, y)
    bits = np.column_stack([np.where(part.decision_function(X) > 0, 1, -1) for part in model.estimators_])
    for row, found in zip(bits, model.decision_function(X), strict=True):
        distances = [sum(int(a != b) for a, b in zip(row, word, strict=True)) for word in model.code_]
        np.testing.assert_array_equal(found, -np.array(distances, dtype=float))
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])


def test_loss_decoding_against_brute_force():
    X, y = data(K=3)
    code = np.array([[1, 1, 0], [-1, 0, 1], [0, -1, -1]])
    model = OutputCode(SGDClassifier(alpha=0.01, random_state=0), code=code, decoding="loss").fit(X, y)
    scores = np.column_stack([part.decision_function(X) for part in model.estimators_])
    wanted = [
        [-sum(np.log1p(np.exp(-m * s)) for m, s in zip(word, row, strict=True)) for word in code] for row in scores
    ]
    np.testing.assert_allclose(model.decision_function(X), wanted, rtol=1e-9)
    # Rows of a class with a zero take no part in that problem.
    alone = SGDClassifier(alpha=0.01, random_state=0).fit(X[y != "cat"], (y[y != "cat"] == "ant").astype(int))
    np.testing.assert_array_equal(model.estimators_[0].coef_, alone.coef_)


@pytest.mark.parametrize("K", [3, 4, 5, 6])
def test_the_exhaustive_code_has_every_split_once(K):
    code = exhaustive_code(K)
    assert code.shape == (K, 2 ** (K - 1) - 1)
    splits = {tuple(column * column[0]) for column in code.T}
    assert splits == {(1, *rest) for rest in itertools.product((-1, 1), repeat=K - 1) if -1 in rest}
    assert min_hamming_distance(code) == 2 ** (K - 2)


def test_a_random_code_is_a_code_and_its_distance_is_told():
    X, y = data(K=6)
    model = OutputCode(Perceptron(max_iter=3, random_state=0), code_size=2, random_state=0).fit(X, y)
    assert model.code_.shape == (6, 12)
    distances = [(a != b).sum() for a, b in itertools.combinations(model.code_, 2)]
    assert model.min_distance_ == min(distances) >= 4
    assert model.n_correctable_ == (model.min_distance_ - 1) // 2
    assert len({tuple(column * column[0]) for column in model.code_.T}) == 12
    again = OutputCode(Perceptron(max_iter=3, random_state=0), code_size=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.code_, again.code_)


def test_a_code_corrects_as_many_errors_as_it_says():
    X, y = data(K=5, noise=0.05)
    model = OutputCode(SGDClassifier(alpha=0.01, random_state=0), code="exhaustive", decoding="hamming").fit(X, y)
    assert model.n_correctable_ == 3
    assert (model.predict(X) == y).all()
    for part in model.estimators_[:3]:  # three classifiers turn into their opposites
        part.coef_, part.intercept_ = -part.coef_, -part.intercept_
    assert (model.predict(X) == y).all()


@pytest.mark.parametrize(
    ("code", "match"),
    [
        (np.ones((2, 3)), "shape"),
        (np.array([[2, -1], [1, 1], [-1, 1]]), "only"),
        (np.array([[1, 1], [1, -1], [1, 1]]), "one side"),
        (np.array([[1, 1], [1, 1], [-1, -1]]), "two rows"),
        ("no such", "code must be one of"),
    ],
)
def test_bad_codes_are_refused(code, match):
    X, y = data(K=3)
    with pytest.raises(ValueError, match=match):
        OutputCode(Perceptron(), code=code).fit(X, y)


def test_the_certificate_is_the_sum_of_the_parts():
    X, y = data()
    model = OneVsRest(SGDClassifier(alpha=0.01, random_state=0)).fit(X, y)
    parts = [part.certificate_ for part in model.estimators_]
    assert model.certificate_.certified
    assert model.certificate_.kind == "duality gap"
    assert model.certificate_.objective == pytest.approx(sum(part.objective for part in parts))
    assert model.certificate_.bound == pytest.approx(sum(part.bound for part in parts))


def test_one_part_that_stops_short_is_told_once():
    X, y = data()
    with pytest.warns(match="Not certified") as caught:
        model = OneVsRest(SGDClassifier(alpha=1e-6, max_iter=1, tol=1e-9, random_state=0)).fit(X, y)
    assert len(caught) == 4  # by the parts themselves
    assert not model.certificate_.certified
    assert "4 of 4 parts" in model.certificate_.note


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_two_classes_are_one_problem(wrapper):
    X, y = data(K=2)
    base = SGDClassifier(alpha=0.01, random_state=0)
    model, alone = wrapper(base).fit(X, y), base.fit(X, (y == "bee").astype(int))
    assert len(model.estimators_) == 1
    np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))
    np.testing.assert_array_equal(model.predict(X) == "bee", alone.predict(X) == 1)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_weights_threads_sparse_and_refusals(wrapper):
    X, y = data(n=120)
    weight = np.random.default_rng(0).integers(0, 3, size=120)
    rows = np.repeat(np.arange(120), weight)
    # No argument: logistic regression, which is deterministic.
    options = {"random_state": 0} if wrapper is OutputCode else {}
    weighted = wrapper(**options).fit(X, y, sample_weight=weight)
    repeated = wrapper(**options).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-3, atol=1e-4)
    two = wrapper(n_jobs=2, **options).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(two.decision_function(X), weighted.decision_function(X))
    base = SGDClassifier(alpha=0.01, random_state=0)
    dense, sparse = wrapper(base, **options).fit(X, y), wrapper(base, **options).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), rtol=1e-7)
    with pytest.raises(ValueError, match="sample_weight"):
        wrapper(KNeighborsClassifier(), **options).fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="one class only"):
        wrapper(**options).fit(X, np.ones(120))
    with pytest.raises(TypeError, match="estimator"):
        wrapper(3, **options).fit(X, y)
