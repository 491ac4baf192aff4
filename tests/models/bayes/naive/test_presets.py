"""Naive Bayes against scikit-learn's, against formulas by hand, and against itself in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn import naive_bayes

from certifit import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB, NaiveBayes

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 90)
NUMBERS = RNG.normal(size=(90, 4)) + Y[:, None]
COUNTS = RNG.poisson(1.0 + Y[:, None], size=(90, 4)).astype(float)
CODES = RNG.integers(0, 4, size=(90, 4)).astype(float)
EACH = [0.3, 1.0, 0.0, 2.0]
PAIRS = {
    "bernoulli": (BernoulliNB(), naive_bayes.BernoulliNB(), COUNTS),
    "multinomial": (MultinomialNB(alpha=0.3), naive_bayes.MultinomialNB(alpha=0.3), COUNTS),
    "complement": (ComplementNB(), naive_bayes.ComplementNB(), COUNTS),
    "each column": (MultinomialNB(alpha=EACH), naive_bayes.MultinomialNB(alpha=np.array(EACH)), COUNTS),
    "normalized": (ComplementNB(norm=True), naive_bayes.ComplementNB(norm=True), COUNTS),
    "sparse": (MultinomialNB(), naive_bayes.MultinomialNB(), sp.csr_array(COUNTS)),
    "categorical": (CategoricalNB(), naive_bayes.CategoricalNB(), CODES),
    "uniform": (MultinomialNB(fit_prior=False), naive_bayes.MultinomialNB(fit_prior=False), COUNTS),
}


@pytest.mark.parametrize("name", PAIRS)
def test_counts_give_the_peer_s_probabilities(name: str) -> None:
    ours, theirs, X = PAIRS[name]
    np.testing.assert_allclose(ours.fit(X, Y).predict_proba(X), theirs.fit(X, Y).predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("smoothing", [1e150, 1e308])
def test_beside_a_smoothing_beyond_all_numbers_classes_differ_by_their_shares(smoothing: float) -> None:
    X, y = 1e140 * np.random.default_rng(0).normal(size=(8, 3)), np.arange(8) % 4 == 0
    model = GaussianNB(var_smoothing=smoothing).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), np.tile([0.75, 0.25], (8, 1)), rtol=1e-12)


def test_smoothing_of_each_column() -> None:
    model = CategoricalNB(alpha=EACH).fit(CODES, Y)
    for j, alpha in enumerate(EACH):
        alone = CategoricalNB(alpha=alpha).fit(CODES[:, [j]], Y)
        np.testing.assert_allclose(model.feature_log_prob_[j], alone.feature_log_prob_[0])
        of_one = BernoulliNB(alpha=alpha).fit(CODES[:, [j]], Y).feature_log_prob_[:, 0]
        np.testing.assert_allclose(BernoulliNB(alpha=EACH).fit(CODES, Y).feature_log_prob_[:, j], of_one)
    for kind in (MultinomialNB, BernoulliNB, CategoricalNB, ComplementNB):
        with pytest.raises(ValueError, match="one for each of the 4 columns; got 3"):
            kind(alpha=EACH[:3]).fit(CODES, Y)


def test_gaussian_densities_by_hand() -> None:
    model = GaussianNB(var_smoothing=0.0).fit(NUMBERS, Y)
    joint = np.column_stack(
        [
            np.log(np.mean(k == Y)) + stats.norm(NUMBERS[k == Y].mean(0), NUMBERS[k == Y].std(0)).logpdf(NUMBERS).sum(1)
            for k in range(3)
        ]
    )
    np.testing.assert_allclose(model.predict_joint_log_proba(NUMBERS), joint, rtol=1e-9)


def test_complement_against_its_formula() -> None:
    model = ComplementNB(alpha=1.0).fit(COUNTS, Y)
    for k in range(3):
        other = COUNTS[k != Y].sum(axis=0) + 1.0
        np.testing.assert_allclose(model.feature_log_prob_[k], -np.log(other / other.sum()))


def test_counts_without_smoothing() -> None:
    """Where nothing counts all columns are alike; weights that are divided by their sum go to their limit as alpha vanishes."""
    nothing = np.zeros((2, 3))
    for model in (MultinomialNB(alpha=0.0), ComplementNB(alpha=0.0), ComplementNB(alpha=0.0, norm=True)):
        np.testing.assert_allclose(model.fit(nothing, [0, 1]).predict_proba(nothing), 0.5)
    X = np.eye(3)
    found = ComplementNB(alpha=0.0, norm=True).fit(X, [0, 1, 2])
    np.testing.assert_allclose(found.feature_log_prob_, X, atol=1e-12)


@pytest.mark.parametrize("kind", [MultinomialNB, ComplementNB])
def test_counts_whose_sums_are_no_numbers_are_refused(kind: Any) -> None:
    with pytest.raises(ValueError, match="beyond double precision"):
        kind().fit(np.full((3, 4), 1e308), [0, 1, 1])
    with pytest.raises(ValueError, match="beyond double precision"):
        kind(alpha=1e308).fit(np.eye(3, 4), [0, 1, 1])


@pytest.mark.parametrize("ratio", [1e-4, 1e-9])
def test_narrow_classes_far_apart_keep_their_digits(ratio: float) -> None:
    X = np.array([[0.0], [ratio], [2 * ratio], [1.0], [1.0 + ratio], [1.0 + 2 * ratio]])
    y = np.array([0, 0, 0, 1, 1, 1])
    model = GaussianNB(var_smoothing=0.0).fit(X, y)
    joint = np.column_stack(
        [np.log(0.5) + stats.norm(X[y == k].mean(), X[y == k].std()).logpdf(X[:, 0]) for k in (0, 1)]
    )
    np.testing.assert_allclose(model.predict_joint_log_proba(X), joint, rtol=1e-6)


@pytest.mark.parametrize(
    ("model", "X"),
    [
        (GaussianNB(), NUMBERS),
        (BernoulliNB(), COUNTS),
        (MultinomialNB(), COUNTS),
        (CategoricalNB(), CODES),
        (NaiveBayes(), NUMBERS),
    ],
    ids=lambda value: type(value).__name__,
)
def test_blocks_add_up_to_the_whole(model: Any, X: Any) -> None:
    whole = model.fit(X, Y).predict_proba(X)
    parts = type(model)(**model.get_params())
    for rows in (slice(0, 20), slice(20, 25), slice(25, None)):
        parts.partial_fit(X[rows], Y[rows], classes=[0, 1, 2])
    np.testing.assert_allclose(parts.predict_proba(X), whole, rtol=1e-9)


def test_a_missing_value_is_left_out_of_the_product() -> None:
    X = NUMBERS.copy()
    X[::3, 1] = np.nan
    model = GaussianNB(var_smoothing=0.0).fit(X, Y)
    row = X[1].copy()
    row[2] = np.nan
    known = [0, 1, 3]
    joint = [
        np.log(np.mean(k == Y))
        + sum(stats.norm(np.nanmean(X[k == Y, j]), np.nanstd(X[k == Y, j])).logpdf(row[j]) for j in known)
        for k in range(3)
    ]
    np.testing.assert_allclose(model.predict_joint_log_proba(row[None])[0], joint, rtol=1e-9)
    everything = np.full((1, 4), np.nan)
    np.testing.assert_allclose(model.predict_proba(everything)[0], np.bincount(Y) / 90)


@pytest.mark.parametrize("model", [MultinomialNB(), ComplementNB(), BernoulliNB(), BernoulliNB(binarize=None)], ids=str)
def test_what_is_missing_is_missing_in_sparse_rows_too(model: Any) -> None:
    X = np.minimum(COUNTS, 1).astype(float)
    X[::5, 1] = np.nan
    wanted = model.fit(X, Y).predict_joint_log_proba(X)
    rows = sp.csr_array(X)
    np.testing.assert_allclose(model.fit(rows, Y).predict_joint_log_proba(rows), wanted, rtol=1e-12)


def test_mixed_columns_multiply_their_factors() -> None:
    colour = np.array(["red", "green", "blue"])[RNG.integers(0, 3, 90)]
    table = pl.DataFrame({"size": NUMBERS[:, 0], "colour": colour, "calls": COUNTS[:, 0], "yes": COUNTS[:, 1] > 1})
    model = NaiveBayes(kinds={"calls": "poisson"}, var_smoothing=0.0).fit(table, Y)
    assert model.kinds_ == ["gaussian", "categorical", "poisson", "categorical"]
    row, k = 7, 1
    own = k == Y
    share = (np.sum(own & (colour == colour[row])) + 1) / (own.sum() + 3)
    truth = table["yes"].to_numpy()
    yes = (np.sum(own & (truth == truth[row])) + 1) / (own.sum() + 2)
    rate = (COUNTS[own, 0].sum() + COUNTS[:, 0].mean()) / (own.sum() + 1)
    wanted = (
        np.log(own.mean())
        + stats.norm(NUMBERS[own, 0].mean(), NUMBERS[own, 0].std()).logpdf(NUMBERS[row, 0])
        + np.log(share)
        + np.log(yes)
        + stats.poisson(rate).logpmf(COUNTS[row, 0])
    )
    np.testing.assert_allclose(model.predict_joint_log_proba(table)[row, k], wanted, rtol=1e-9)


def test_a_kernel_density_sees_two_humps() -> None:
    x = np.concatenate([RNG.normal(-3, 0.3, 100), RNG.normal(3, 0.3, 100), RNG.normal(0, 0.3, 200)])[:, None]
    y = np.repeat([0, 1], 200)
    assert np.mean(NaiveBayes(kinds="kernel").fit(x, y).predict(x) == y) > 0.99
    grid = np.linspace(-20, 20, 4001)
    factor = NaiveBayes(kinds="kernel").fit(x, y)._factors[0]
    density = np.exp(factor.scores(grid[:, None]))
    np.testing.assert_allclose(density.sum(axis=0) * 0.01, 1.0, atol=0.01)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (RNG.normal(size=200), RNG.normal(size=150) + 1.0),
        (1e-4 * RNG.normal(size=200), RNG.normal(size=150)),
        (np.append(RNG.normal(size=200), 1e5), RNG.normal(size=150) + 1.0),
        (1e-140 * RNG.normal(size=200), 1e-140 * RNG.normal(size=150) + 1e-140),
    ],
    ids=["alike", "narrow and wide", "an outlier", "tiny"],
)
def test_kernel_densities_are_those_of_the_values(a: np.ndarray, b: np.ndarray) -> None:
    model = NaiveBayes(kinds="kernel").fit(np.concatenate([a, b])[:, None], np.repeat([0, 1], [len(a), len(b)]))
    unit = np.abs(np.concatenate([a, b])).max()

    def density(values: np.ndarray, x: np.ndarray) -> np.ndarray:
        v = np.sort(values) / unit  # what is squared must not vanish
        quartile = v[int(np.ceil(0.75 * len(v))) - 1] - v[int(np.ceil(0.25 * len(v))) - 1]
        h = 0.9 * min(v.std(), quartile / 1.34) * len(v) ** -0.2
        return np.array([stats.norm(one, h).pdf(v).mean() / unit for one in x / unit])

    for x in (a[:30], b[:30]):
        exact = np.column_stack([density(a, x), density(b, x)])
        pooled = exact @ [len(a), len(b)] / (len(a) + len(b))
        wanted = np.log(0.999 * exact + 0.001 * pooled[:, None]) + model.class_log_prior_
        np.testing.assert_allclose(model.predict_joint_log_proba(x[:, None]), wanted, atol=1e-3)


def test_kernel_densities_of_little() -> None:
    X = np.column_stack([np.append(RNG.normal(size=20), 0.1), np.full(21, np.nan), np.ones(21)])
    model = NaiveBayes(kinds="kernel").fit(X, np.append(np.zeros(20), 1.0))
    proba = model.predict_proba(X)
    assert np.isfinite(proba).all()
    # One row of a class is no spike: its density is as wide as that of all rows.
    assert proba[:, 1].max() < 0.5
    bare = NaiveBayes(kinds="kernel").fit(X[:, :1], np.append(np.zeros(20), 1.0))
    np.testing.assert_allclose(proba, bare.predict_proba(X[:, :1]))


def test_an_unseen_category_is_left_out() -> None:
    table = pl.DataFrame({"a": ["x", "y", "x", "y"], "b": [0.0, 1.0, 4.0, 5.0]})
    model = NaiveBayes().fit(table, [0, 0, 1, 1])
    known = model.predict_proba(pl.DataFrame({"a": [None], "b": [2.0]}, schema={"a": pl.String, "b": pl.Float64}))
    np.testing.assert_allclose(model.predict_proba(pl.DataFrame({"a": ["z"], "b": [2.0]})), known)


def test_an_explanation_adds_up_to_the_log_odds() -> None:
    model = GaussianNB().fit(NUMBERS[Y < 2], Y[Y < 2])
    told = model.explain(NUMBERS[0])
    joint = model.predict_joint_log_proba(NUMBERS[:1])[0]
    np.testing.assert_allclose(
        told.log_odds[:, 1].sum() + told.prior[1] - told.prior[0], joint[1] - joint[0], rtol=1e-9
    )
    assert told.winner == model.predict(NUMBERS[:1])[0]
    assert told.plot().get_xlabel().startswith("log odds")


SEEN = (COUNTS > 1).astype(float)
SEEN[Y == 0, 0], SEEN[Y == 1, 1], SEEN[:, 3] = 1.0, 0.0, 0.0


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("kind", [BernoulliNB, MultinomialNB, ComplementNB, CategoricalNB])
def test_an_explanation_has_the_winner_of_the_prediction(kind: Any, alpha: float) -> None:
    model = kind(alpha=alpha).fit(SEEN, Y)
    for row, label in zip(SEEN[:30], model.predict(SEEN[:30]), strict=True):
        told = model.explain(row)
        assert told.winner == label
        assert not np.isnan(told.log_odds).any()
    told.plot()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_shares_of_zero_hide_nothing_else(form: Any) -> None:
    with np.errstate(divide="ignore"):
        shares = [SEEN[k == Y].mean(axis=0) for k in range(3)]
        joint = np.column_stack(
            [np.log(np.where(SEEN > 0, p, 1 - p)).sum(axis=1) + np.log(np.mean(k == Y)) for k, p in enumerate(shares)]
        )
    wanted = np.exp(joint - joint.max(axis=1, keepdims=True))
    found = BernoulliNB(alpha=0.0).fit(form(SEEN), Y).predict_proba(form(SEEN))
    np.testing.assert_allclose(found, wanted / wanted.sum(axis=1, keepdims=True), atol=1e-12)


@pytest.mark.parametrize("kind", [MultinomialNB, ComplementNB])
def test_many_of_what_was_never_seen(kind: Any) -> None:
    model = kind(alpha=0.0).fit(SEEN, Y)
    assert np.isfinite(model.predict_proba([[0.0, 0.0, 0.0, 1e10]])).all()
    assert np.isfinite(model.predict_proba(SEEN)).all()


def test_rows_to_explain() -> None:
    table = pd.DataFrame({"size": NUMBERS[:, 0], "coat": np.where(CODES[:, 0] > 1, "fur", "skin")})
    model = NaiveBayes().fit(table, Y)
    row = table.iloc[3]
    wanted = model.explain(table.iloc[[3]]).terms
    for one in (row, row.to_dict(), {"coat": row["coat"], "size": row["size"]}, pl.from_pandas(table)[3]):
        np.testing.assert_array_equal(model.explain(one).terms, wanted)
    for wrong, words in (
        (table, "x must be one row; it has 90"),
        ({"size": 1.0}, "x must have a value for each column"),
        (3.0, "x must be one row"),
    ):
        with pytest.raises(ValueError, match=words):
            model.explain(wrong)


@pytest.mark.parametrize(
    ("model", "X", "words"),
    [
        (GaussianNB(priors=[0.5, 0.6, 0.1]), NUMBERS, "sum to 1"),
        (GaussianNB(priors=[0.5, 0.5]), NUMBERS, "3 probabilities"),
        (MultinomialNB(), -COUNTS - 1, "Negative values"),
        (CategoricalNB(), NUMBERS, "category numbers"),
        (NaiveBayes(kinds={"nope": "gaussian"}), NUMBERS, "does not have"),
        (NaiveBayes(kinds="gauss"), NUMBERS, "must be among"),
        (NaiveBayes(kinds="poisson"), NUMBERS, "counts must be >= 0"),
        (BernoulliNB(binarize=None), NUMBERS, "zeros and ones"),
    ],
)
def test_what_cannot_be_counted_is_refused(model: Any, X: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        model.fit(X, Y)


def test_partial_fit_refuses_what_it_was_not_told() -> None:
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        GaussianNB().partial_fit(NUMBERS, Y)
    model = GaussianNB().partial_fit(NUMBERS, Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="not in classes"):
        model.partial_fit(NUMBERS, Y + 1)
    with pytest.raises(ValueError, match="not the same as on last call"):
        model.partial_fit(NUMBERS, Y, classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.partial_fit(NUMBERS[:, :2], Y)


def test_columns_that_say_nothing() -> None:
    X = np.column_stack([NUMBERS[:, 0], np.full(90, 3.0), np.full(90, np.nan)])
    np.testing.assert_allclose(
        GaussianNB().fit(X, Y).predict_proba(X), GaussianNB().fit(X[:, :1], Y).predict_proba(X[:, :1])
    )
    one = np.r_[Y, 3]
    assert np.isfinite(GaussianNB().fit(np.vstack([NUMBERS, [[9.0] * 4]]), one).predict_proba(NUMBERS)).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("K", [2, 3, 4, 5, 8, 9, 16, 17, 25, 32, 33, 70])
def test_scores_of_sparse_rows_are_those_of_dense_ones_for_any_number_of_classes(K: int, dtype: type) -> None:
    """Classes are scored in blocks, the last of which may overlap the one before."""
    rng = np.random.default_rng(K)
    X = rng.poisson(0.7, size=(3 * K, 11)).astype(dtype)
    y = np.arange(3 * K) % K
    model = MultinomialNB().fit(X, y)
    wanted = X.astype(np.float64) @ model.feature_log_prob_.T + model.class_log_prior_
    for index in (np.int32, np.int64):
        rows = sp.csr_array(X)
        rows.indices, rows.indptr = rows.indices.astype(index), rows.indptr.astype(index)
        found = model.predict_joint_log_proba(rows)
        np.testing.assert_allclose(found, wanted, rtol=1e-12 if dtype == np.float64 else 1e-6)
