"""Costs as users give them, and a contest of several classes that follows them from the scores to the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certifit import Contest, CostMatrix, load, save
from certifit.contest.costs import as_plain, costs_of
from certifit.contest.record.predicting import inspect_model, predict_file
from certifit.contest.report.page import render
from certifit.datasets import load_penguins
from certifit.evaluation.decisions.thresholds import Costs
from certifit.onnx import to_onnx

CLASSES = ("cat", "cow", "dog")
NAMED = {"cat": {"dog": 1, "cow": 4}, "dog": {"cat": 1, "cow": 4}, "cow": {"cat": 9, "dog": 9}}
WANTED = [[0.0, 4.0, 1.0], [9.0, 0.0, 9.0], [1.0, 4.0, 0.0]]


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_a_matrix_in_every_form(tmp_path: Path) -> None:
    forms = [
        NAMED,
        json.dumps(NAMED),
        WANTED,
        json.dumps(WANTED),
        CostMatrix(WANTED, classes=CLASSES),
        written(tmp_path, "costs.json", json.dumps(NAMED)),
        tmp_path / "costs.json",
        written(tmp_path, "costs.csv", "\ufefftruth,cat,dog,cow\ncat,0,1,4\n\ndog, 1 ,,4\ncow,9,9,0\n"),
    ]
    for form in forms:
        costs = costs_of(form, CLASSES)
        assert isinstance(costs, CostMatrix)
        np.testing.assert_array_equal(costs.matrix, WANTED)
        again = costs_of(as_plain(costs), CLASSES)
        assert isinstance(again, CostMatrix)
        np.testing.assert_array_equal(again.matrix, WANTED)


def test_two_classes_in_every_form() -> None:
    for form in ("fp=1,fn=5", {"fp": 1, "fn": 5}, Costs(1, 5), [[0, 1], [5, 0]], {"no": {"yes": 1}, "yes": {"no": 5}}):
        costs = costs_of(form, ("no", "yes"))
        assert costs == Costs(1.0, 5.0)
        assert as_plain(costs) == {"fp": 1.0, "fn": 5.0}
    assert as_plain(Costs(2.0, 5.0, tp=1.0)) == {"fp": 2.0, "fn": 5.0, "tp": 1.0}


BAD: dict[str, tuple[Any, str]] = {
    "two numbers for three classes": ("fp=1,fn=5", "there are 3: cat, cow, dog"),
    "unknown class": ({**NAMED, "hen": {"cat": 1}}, "no class 'hen'"),
    "unknown answer": ({"cat": {"hen": 1}}, "no class 'hen'"),
    "missing": ({"cat": {"dog": 1}}, "saying 'cow' for 'cat' costs is missing"),
    "not a number": ({**NAMED, "cat": {"dog": "dear", "cow": 1}}, "costs 'dear', which is no number"),
    "NaN": ({**NAMED, "cat": {"dog": "nan", "cow": 1}}, "missing, or no number"),
    "shape": ([[0, 1], [1, 0]], "3 rows and 3 columns, in the order cat, cow, dog"),
    "ragged": ([[0, 1], [1]], "the cost matrix must be numbers"),
    "negative diagonal": (
        [[-1, 1, 1], [1, 0, 1], [1, 1, 0]],
        "negative diagonal: the right decision for class 'cat' costs -1",
    ),
    "cheap mistake": (
        [[2, 1, 3], [1, 0, 1], [1, 1, 0]],
        "cheaper than the right decision: saying 'cow' for class 'cat'",
    ),
    "all the same": ([[0, 0, 0], [0, 0, 0], [0, 0, 0]], "no mistake costs more"),
    "other classes": (CostMatrix(WANTED, classes=["a", "b", "c"]), "is for the classes"),
    "half a mapping": ({"cat": 3, "dog": {"cat": 1}}, "must have a cost for each answer"),
    "no JSON": ("{cat: 1}", "no JSON"),
    "no file": ("nowhere.csv", "no file 'nowhere.csv'"),
    "a number": (3, "at least two classes"),
}


@pytest.mark.parametrize(("given", "words"), BAD.values(), ids=BAD)
def test_bad_costs_are_named(given: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        costs_of(given, CLASSES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("truth,cat,dog,cow\n", "no rows"),
        ("truth,cat,dog\ncat,0\n", "has 1 costs"),
        ("truth,cat,dog\ncat,0,1\ncat,0,1\n", "twice"),
        ("x" * 1_000_001, "more than"),
    ],
)
def test_bad_files_are_named(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        costs_of(written(tmp_path, "costs.csv", text), CLASSES)
    (tmp_path / "costs.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="UTF-8"):
        costs_of(tmp_path / "costs.json", CLASSES)


def test_costs_need_classes() -> None:
    with pytest.raises(ValueError, match="leave it out"):
        costs_of("fp=1,fn=5", ())


SPECIES = {
    "Adelie": {"Chinstrap": 1, "Gentoo": 1},
    "Chinstrap": {"Adelie": 20, "Gentoo": 20},
    "Gentoo": {"Adelie": 1, "Chinstrap": 1},
}


@pytest.fixture(scope="module")
def result() -> Any:
    frame = load_penguins().frame.select("species", "bill_depth_mm", "sex")
    return Contest(frame, "species", entrants=["logistic"], time=8, cost=SPECIES, metric="cost").run()


def test_labels_scores_and_record_follow_the_costs(result: Any) -> None:
    record, model = result.record, result.winner
    frame = load_penguins().frame
    p = model.predict_proba(frame)
    matrix = np.array([[SPECIES[k].get(a, 0) for a in model.classes] for k in model.classes], dtype=float)
    wanted = np.array(model.classes, dtype=object)[
        [int(np.argmin([row @ matrix[:, a] for a in range(3)])) for row in p]
    ]
    np.testing.assert_array_equal(model.predict(frame), wanted)
    assert (wanted != np.array(model.classes, dtype=object)[p.argmax(axis=1)]).any()
    assert record["task"]["metric"]["name"] == "expected_cost"
    page = record["finalists"]["logistic"]
    counts = np.array(page["confusion"]["counts"])
    assert result.score("logistic") == pytest.approx((counts * matrix).sum() / counts.sum())
    assert page["decisions"]["cost"] == pytest.approx(result.score("logistic"))
    assert page["decisions"]["cost"] < min(page["decisions"]["most_probable"], *page["decisions"]["always"])
    p, truth = (np.array(page["decisions"][key]) for key in ("probabilities", "truth"))
    assert matrix[truth, (p @ matrix).argmin(axis=1)].mean() == pytest.approx(page["decisions"]["cost"])
    named = {
        k: dict(zip(model.classes, row, strict=True)) for k, row in zip(model.classes, matrix.tolist(), strict=True)
    }
    assert record["options"]["cost"] == named
    assert "costs the least in expectation" in record["summary"][0]


def test_the_page_decides_by_the_costs(result: Any) -> None:
    page = render(result.record)
    for words in ("What do mistakes cost you?", "least expected cost", "always “", "--cost"):
        assert words in page
    assert "decide-slider" not in page.split("<script")[0]
    result.record["finalists"]["logistic"].pop("decisions")
    assert "least expected cost" not in render(result.record)


def test_the_file_decides_by_the_costs(result: Any, tmp_path: Path) -> None:
    path = save(result.winner, tmp_path / "model.cfit")
    frame = load_penguins().frame.head(30)
    np.testing.assert_array_equal(load(path).predict(frame), result.winner.predict(frame))
    frame.write_csv(tmp_path / "new.csv")
    found = predict_file(path, str(tmp_path / "new.csv"), probabilities=False, as_json=False)
    assert [line.strip() for line in found.text.splitlines()[1:]] == result.winner.predict(frame).tolist()
    assert any("costs the least" in note for note in found.notes)
    assert inspect_model(path)["costs"] == result.winner.costs.tolist()


def test_onnx_decides_by_the_costs(result: Any) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    frame = load_penguins().frame.drop_nulls().head(50)
    session = runtime.InferenceSession(to_onnx(result.winner))
    feeds = {
        "bill_depth_mm": frame["bill_depth_mm"].to_numpy()[:, None].astype(np.float64),
        "sex": frame["sex"].to_numpy().astype(object)[:, None],
    }
    label = session.run(["label"], feeds)[0]
    np.testing.assert_array_equal(label, result.winner.predict(frame))
