"""The kernel that reads texts: its table of terms, its rules, and what it refuses."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

from certifit._native import text as native

RNG = np.random.default_rng(0)
ALPHABET = [*"abcXYZ_09 \t\n.,'-", "é", "ß", "İ", "’", "日", "𝔘", "\u2003", "\x1c", "\x85", "\ud800", "\u0301"]


def texts(n: int, most: int) -> tuple[str, ...]:
    """Random texts; every third is ASCII."""
    return tuple(
        "".join(RNG.choice(ALPHABET[:17] if i % 3 == 0 else ALPHABET, size=RNG.integers(0, most))) for i in range(n)
    )


def counted(unit: str, least: int, most: int, given: tuple[str, ...], lower: bool = True) -> list[dict[str, int]]:
    terms = native.Terms([])
    ends, columns, counts = native.count(given, native.Rule(unit, least, most, lower, None), terms, True)
    names = terms.listed()
    return [{names[columns[k]]: int(counts[k]) for k in range(ends[i], ends[i + 1])} for i in range(len(given))]


def tally(terms: list[str]) -> dict[str, int]:
    return {term: terms.count(term) for term in terms}


@pytest.mark.parametrize(("unit", "pattern"), [("words", r"\b\w\w+\b"), ("spoken", r"[^\W_]+(?:['’][^\W_]+)*")])
@pytest.mark.parametrize("lower", [True, False])
def test_words_are_those_of_the_pattern(unit: str, pattern: str, lower: bool) -> None:
    given = texts(600, 60)
    wanted = [tally(re.findall(pattern, text.lower() if lower else text)) for text in given]
    assert counted(unit, 1, 1, given, lower) == wanted


def test_neighbors() -> None:
    given = texts(300, 80)
    wanted = []
    for text in given:
        words = re.findall(r"\b\w\w+\b", text.lower())
        wanted.append(tally([" ".join(words[i : i + n]) for n in (2, 3) for i in range(len(words) - n + 1)]))
    assert counted("words", 2, 3, given) == wanted


def test_characters() -> None:
    given = texts(300, 40)
    wanted = []
    for text in given:
        plain = re.sub(r"\s\s+", " ", text.lower())
        wanted.append(tally([plain[i : i + n] for n in (1, 2, 3) for i in range(len(plain) - n + 1)]))
    assert counted("characters", 1, 3, given) == wanted
    within = []
    for text in given:
        found = []
        for word in (f" {part} " for part in text.lower().split()):
            for n in (2, 3, 4, 5):
                found += [word[i : i + n] for i in range(max(len(word) - n + 1, 1))]
                if len(word) <= n:
                    break
        within.append(tally(found))
    assert counted("within_words", 2, 5, given) == within


def test_one_long_word_and_many_texts() -> None:
    assert counted("words", 1, 1, ("a" * 100_000,)) == [{"a" * 100_000: 1}]
    assert counted("words", 1, 2, ("",) * 1000) == [{}] * 1000


def test_the_native_table() -> None:
    words = [f"w{i * 7919 % 5003}" for i in range(5003)]
    terms = native.Terms(words)
    assert len(terms) == 5003
    assert terms.listed() == words
    assert [words[i] for i in terms.order()] == sorted(words)
    rule = native.Rule("words", 1, 1, True, None)
    ends, columns, counts = native.count((" ".join(words), None), rule, terms, False)
    assert ends.tolist() == [0, 5003, 5003]
    assert columns.tolist() == list(range(5003))
    assert set(counts.tolist()) == {1}
    assert pickle.loads(pickle.dumps(terms)).listed() == words
    for bad in (("letters", 1, 1), ("words", 0, 1), ("words", 2, 1)):
        with pytest.raises(ValueError, match="must"):
            native.Rule(*bad, True, None)
    with pytest.raises(ValueError, match="text 1 must be a str; got int"):
        native.count(("a", 3), rule, terms, False)
    with pytest.raises(ValueError, match="columns"):
        native.hash(("a",), rule, 2**31, True)


def test_words_that_were_cut_elsewhere() -> None:
    stop = native.Terms(["the"])
    rule = native.Rule("words", 1, 2, False, stop)
    terms = native.Terms([])
    ends, columns, counts = native.count([["the", "cat", "the", "sat"], [], ["cat"]], rule, terms, True)
    assert terms.listed() == ["cat", "sat", "cat sat"]
    assert ends.tolist() == [0, 3, 3, 4]
    assert columns.tolist() == [0, 1, 2, 0]
    assert counts.tolist() == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="a term must be a str; got int"):
        native.count([[3]], rule, terms, True)


def test_hashes_add_up() -> None:
    rule = native.Rule("words", 1, 1, True, None)
    given = texts(100, 60)
    ends, columns, sums = native.hash(given, rule, 5, False)
    words = [len(re.findall(r"\b\w\w+\b", text.lower())) for text in given]
    assert [int(sums[ends[i] : ends[i + 1]].sum()) for i in range(100)] == words
    assert columns.min() >= 0
    assert columns.max() < 5
