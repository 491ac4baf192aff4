"""The contest of taggers from file to page, and the command that holds it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.models.structured.sequences import text
from typer.testing import CliRunner

from certifit import load
from certifit.cli import app
from certifit.contest.report import render
from certifit.contest.tagging.contest import TAGGERS, TaggingContest
from certifit.contest.tagging.model import WordMajority, tagged_text

RUNNER = CliRunner()
ROW = "{}\t{}\t_\t{}\t_\t_\t0\t_\t_\t_\n"


def conllu(path: Path, n: int, seed: int) -> Path:
    X, y = text(n, seed)
    sentences = (
        "".join(ROW.format(t + 1, w, k) for t, (w, k) in enumerate(zip(words, tags, strict=True)))
        for words, tags in zip(X, y, strict=True)
    )
    path.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    return path


def names(path: Path, n: int) -> Path:
    sentences = ["Ann B-PER\nLee I-PER\nsaw O\nRome B-LOC\n", "He O\nleft O\nParis B-LOC\n", "Bo B-PER\nran O\n"]
    path.write_text("\n".join(sentences[k % 3] for k in range(n)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a contest held by the command."""
    folder = tmp_path_factory.mktemp("tagging")
    train, test = conllu(folder / "train.conllu", 120, 0), conllu(folder / "test.conllu", 60, 1)
    done = RUNNER.invoke(app, ["tag", str(train), str(test), "--out", str(folder / "out")])
    assert done.exit_code == 0, done.output
    assert "Conditional random field: token accuracy" in done.output
    return folder


def test_every_tagger_is_scored_with_an_interval(held: Path) -> None:
    run = json.loads((held / "out" / "run.json").read_text(encoding="utf-8"))
    assert {e["name"] for e in run["entrants"]} == {tagger.name for tagger in TAGGERS}
    for entrant in run["entrants"]:
        assert entrant["status"] == "finished"
        assert entrant["score"]["low"] <= entrant["score"]["value"] <= entrant["score"]["high"]
    values = [entrant["score"]["value"] for entrant in run["entrants"]]
    assert values == sorted(values, reverse=True)
    assert len(run["leaderboard"]["pairs"]) == 10
    assert run["data"]["test_sentences"] == 60
    by_name = {entrant["name"]: entrant for entrant in run["entrants"]}
    assert by_name["crf"]["certificate"]["verdict"] == "certified"
    assert by_name["crf"]["score"]["value"] > 0.8


def test_the_page_is_one_file_that_asks_nobody(held: Path) -> None:
    page = (held / "out" / "report.html").read_text(encoding="utf-8")
    assert "Conditional random field" in page
    assert "The most frequent mistakes" in page
    assert "certifit tag" in page
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", page)
    assert "default-src &#39;none&#39;" in page
    run = json.loads((held / "out" / "run.json").read_text(encoding="utf-8"))
    assert render(run) == page
    assert (
        RUNNER.invoke(app, ["report", str(held / "out" / "run.json"), "--out", str(held / "again.html")]).exit_code == 0
    )


def test_text_from_files_is_never_markup(tmp_path: Path) -> None:
    path = tmp_path / "evil.conll"
    path.write_text("<script>alert(1)</script> X\nb Y\n\nb Y\nb X\n\n" * 12, encoding="utf-8")
    result = TaggingContest(path, path, entrants=["perceptron"]).run()
    assert "<script>alert" not in render(result.record)


def test_predict_fills_the_column(held: Path) -> None:
    model = held / "out" / "model.cfit"
    done = RUNNER.invoke(app, ["predict", str(model), str(held / "test.conllu")])
    assert done.exit_code == 0, done.output
    rows = [line.split("\t") for line in done.output.splitlines() if line]
    assert all(len(row) == 10 for row in rows)
    said = [row[3] for row in rows]
    wanted = [
        label
        for labels in load(model).predict(TaggingContest(held / "train.conllu", held / "test.conllu").test.tokens)
        for label in labels
    ]
    assert said == wanted
    out = held / "said.conllu"
    assert RUNNER.invoke(app, ["predict", str(model), str(held / "test.conllu"), "--out", str(out)]).exit_code == 0
    assert out.read_text(encoding="utf-8") == done.output
    assert RUNNER.invoke(app, ["inspect", str(model)]).exit_code == 0


