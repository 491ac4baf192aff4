"""Readers of annotated text, and the lines they complain about."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from certifit import read_conll, read_conllu
from certifit.data import conll

ROW = "{}\t{}\t_\t{}\t_\t_\t{}\t_\t_\t_\n"
GOOD = (
    "# sent_id = 1\n"
    + ROW.format("1-2", "don't", "_", "_")
    + ROW.format(1, "do", "AUX", 3)
    + ROW.format(2, "n't", "PART", 3)
    + ROW.format(3, "go", "VERB", 0)
    + ROW.format("3.1", "empty", "_", "_")
    + "\n\n"
    + ROW.format(1, "Hi", "INTJ", 0)
)


@pytest.mark.parametrize("compressed", [False, True])
def test_conllu(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / ("a.conllu.gz" if compressed else "a.conllu")
    path.write_bytes(gzip.compress(GOOD.encode()) if compressed else GOOD.encode())
    corpus = read_conllu(path)
    assert corpus["form"] == [["do", "n't", "go"], ["Hi"]]
    assert corpus["upos"] == [["AUX", "PART", "VERB"], ["INTJ"]]
    assert corpus.parents == [[2, 2, -1], [-1]]
    assert corpus.lines == [3, 9]
    assert (len(corpus), corpus.n_tokens) == (2, 4)
    with pytest.raises(ValueError, match="no column 'ner'"):
        corpus["ner"]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (ROW.format(1, "a", "X", 0) + "2\tb\tX\n", r"line 2: .*this line has 3"),
        (ROW.format(1, "a", "X", 0) + ROW.format(3, "b", "X", 1), "line 2: word 3 where word 2"),
        (ROW.format("one", "a", "X", 0), "line 1: .*'one'"),
        (ROW.format(1, "", "X", 0), "line 1: the word has no form"),
        ("# only a comment\n\n", "no sentences"),
        ("", "no sentences"),
    ],
)
def test_broken_conllu_is_refused_with_the_line(tmp_path: Path, text: str, match: str) -> None:
    path = tmp_path / "broken.conllu"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=match):
        read_conllu(path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "latin.conll"
    path.write_bytes(b"a O\ncaf\xe9 O\n")
    with pytest.raises(ValueError, match="line 2: not UTF-8"):
        read_conll(path)
    torn = tmp_path / "torn.conll.gz"
    torn.write_bytes(gzip.compress(b"a O\n" * 1000)[:-20])
    with pytest.raises(ValueError, match="compressed file is broken"):
        read_conll(torn)


def test_a_head_that_is_no_word(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(ROW.format(1, "a", "X", 7), encoding="utf-8")
    with pytest.raises(ValueError, match=r"line 1.*'7'"):
        _ = read_conllu(path).parents


def test_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("\ufeff-DOCSTART- -X- O\n\nAnn NNP I-PER\r\nran VBD O\n\nOslo NNP I-LOC", encoding="utf-8")
    corpus = read_conll(path)
    assert list(corpus.columns) == ["form", "c1", "tag"]
    assert corpus["tag"] == [["I-PER", "O"], ["I-LOC"]]
    named = read_conll(path, columns=["word", "pos", "ner"])
    assert named.tokens == [["Ann", "ran"], ["Oslo"]]
    path.write_text("Ann I-PER\nran\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2: 1 columns where 2"):
        read_conll(path)


def test_compressed_text_does_not_grow_without_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(conll, "most_inflated", lambda compressed: 10**4 + 100 * compressed)
    bomb = tmp_path / "bomb.conll.gz"
    bomb.write_bytes(gzip.compress(b"a" * 10**7))
    with pytest.raises(ValueError, match=r"bomb\.conll\.gz holds more than \d+ bytes.*gunzip"):
        read_conll(bomb, ("word", "tag"))


def test_damage_within_compressed_text_is_told(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"".join(b"w%d O\n" % k for k in range(500))))
    packed[100:100] = b"\xff" * 50
    (tmp_path / "torn.conll.gz").write_bytes(packed)
    with pytest.raises(ValueError, match=r"line \d+: the compressed file is broken"):
        read_conll(tmp_path / "torn.conll.gz", ("word", "tag"))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"columns": ["w", "w"]}, "columns must be a list of names, each for one column"),
        ({"columns": "wt"}, "columns must be a list of names"),
        ({"columns": []}, "columns must be a list of names"),
        ({"separator": ""}, "separator must be what lies between columns"),
    ],
)
def test_columns_have_names_of_their_own(tmp_path: Path, options: dict[str, Any], match: str) -> None:
    path = tmp_path / "two.conll"
    path.write_text("a X\nb Y\n", encoding="utf-8")
    with pytest.raises(ValueError, match=match):
        read_conll(path, **options)
