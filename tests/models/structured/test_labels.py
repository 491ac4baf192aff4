"""Labels, weights and frames at the gate of the structured models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from certifit import HMM, LinearChainCRF, StructuredPerceptron, TreeCRF

X = [["the", "dog"], ["a", "cat", "runs"], ["go"]]
Y = [["D", "N"], ["D", "N", "V"], ["V"]]
EYE = np.eye(3)


def test_text_of_any_class_is_text() -> None:
    y = [["D", np.str_("N")], ["D", "N", "V"], [np.str_("V")]]
    assert LinearChainCRF().fit(X, y).predict(X) == Y


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (["D", None, "N"], "y must hold labels that are text or numbers; got None of type NoneType"),
        (["D", 1, "N"], "y mixes labels of text with others, such as 1"),
        ([1, b"D", 1], "y mixes labels of text with others"),
        ([[1], [1, 2], 3], "y must hold labels that are text or numbers; got"),
        ([object(), object(), object()], "of type object"),
        (["D", "N"], r"one label for each of the 3 rows of X; its shape is \(2,\)"),
    ],
)
def test_flat_labels_are_judged_like_lists(y: Any, match: str) -> None:
    with pytest.raises((TypeError, ValueError), match=match):
        LinearChainCRF().fit(EYE, y, lengths=[3])


@pytest.mark.parametrize(
    ("classes", "match"),
    [
        (3, "classes must be a list of labels; got 3"),
        (["D", None, "N", "V"], "classes must hold labels that are text or numbers; got None"),
        (["D", 1, "N", "V"], "classes mixes labels of text with others, such as 1"),
        ([1.0, 2.0, np.nan], "classes contains NaN"),
    ],
)
def test_bad_classes_of_partial_fit(classes: Any, match: str) -> None:
    with pytest.raises((TypeError, ValueError), match=match):
        LinearChainCRF().partial_fit(X, Y, classes=classes)


@pytest.mark.parametrize("weight", ["abc", [0.5, 1, 1], [1e20, 1, 1], [1, 1], [np.nan, 1, 1]])
def test_visits_are_whole_numbers(weight: Any) -> None:
    with pytest.raises(ValueError, match="sample_weight of partial_fit counts visits"):
        LinearChainCRF().partial_fit(X, Y, classes=["D", "N", "V"], sample_weight=weight)


def test_weights_of_sequences_that_come_one_by_one() -> None:
    listed = LinearChainCRF().fit(X, Y, sample_weight=[1, 2, 0])
    coming = LinearChainCRF().fit((x for x in X), (y for y in Y), sample_weight=[1, 2, 0])
    np.testing.assert_array_equal(listed.transition_, coming.transition_)


def test_rows_of_frames_are_counted_not_named() -> None:
    columns = [pd.Series(x, index=range(5, 5 + len(x))) for x in X]
    for model in (LinearChainCRF(), HMM()):
        assert model.fit(columns, Y).predict(columns) == Y
        assert model.fit([pl.Series(x) for x in X], [pl.Series(y) for y in Y]).predict(X) == Y
    lists = pd.Series(X, index=[7, 8, 9]), pd.Series(Y, index=[7, 8, 9])
    assert StructuredPerceptron().fit(*lists, sample_weight=[1, 1, 0]).predict(X[:2]) == Y[:2]
    y = [["D", "N", "V"], ["N", "V", "D"]]
    frames = LinearChainCRF().fit([pd.DataFrame(EYE), pl.DataFrame(EYE[::-1])], y)
    np.testing.assert_array_equal(frames.coef_, LinearChainCRF().fit([EYE, EYE[::-1]], y).coef_)


@pytest.mark.parametrize(
    ("model", "sequences", "match"),
    [
        (LinearChainCRF(), [[0, 10**12], [1, 2, 3], [4]], "ids go up to 1000000000000"),
        (LinearChainCRF(hashing=2**33), X, "hashing must be None, or an integer"),
        (LinearChainCRF(features=["w[99999999999999999999]"]), X, "tokens away"),
        (LinearChainCRF(markov=[-1]), [EYE[:2], EYE, EYE[:1]], r"markov must list columns of X, 0 to 2; got \[-1\]"),
        (LinearChainCRF(markov=[0.7]), [EYE[:2], EYE, EYE[:1]], r"markov must list columns of X, 0 to 2; got \[0.7\]"),
    ],
)
def test_numbers_out_of_reach(model: LinearChainCRF, sequences: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        model.fit(sequences, Y)


def test_parents_of_every_sequence_whatever_its_weight() -> None:
    with pytest.raises(ValueError, match="parents has 2 sequences, X has 3"):
        TreeCRF().fit(X, Y, sample_weight=[1, 1, 0], parents=[[1, -1], [1, 2, -1]])


def test_a_tree_without_a_labelling_is_refused() -> None:
    # e and o take turns and every leaf is e: a chain of any length has a labelling, a root above leaves of two depths has none.
    X = [["a"], ["b", "a"], ["a", "b", "a"]]
    model = TreeCRF(forbidden=[("e", "e"), ("o", "o"), ("o", None)])
    model.fit(X, [["e"], ["o", "e"], ["e", "o", "e"]], parents=[[-1], [-1, 0], [-1, 0, 1]])
    tree, odd = [["a", "b", "c", "d"]], [[-1, 0, 0, 2]]
    for ask in (model.predict, model.predict_marginals, model.predict_posterior):
        with pytest.raises(ValueError, match=r"parents\[0\] is a tree whose labels forbidden and required all exclude"):
            ask(tree, parents=odd)
    with pytest.raises(ValueError, match="all exclude"):
        model.log_likelihood(tree, [["e", "o", "o", "e"]], parents=odd)
    assert model.predict([["a", "b", "c"]], parents=[[-1, 0, 1]]) == [["e", "o", "e"]]