def test_spans_are_what_counts_where_labels_mark_spans(tmp_path: Path) -> None:
    train, test = names(tmp_path / "train.conll", 60), names(tmp_path / "test.conll", 12)
    result = TaggingContest(train, test, entrants=["crf", "hmm"]).run()
    assert result.record["task"]["metric"]["name"] == "span_f1"
    assert result.record["task"]["target"] == "tag"
    assert result.record["entrants"][0]["score"]["value"] == 1.0
    bare = tmp_path / "bare.conll"
    bare.write_text("Ann\nleft\n\nRome\n", encoding="utf-8")
    written, words = tagged_text(result.model, bare)
    assert words == 3
    assert [len(line.split()) for line in written.splitlines() if line] == [2, 2, 2]


def test_sentences_without_a_span(tmp_path: Path) -> None:
    # The sentences set aside, or all of the test, may hold no span: then the labels are counted.
    plain = tmp_path / "plain.conll"
    plain.write_text("we O\nleft O\n\n" * 30, encoding="utf-8")
    train = names(tmp_path / "train.conll", 2)
    train.write_text(train.read_text(encoding="utf-8") + plain.read_text(encoding="utf-8"), encoding="utf-8")
    assert TaggingContest(train, train, entrants=["hmm"]).run().record["task"]["metric"]["name"] == "span_f1"
    assert TaggingContest(train, plain, entrants=["hmm"]).run().record["task"]["metric"]["name"] == "accuracy"
    with pytest.raises(ValueError, match="'span_f1' needs labels that mark spans"):
        TaggingContest(train, plain, metric="span_f1")


def test_one_failing_tagger_ends_nobody_elses_contest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = conllu(tmp_path / "train.conllu", 30, 0)

    def broken(self: object, X: object, y: object) -> None:
        raise ValueError("out of luck")

    monkeypatch.setattr("certifit.models.structured.hmm.HMM.fit", broken)
    record = TaggingContest(train, train, entrants=["hmm", "perceptron"]).run().record
    assert [(e["name"], e["status"]) for e in record["entrants"]][-1] == ("hmm", "failed")
    assert "out of luck" in render(record)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--target", "nothing", "no column 'nothing'"),
        ("--entrants", "crf,nobody", "no tagger 'nobody'"),
        ("--metric", "luck", "metric must be one of"),
        ("--target", "xpos", "without a xpos"),
    ],
)
def test_wrong_options_are_one_line(tmp_path: Path, option: str, value: str, message: str) -> None:
    train = conllu(tmp_path / "train.conllu", 10, 0)
    done = RUNNER.invoke(app, ["tag", str(train), str(train), "--out", str(tmp_path / "out"), option, value])
    assert done.exit_code == 2
    assert message in done.output


def test_a_broken_file_is_named_with_its_line(tmp_path: Path) -> None:
    train = conllu(tmp_path / "train.conllu", 10, 0)
    broken = tmp_path / "broken.conllu"
    broken.write_text(train.read_text(encoding="utf-8") + "1\tshort\n", encoding="utf-8")
    done = RUNNER.invoke(app, ["tag", str(train), str(broken), "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert re.search(r"broken\.conllu, line \d+: CoNLL-U has 10 columns", done.output)
    assert RUNNER.invoke(app, ["tag", str(train), str(tmp_path / "none.conllu")]).exit_code == 2


def test_the_floor_is_the_most_frequent_label() -> None:
    model = WordMajority().fit([["a", "a", "b"], ["a"]], [["x", "y", "z"], ["x"]])
    assert model.predict([["a", "b", "c"]]) == [["x", "z", "x"]]
