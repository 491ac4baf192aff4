"""The contract of models of texts: what tests/contract asks of models of tables, asked of lists of texts."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from tests.contract.discovery import DOCUMENT_MODELS

from certifit import LogisticRegression
from certifit.parameters import parameters_of
from certifit.persistence import load, save

TEXTS = ["good food", "bad food and wine", "Wine, good wine", "nothing else", "naïve café", "good"]
MODELS = pytest.mark.parametrize("cls", DOCUMENT_MODELS, ids=lambda cls: cls.__name__)
VARIANTS = [{}, {"values": "tfidf", "ngram_range": (1, 2)}, {"analyzer": "char"}, {"hashing": 32}]


def rows(model: Any, texts: Any) -> np.ndarray:
    return model.transform(texts).toarray()


def test_there_are_models_of_texts() -> None:
    assert {cls.__name__ for cls in DOCUMENT_MODELS} == {"BagOfWords"}


@MODELS
@pytest.mark.parametrize("setting", VARIANTS, ids=str)
def test_weights_are_repetitions(cls: Any, setting: dict[str, Any]) -> None:
    weight = [1, 2, 0, 3, 1, 0]
    again = [text for text, w in zip(TEXTS, weight, strict=True) for _ in range(w)]
    weighted, repeated = cls(**setting).fit(TEXTS, sample_weight=weight), cls(**setting).fit(again)
    np.testing.assert_allclose(rows(weighted, TEXTS), rows(repeated, TEXTS))
    for bad, words in (([1.0], "sample_weight"), ([-1.0] * 6, "sample_weight"), ([0.0] * 6, "sample_weight")):
        with pytest.raises(ValueError, match=words):
            cls(**setting).fit(TEXTS, sample_weight=bad)


@MODELS
@pytest.mark.parametrize("setting", VARIANTS, ids=str)
def test_files_pickles_and_clones(cls: Any, setting: dict[str, Any], tmp_path: Path) -> None:
    model = cls(**setting).fit(TEXTS)
    wanted = rows(model, TEXTS)  # after a transform, so that what is computed on demand is there
    save(model, tmp_path / "model.cfit")
    for again in (load(tmp_path / "model.cfit"), pickle.loads(pickle.dumps(model)), clone(model).fit(TEXTS)):
        np.testing.assert_array_equal(rows(again, TEXTS), wanted)
        assert again.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


@MODELS
def test_containers_of_texts(cls: Any) -> None:
    wanted = rows(cls().fit(TEXTS), TEXTS)
    frame = {"text": TEXTS}
    for X in (
        tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), np.array(TEXTS)[:, None], pd.Series(TEXTS),
        pl.Series(TEXTS), pa.chunked_array([TEXTS]), pd.DataFrame(frame), pl.DataFrame(frame), pa.table(frame),
    ):  # fmt: skip
        np.testing.assert_array_equal(rows(cls().fit(X), X), wanted)
    with pytest.raises(ValueError, match="one column"):
        cls().fit(pd.DataFrame({"a": TEXTS, "b": TEXTS}))


@MODELS
def test_composition(cls: Any) -> None:
    y = [1, 0, 1, 0, 0, 1]
    assert make_pipeline(cls(), LogisticRegression(alpha=0.01)).fit(TEXTS, y).score(TEXTS, y) == 1.0
    frame = pd.DataFrame({"text": TEXTS, "number": range(6)})
    both = ColumnTransformer([("words", cls(), "text"), ("rest", "passthrough", ["number"])]).fit(frame)
    assert "words__good" in both.get_feature_names_out()


@MODELS
def test_before_a_fit(cls: Any) -> None:
    for call in (lambda: cls().transform(TEXTS), lambda: cls().get_feature_names_out()):
        with pytest.raises(NotFittedError):
            call()


@MODELS
def test_nonsense_is_refused_by_name(cls: Any) -> None:
    for name, parameter in parameters_of(cls).items():
        for value in parameter.domain.nonsense():
            with pytest.raises((ValueError, TypeError), match=name):
                cls(**{name: value}).fit(TEXTS)


@MODELS
def test_fit_changes_nothing_it_was_given(cls: Any) -> None:
    texts = list(TEXTS)
    model = cls()
    before = model.get_params()
    model.fit(texts)
    assert texts == TEXTS
    assert model.get_params() == before
