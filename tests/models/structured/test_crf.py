"""Conditional random fields: special cases, rules, input forms, decoding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.models.structured.sequences import matrices, text, trees
from tests.oracles.chains import Enumerated

from certifit import LinearChainCRF, LogisticRegression, TreeCRF, load, save
from certifit.base import ConvergenceWarning

TIGHT = {"tol": 1e-10, "max_iter": 5000}


def enumerated(model: LinearChainCRF, rows: np.ndarray) -> Enumerated:
    """The fitted model on one sequence of a matrix, by enumeration."""
    unary = rows @ model.coef_[:-1] + model.coef_[-1]
    return Enumerated(unary, model.transition_, model.start_, model.end_)


@pytest.fixture(scope="module")
def fitted() -> tuple[LinearChainCRF, Any, Any]:
    X, y = matrices()
    return LinearChainCRF(alpha=0.02).fit(X, y), X, y


def test_decoding_agrees_with_enumeration(fitted: Any) -> None:
    model, X, y = fitted
    best, marginals, posterior = model.predict(X), model.predict_marginals(X), model.predict_posterior(X)
    likelihood = model.log_likelihood(X, y)
    for i in range(6):
        exact = enumerated(model, X[i])
        assert tuple(best[i]) == exact.best()[0][0]
        np.testing.assert_allclose(marginals[i], exact.marginals, atol=1e-12)
        assert posterior[i] == exact.marginals.argmax(axis=1).tolist()
        assert likelihood[i] == pytest.approx(np.log(exact.probabilities[exact.paths.index(tuple(y[i]))]), rel=1e-9)
        paths, scores = exact.best(4)
        found = model.predict_best(X[i : i + 1], n=4)[0]
        assert [tuple(labels) for labels, _ in found] == paths
        np.testing.assert_allclose([score for _, score in found], scores, rtol=1e-12)


def test_length_one_is_softmax_regression() -> None:
    X, y = matrices(labels=3)
    rows, labels = np.concatenate(X), np.concatenate(y)
    chain = LinearChainCRF(alpha=0.05, bias=False, boundaries=False, **TIGHT)
    chain.fit(rows, labels, lengths=np.ones(len(labels), dtype=int))
    softmax = LogisticRegression(alpha=0.05, fit_intercept=False, tol=1e-12).fit(rows, labels)
    np.testing.assert_allclose(chain.coef_.T, softmax.coef_, atol=1e-4)
    assert not chain.transition_.any()
    np.testing.assert_allclose(
        chain.predict_marginals(rows, lengths=np.ones(len(labels), dtype=int)), softmax.predict_proba(rows), atol=1e-4
    )
    assert chain.certificate_.objective == pytest.approx(softmax.certificate_.objective, rel=1e-9)


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
def test_certified(penalty: str) -> None:
    X, y = text()
    model = LinearChainCRF(alpha=0.01, penalty=penalty, tol=1e-5).fit(X, y)
    assert model.certificate_.certified
    better = LinearChainCRF(alpha=0.01, penalty=penalty, tol=1e-7).fit(X, y)
    assert better.certificate_.bound <= model.certificate_.objective
    assert model.certificate_.bound <= better.certificate_.objective
    if penalty == "l1":
        assert (model.coef_.data == 0).mean() > 0.5


def test_columns_in_any_unit() -> None:
    X, y = matrices(d=6)
    unit = 10.0 ** np.array([-3, -1, 0, 1, 2, 3])
    assert LinearChainCRF(alpha=0.01, max_iter=100).fit([rows * unit for rows in X], y).certificate_.certified
    # The larger the columns, the less the penalty holds them; beyond what rounding can certify the optimum is found all the same.
    large = LinearChainCRF(alpha=0.01).fit([1e4 * rows for rows in X], y)
    with np.errstate(all="raise", under="ignore"), pytest.warns(ConvergenceWarning):
        huge = LinearChainCRF(alpha=0.01).fit([1e150 * rows for rows in X], y)
    assert huge.certificate_.objective == pytest.approx(large.certificate_.objective, rel=1e-6)


def test_forms_of_the_same_input() -> None:
    """Names, lists of names, ids, dense and sparse rows of the same features give the same model."""
    rng = np.random.default_rng(0)
    ids = [rng.integers(6, size=int(n)) for n in rng.integers(1, 6, size=25)]
    y = [[int(k % 3) if rng.random() < 0.8 else 0 for k in one] for one in ids]
    dense = [np.eye(6)[one] for one in ids]
    lengths = [len(one) for one in ids]
    options = {"alpha": 0.05, "states": "all", **TIGHT}
    reference = LinearChainCRF(**options).fit(dense, y).log_likelihood(dense, y)
    forms: dict[str, Any] = {
        "ids": ids,
        "lists of ids": [one.tolist() for one in ids],
        "names": [[{f"f{k}": 1} for k in one] for one in ids],
        "text values": [[{"f": str(k)} for k in one] for one in ids],
        "lists of names": [[[f"f{k}"] for k in one] for one in ids],
        "tokens": [[str(k) for k in one] for one in ids],
        "sparse": [sp.csr_array(one) for one in dense],
    }
    for name, X in forms.items():
        features = {"features": ["w[0]"]} if name == "tokens" else {}
        model = LinearChainCRF(**options, **features).fit(X, y)
        np.testing.assert_allclose(model.log_likelihood(X, y), reference, rtol=1e-4, err_msg=name)
    for X in (np.concatenate(dense), sp.csr_array(np.concatenate(dense)), np.concatenate(ids)):
        flat = LinearChainCRF(**options).fit(X, np.concatenate(y), lengths=lengths)
        np.testing.assert_allclose(flat.log_likelihood(X, np.concatenate(y), lengths=lengths), reference, rtol=1e-4)
        assert flat.predict(X, lengths=lengths).shape == (sum(lengths),)


def test_a_function_of_tokens() -> None:
    X, y = text(30)

    def features(tokens: list[str], t: int) -> dict[str, Any]:
        return {"word": tokens[t], "title": tokens[t].istitle(), "size": len(tokens[t]) / 10}

    model = LinearChainCRF(features=features, alpha=0.01).fit(X, y)
    assert {"word=the", "title", "size"} <= {
        name for label in model.classes_ for name, _ in model.top_features(label, 50)
    }
    assert model.score(X, y) > 0.7


def test_hashing_needs_no_vocabulary() -> None:
    X, y = text(60)
    plain, hashed = LinearChainCRF(alpha=0.01).fit(X, y), LinearChainCRF(alpha=0.01, hashing=2**14).fit(X, y)
    assert hashed.n_features_ == 2**14 + 1
    assert hashed.score(X, y) == pytest.approx(plain.score(X, y), abs=0.02)
    assert hashed.predict([["unheard", "of"]])[0][0] in hashed.classes_


def test_markov_features_conditioned_on_the_input() -> None:
    """The label repeats after "same" and changes after "other": no unary feature and no single table of transitions can tell."""
    rng = np.random.default_rng(1)
    X, y = [], []
    for _ in range(60):
        words = [str(rng.choice(["same", "other"])) for _ in range(8)]
        labels = [int(rng.integers(2))]
        for word in words[1:]:
            labels.append(labels[-1] if word == "same" else 1 - labels[-1])
        words[0] = ["zero", "one"][labels[0]]
        X.append(words)
        y.append(labels)
    plain = LinearChainCRF(features=["w[0]"], alpha=0.001).fit(X, y)
    conditioned = LinearChainCRF(features=["w[0]"], markov=["w[0]"], alpha=0.001).fit(X, y)
    assert plain.score(X, y) < 0.8
    assert conditioned.score(X, y) == 1.0
    named = [[{"w": word} for word in words] for words in X]
    assert LinearChainCRF(markov=["w"], alpha=0.001).fit(named, y).score(named, y) == 1.0


def test_forbidden_and_required_transitions() -> None:
    X = [["a", "b", "c"], ["b", "c"], ["a", "c", "c", "b"]]
    y = [["x", "y", "z"], ["y", "z"], ["x", "z", "z", "y"]]
    model = LinearChainCRF(
        alpha=0.1, forbidden=[("x", "x"), (None, "z"), ("x", None)], required={"y": ["z", None]}
    ).fit(X, y)
    for a, b in (("x", "x"), (None, "z"), ("x", None), ("y", "x"), ("y", "y")):
        assert model.transitions()[a, b] == -np.inf
    for labels in model.predict([["a"] * n for n in range(1, 9)]):
        steps = list(zip([None, *labels], [*labels, None], strict=True))
        assert not {("x", "x"), (None, "z"), ("x", None), ("y", "x"), ("y", "y")} & set(steps)
    marginals = model.predict_marginals([["c", "c"]])[0]
    assert marginals[0, 2] == 0.0
    with pytest.raises(ValueError, match=r"y\[1\] has the forbidden transition \('y', 'z'\) at position 1"):
        LinearChainCRF(forbidden=[("y", "z")]).fit(X[:1] + X[1:], [["x", "y", "x"], ["y", "z"], ["x", "z", "z", "y"]])
    with pytest.raises(ValueError, match="without a labelling"):
        LinearChainCRF(forbidden=[(None, label) for label in "xyz"]).fit(X, y)


def test_bio_rules_come_from_the_labels() -> None:
    X = [["Ann", "Lee", "saw", "Rome"], ["in", "New", "York"]]
    y = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC", "I-LOC"]]
    model = LinearChainCRF(forbidden="bio", alpha=0.1).fit(X, y)
    assert model.transitions()["O", "I-LOC"] == -np.inf
    assert model.transitions()[None, "I-PER"] == -np.inf
    assert np.isfinite(model.transitions()["B-LOC", "I-LOC"])


def test_a_tree_of_single_children_is_a_chain() -> None:
    X, y = text(25)
    chain = LinearChainCRF(alpha=0.02, **TIGHT).fit(X, y)
    parents = [list(range(-1, len(words) - 1)) for words in X]
    tree = TreeCRF(alpha=0.02, **TIGHT).fit(X, y, parents=parents)
    np.testing.assert_allclose(tree.transition_, chain.transition_, atol=1e-4)
    np.testing.assert_allclose(tree.log_likelihood(X, y, parents=parents), chain.log_likelihood(X, y), atol=1e-3)
    assert tree.predict(X, parents=parents) == chain.predict(X)


def test_trees() -> None:
    X, y, parents = trees(25)
    model = TreeCRF(alpha=0.05).fit(X, y, parents=parents)
    assert model.certificate_.certified
    marginals = model.predict_marginals(X, parents=parents)
    encoded = model.encoder_.transform(X).sparse
    coef = model.coef_.toarray()
    for i in range(4):
        rows = slice(sum(len(words) for words in X[:i]), sum(len(words) for words in X[: i + 1]))
        unary = np.array(
            [
                coef[encoded.feature[encoded.row[t] : encoded.row[t + 1]]].sum(axis=0)
                for t in range(rows.start, rows.stop)
            ]
        )
        if len(X[i]) > 6:
            continue
        exact = Enumerated(unary, model.transition_, model.start_, model.end_, parents[i])
        np.testing.assert_allclose(marginals[i], exact.marginals, atol=1e-10)
        assert (
            tuple(model.classes_.tolist().index(label) for label in model.predict(X, parents=parents)[i])
            == exact.best()[0][0]
        )
    assert model.score(X, y, parents=parents) > 0.7
    with pytest.raises(ValueError, match="chains"):
        model.predict_best(X)


@pytest.mark.parametrize(
    ("parents", "match"),
    [
        ([[1, 0]], "circle"),
        ([[-1, 5]], "positions 0 to 1"),
        ([[-1]], "2 whole numbers"),
        ([[-1, 0.5]], "whole numbers"),
        ([], "0 sequences"),
        (3, "list"),
    ],
)
def test_bad_trees(parents: Any, match: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"parents.*{match}"):
        TreeCRF().fit([["a", "b"]], [["x", "y"]], parents=parents)


def test_stochastic_descent_comes_near_the_optimum() -> None:
    X, y = text(80)
    exact = LinearChainCRF(alpha=0.05, states="all", hashing=512).fit(X, y)
    model = LinearChainCRF(alpha=0.05, states="all", hashing=512)
    order = np.random.default_rng(0)
    for _ in range(30):
        some = order.permutation(len(X))
        model.partial_fit([X[i] for i in some], [y[i] for i in some], classes=["A", "D", "N", "R", "V"])
    assert not model.certificate_.certified
    loss = -model.log_likelihood(X, y).mean() + 0.025 * (
        (model.coef_**2).sum() + (model.transition_**2).sum() + (model.start_**2).sum() + (model.end_**2).sum()
    )
    assert loss < 1.02 * exact.certificate_.objective
    with pytest.raises(ValueError, match="classes"):
        LinearChainCRF().partial_fit(X, y)
    with pytest.raises(ValueError, match="l2"):
        LinearChainCRF(penalty="l1").partial_fit(X, y, classes=["A", "D", "N", "R", "V"])
    with pytest.raises(ValueError, match="not seen"):
        model.partial_fit([["x"]], [["Z"]])


def test_partial_fit_goes_on_from_fit() -> None:
    X, y = text(30)
    model = LinearChainCRF(alpha=0.05).fit(X, y)
    before = model.log_likelihood(X, y).sum()
    model.partial_fit(X, y)
    assert model.log_likelihood(X, y).sum() > 1.5 * before


def test_warm_start_goes_on() -> None:
    X, y = text(40)
    model = LinearChainCRF(alpha=0.01, warm_start=True).fit(X, y)
    assert model.fit(X, y).certificate_.iterations <= 1


def test_a_long_sequence_does_not_underflow() -> None:
    X, y = text(60)
    model = LinearChainCRF(alpha=0.001).fit(X, y)
    rng = np.random.default_rng(0)
    long = [[str(rng.choice(X[i % 60])) for i in range(5000)]]
    marginals = model.predict_marginals(long)[0]
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, rtol=1e-9)
    assert np.isfinite(model.log_likelihood(long, model.predict(long))).all()
    assert len(model.fit(long + X, model.predict(long) + y).predict(long)[0]) == 5000


def test_large_scores_of_a_long_sequence_keep_their_digits() -> None:
    """Scores that only log space can hold: marginals against the same recursion on the last hundred positions."""
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(4, 3)) for _ in range(20)], [[0, 2, 1, 0]] * 20
    model = LinearChainCRF(alpha=0.05, forbidden=[(0, 1)], bias=False).fit(X, y)
    long = 30 * rng.normal(size=(5000, 3))
    marginals = model.predict_marginals([long])[0]
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, rtol=1e-12)
    end = model.predict_marginals([long[-100:]])[0]
    np.testing.assert_allclose(marginals[-50:], end[-50:], rtol=1e-9, atol=1e-12)


def test_names_of_features() -> None:
    X, y = text(60, noise=0.0)
    model = LinearChainCRF(alpha=0.001, features=["w[0]", "w[-1]|w[0]"]).fit(X, y)
    names = dict(model.top_features("D", 3))
    assert max(names, key=lambda name: names[name]) in ("w[0]=the", "w[0]=a")
    with pytest.raises(ValueError, match="label"):
        model.top_features("nothing")


def test_functions_are_trusted_by_name(tmp_path: Path) -> None:
    X, y = text(10)
    model = LinearChainCRF(features=_own, alpha=0.1).fit(X, y)
    path = save(model, tmp_path / "crf.cfit", trusted=[_own])
    assert load(path, trusted=[_own]).predict(X) == model.predict(X)


def _own(tokens: list[str], t: int) -> list[str]:
    return [tokens[t], tokens[t][-1:]]
