"""The report as text: whole, small, safe whatever the names, and readable whatever is missing."""

from __future__ import annotations

import copy
import html
import inspect
import itertools
import json
import re
import shlex
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contest.report.samples import HOSTILE, SAMPLES

from certifit.cli import compete
from certifit.contest.report import render, write_report
from certifit.contest.report.diagnostics import CLASSES, _spread, confusion, dependence, importance, residuals
from certifit.contest.report.figures import numbers_only
from certifit.contest.report.finalists import _metric, finalists
from certifit.contest.report.glossary import GLOSSARY, terms
from certifit.contest.report.page import TEST_SIZE
from certifit.contest.report.standings import answer, pair_table, rows, scale
from certifit.contest.report.tables import COLUMNS

Runs = Callable[[str], dict[str, Any]]
EVERY = pytest.mark.parametrize("name", SAMPLES)
VOID = {"meta", "link", "input", "br", "img", "hr"}


class Outline(HTMLParser):
    """Checks that elements nest, and collects them, their texts, ids and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def outline(page: str) -> Outline:
    parser = Outline()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser


@EVERY
def test_page_is_well_formed_small_and_alone(runs: Runs, name: str) -> None:
    page = render(runs(name))
    assert len(page.encode()) < 400_000
    parsed = outline(page)
    ids = [attributes["id"] for _, attributes in parsed.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    for tag, attributes in parsed.tags:
        assert "src" not in attributes, f"<{tag}> loads something"
        assert not any(key.startswith("on") or key == "style" for key in attributes), (
            f"<{tag}> has code or style inside"
        )
        if "href" in attributes:
            address = attributes["href"] or ""
            assert address == "data:," or (address.startswith("#") and address[1:] in ids), address
    assert {tag for tag, _ in parsed.tags}.isdisjoint({"img", "iframe", "object", "embed", "base", "form-data"})


@EVERY
def test_headings_are_in_order(runs: Runs, name: str) -> None:
    levels = [int(tag[1]) for tag, _ in outline(render(runs(name))).tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


@EVERY
def test_policy_names_exactly_the_script_and_style_inside(runs: Runs, name: str) -> None:
    import base64
    import hashlib

    page = render(runs(name))
    policy = next(a["content"] for t, a in outline(page).tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def embedded(page: str) -> Any:
    (text,) = re.findall(r'<script type="application/json" id="run">(.*?)</script>', page, re.S)
    return json.loads(text)


def test_names_are_text_whatever_they_hold(runs: Runs) -> None:
    page = render(runs("hostile"))
    assert "<img" not in page
    assert "\u2028" not in re.findall(r'id="run">(.*?)</script>', page, re.S)[0]
    assert "\u202e" not in page  # it would turn the text around it
    seen = HOSTILE.replace("\u202e", "\ufffd")
    assert seen in "".join(outline(page).text)
    assert embedded(page)["decide"]["yes"] == seen
    assert "49" not in outline(page).text[1]  # a template inside a name is not run


def test_main_content_needs_no_script(runs: Runs) -> None:
    run = runs("binary")
    text = " ".join("".join(outline(re.sub(r"<script.*?</script>", "", render(run), flags=re.S)).text).split())
    for sentence in run["summary"]:
        assert sentence in text
    for entrant in run["entrants"]:
        assert entrant["label"] in text
        assert f"{entrant['score']['value']:.4f}" in text
    for column in run["data"]["columns_info"]:
        assert column["name"] in text


def paths(value: Any, depth: int = 0) -> Iterator[list[Any]]:
    """Every place of a run down to the fifth level, of lists the first item only."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, part in items:
        yield [key]
        if depth < 4:
            yield from ([key, *rest] for rest in paths(part, depth + 1))


@pytest.mark.parametrize("name", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("spoil", ["null", "absent", "of another kind"])
def test_any_part_may_be_missing(runs: Runs, name: str, spoil: str) -> None:
    def few(part: dict[str, Any]) -> dict[str, Any]:
        """Few points go through the same code as many, and make hundreds of pages cheap."""
        return {key: value[:4] if isinstance(value, list) else value for key, value in part.items()}

    run = json.loads(json.dumps(runs(name)), object_hook=few)
    run["finalists"] = dict(list(run["finalists"].items())[-1:])
    needed = (["format"], ["task"], ["entrants"], ["entrants", 0])
    places = [
        place for place in paths(run) if place not in needed and (spoil != "absent" or isinstance(place[-1], str))
    ]
    assert len(places) > 150
    for place in places[:: 1 if name == "binary" else 3]:  # most of the code is the same for the other tasks
        spoiled = copy.deepcopy(run)
        part = spoiled
        for key in place[:-1]:
            part = part[key]
        if spoil == "absent":
            del part[place[-1]]
        else:
            part[place[-1]] = None if spoil == "null" else 7
        page = re.sub(r"<(script|style)>.*?</\1>", "", render(spoiled), flags=re.S)
        assert "Undefined" not in page, place
        assert "None" not in page, place


def test_numbers_that_are_none_are_shown_as_absent(runs: Runs) -> None:
    run = copy.deepcopy(runs("binary"))
    run["entrants"][0]["skill"] = float("nan")
    run["entrants"][1]["score"]["low"] = float("inf")
    run["entrants"][2]["fit_seconds"] = np.float64(0.5)
    run["finalists"]["blend"]["roc"]["fpr"] = np.array(run["finalists"]["blend"]["roc"]["fpr"])
    text = " ".join(outline(render(run)).text)
    assert "nan" not in text.lower().split()
    assert "500\u00a0ms" in text


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        ([], TypeError, "run must be a mapping"),
        ({}, ValueError, "format None"),
        ({"format": 2}, ValueError, "upgrade Certifit"),
        ({"format": 1}, ValueError, "no 'task' part"),
        ({"format": 1, "task": {}, "entrants": [3]}, ValueError, "every item of 'entrants'"),
    ],
)
def test_what_is_no_run_is_refused(run: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        render(run)


def test_report_is_written_whole_or_not_at_all(tmp_path: Path, runs: Runs) -> None:
    path = tmp_path / "report.html"
    assert write_report(runs("multiclass"), path) == path
    first = path.read_text(encoding="utf-8")
    assert first.startswith("<!doctype html>")
    with pytest.raises(ValueError, match="format"):
        write_report({}, path)
    assert path.read_text(encoding="utf-8") == first
    with pytest.raises(FileNotFoundError, match="create it first"):
        write_report(runs("multiclass"), tmp_path / "none" / "report.html")
    with pytest.raises(OSError):
        write_report(runs("multiclass"), tmp_path)  # a folder
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html"]


def test_same_run_same_page(runs: Runs) -> None:
    assert render(runs("binary")) == render(json.loads(json.dumps(runs("binary"))))


def test_whiskers_stand_where_the_numbers_say(runs: Runs) -> None:
    run = runs("binary")
    axis = scale(run)
    assert axis is not None
    placed = rows(run, {})
    values = np.array([e["score"]["value"] for e in run["entrants"]])
    dots = np.array([row.dot for row in placed], float)
    expected = 2 + 96 * (values - axis.low) / (axis.high - axis.low)
    np.testing.assert_allclose(dots, np.clip(expected, 2, 98), atol=0.006)
    assert all(row.low <= row.dot <= row.high for row in placed if row.low is not None)


def test_a_terrible_entrant_does_not_squeeze_the_others(runs: Runs) -> None:
    run = copy.deepcopy(runs("binary"))
    run["entrants"][3]["score"] = {"value": 40.0, "low": 38.0, "high": 42.0}
    placed = rows(run, {})
    assert placed[3].beyond
    assert placed[-1].dot is not None
    assert placed[0].dot is not None
    assert placed[-1].dot - placed[0].dot > 50


@pytest.mark.parametrize("lower_is_better", [True, False])
def test_pairs_say_who_is_better(runs: Runs, lower_is_better: bool) -> None:
    run = copy.deepcopy(runs("binary"))
    run["task"]["metric"]["lower_is_better"] = lower_is_better
    names, table = pair_table(run)
    assert len(names) == len(table) == len(run["entrants"])
    order = [e["name"] for e in run["entrants"]]
    for pair in run["leaderboard"]["pairs"]:
        i, j = order.index(pair["a"]), order.index(pair["b"])
        here, there = table[i][j], table[j][i]
        assert here is not None
        assert there is not None
        if not pair["distinguishable"]:
            assert (here.symbol, there.symbol) == ("=", "=")
        else:
            better = (pair["difference"] < 0) == lower_is_better
            assert (here.symbol, there.symbol) == (("▲", "▼") if better else ("▼", "▲"))
    assert all(table[k][k] is None for k in range(len(order)))


def test_the_answer_claims_no_more_than_was_found(runs: Runs) -> None:
    assert answer(runs("regression")) == "Gradient boosting predicts “price” best"
    assert answer(runs("binary")) == "Stacked blend and Gradient boosting predict “defaulted” best"
    assert answer(runs("interrupted")) == "Only the trivial baseline finished"
    run = copy.deepcopy(runs("binary"))
    run["entrants"] = run["entrants"][::-1]
    assert answer(run) == "Nothing here predicts “defaulted” better than the trivial baseline"
    run = copy.deepcopy(runs("binary"))
    run["entrants"][-1]["verdict"] = "tied with the best"
    assert run["entrants"][-1]["baseline"]
    assert answer(run) == "Stacked blend leads on “defaulted”, but is not shown to beat the trivial baseline"
    assert answer(run | {"entrants": []}) == "No entrant finished"


def test_command_repeats_the_contest(runs: Runs) -> None:
    run = copy.deepcopy(runs("binary"))
    run["data"]["source"], run["seed"] = "my loans; rm -rf.csv", 1234567
    run["options"] |= {
        "entrants": ["logistic", "boosting"],
        "task": "binary",
        "time_column": "opened on",
        "test_size": 0.3,
    }
    (text,) = re.findall(r'id="command">(.*?)</pre>', render(run), re.S)
    words = shlex.split(html.unescape(text))
    assert words[:5] == ["certifit", "compete", "my loans; rm -rf.csv", "--target", "defaulted"]
    given = dict(zip(words[5::2], words[6::2], strict=True))
    assert given == {
        "--task": "binary",
        "--time-column": "opened on",
        "--drop": "row",
        "--entrants": "logistic,boosting",
        "--types": "region=category",
        "--cost": "fp=1,fn=5",
        "--test-size": "0.3",
        "--time": "60",
        "--seed": "1234567",
        "--jobs": "2",
    }
    known = inspect.signature(compete).parameters
    assert {option[2:].replace("-", "_") for option in given} <= set(known)
    assert known["test_size"].default == TEST_SIZE


def test_many_columns_warnings_and_classes_stay_small(runs: Runs) -> None:
    run = copy.deepcopy(runs("multiclass"))
    column = run["data"]["columns_info"][0]
    run["data"]["columns_info"] = [column | {"name": f"column {k}"} for k in range(10_000)]
    run["data"]["warnings"] = [{"kind": "dropped", "column": f"c{k}", "text": "constant"} for k in range(5_000)]
    labels = [f"class {k}" for k in range(200)]
    counts = np.random.default_rng(0).integers(0, 9, (200, 200))
    run["finalists"]["forest"]["confusion"] = {"labels": labels, "counts": counts.tolist()}
    page = render(run)
    assert len(page.encode()) < 1_000_000
    assert f"The other {10_000 - COLUMNS:,} columns" in page
    assert "and 4,992 more of this kind" in page
    figure = confusion(run["finalists"]["forest"])
    assert figure is not None
    assert len(figure.spec["labels"]) == CLASSES
    assert sum(map(sum, figure.spec["counts"])) == counts.sum()
    assert f"{int(np.trace(counts)):,} of {int(counts.sum()):,}" in figure.title


@pytest.mark.parametrize(
    ("mean", "words"),
    [
        ([1, 2, 3, 4], "Rises with"),
        ([4, 3, 2, 1], "Falls with"),
        ([4, 1, 1, 4], "Falls, then rises with"),
        ([1, 4, 4, 1], "Rises, then falls with"),
        ([1, 3, 2.5, 4], "Mostly rises with"),
        ([2, 2, 2, 2], "“age” makes no difference"),
    ],
)
def test_dependence_is_put_in_words(mean: list[float], words: str) -> None:
    figure = dependence({"feature": "age", "kind": "numeric", "grid": [20, 30, 40, 50], "mean": mean, "label": "price"})
    assert figure is not None
    assert figure.title.startswith(words)


def test_numbers_only_drops_whole_rows() -> None:
    assert numbers_only([1, None, 3, True], [4, 5, 6, 7]) == [[1, 3], [4, 6]]
    assert numbers_only([None], [1]) is None
    assert numbers_only(None, [1]) is None


def test_glossary_explains_what_is_used(runs: Runs) -> None:
    binary, numbers = dict(terms(runs("binary"))), dict(terms(runs("regression")))
    assert "Threshold" in binary
    assert "Threshold" not in numbers
    assert "MAE" in numbers
    assert "Log loss" not in numbers
    assert set(binary) | set(numbers) <= set(GLOSSARY)


def test_three_points_are_no_curve() -> None:
    part = {"feature": "gain", "kind": "numeric", "grid": [0, 10, 99], "mean": [1, 2, 3], "label": "price"}
    figure = dependence(part)
    assert figure is not None
    assert figure.spec["kind"] == "bars"
    assert "rises" not in figure.title.lower()


def test_the_hero_shows_a_proof_of_the_whole_fit_or_none(runs: Runs) -> None:
    run = runs("binary")
    best = run["entrants"][0]
    whole = {"verdict": "certified", "kind": "duality gap", "sentence": "Certified: within 1e-07.", "claim": ""}
    for certificate, shown in (
        (whole, True),
        ({**whole, "claim": "best pruning of this tree"}, False),
        ({**whole, "verdict": "no bound possible", "kind": "none"}, False),
        (None, False),
    ):
        best["certificate"] = certificate
        page = render(run)
        hero = page[page.index('<header class="masthead"') : page.index('<nav class="tabs"')]
        assert ("Proven" in hero) == shown
        assert "optimum" not in hero
        assert "iterations" not in hero
    best["certificate"] = {**whole, "claim": "best pruning of this tree"}
    assert "certified in part</span><small>best pruning of this tree</small>" in render(run)


def test_a_finalist_without_a_proof_shows_no_bound_and_one_with_a_part_says_so(runs: Runs) -> None:
    run = runs("binary")
    best = run["entrants"][0]
    facts = {"objective": 0.5, "bound": 0.0, "gap": 0.5, "relative_gap": 0.7, "iterations": 3}
    best["certificate"] = {
        **facts,
        "verdict": "no bound possible",
        "kind": "none",
        "claim": "",
        "sentence": "No certificate.",
    }
    (shown,) = (page for page in finalists(run) if page.entrant is best)
    assert [text for text, _ in shown.certificate] == ["objective reached", "iterations"]
    assert shown.verdict == "no bound possible"
    assert "The fit in numbers" in render(run)
    best["certificate"] |= {"verdict": "certified", "kind": "duality gap", "claim": "best weights of these members"}
    (shown,) = (page for page in finalists(run) if page.entrant is best)
    assert shown.verdict == "certified in part"
    assert {"proven lower bound", "kind of proof"} <= {text for text, _ in shown.certificate}
    assert "Certified in part" in dict(terms(run))
    assert "Certificate: certified in part" in render(run)


def test_an_interval_that_is_not_to_be_trusted_says_so_beside_its_score(runs: Runs) -> None:
    run = runs("regression")
    assert "not to be trusted" not in render(run)
    run["entrants"][0]["score"]["trusted"] = False
    assert render(run).count("<small>not to be trusted</small>") == 1


def test_scores_are_written_with_the_digits_that_mean_something() -> None:
    metric = {"label": "mean squared error", "value": 2033348086.7, "low": 1.8e9, "high": 2.3e9, "format": ".4g"}
    assert _metric(metric)[1:3] == ("2,033,348,087", "1,800,000,000 to 2,300,000,000")
    assert _metric({"label": "R²", "value": 0.8479, "format": ".4f"})[1] == "0.8479"


def test_half_of_the_errors_are_those_of_all_sealed_rows() -> None:
    part = {"residuals": {"predicted": [1.0, 2.0], "actual": [1.5, 2.5], "typical": 19891.3, "rows": 4128}}
    figure = residuals(part, {"target": "price"})[0]
    assert figure is not None
    assert figure.title == "Half of the predictions are within 19,891 of the truth"
    assert "2 of 4,128 sealed rows" in figure.alt


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (lambda k: 1.0 + 4.0 * (k >= 100), "Errors grow with the prediction: 5.0 × larger"),
        (lambda k: 5.0 - 4.0 * (k >= 100), "Errors shrink with the prediction: 5.0 × smaller"),
        (lambda k: 1.0, "Errors are about as large"),
    ],
)
def test_errors_are_said_to_grow_where_they_do(scale: Callable[[int], float], words: str) -> None:
    errors = [scale(k) * (1 + k % 7) for k in range(200)]
    assert words in _spread([float(k) for k in range(200)], errors)


def test_errors_that_chance_alone_makes_uneven_are_not_said_to_grow() -> None:
    rng = np.random.default_rng(0)
    titles = [_spread(list(rng.normal(size=40)), list(rng.normal(size=40))) for _ in range(200)]
    assert sum("grow" in title or "shrink" in title for title in titles) < 20, "one in twenty by chance"
    assert any("cannot be told" in title for title in titles)


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([("a", 0.3, 0.2), ("b", 0.1, 0.05)], "“a” matters most: shuffling it worsens log loss by 0.3"),
        ([("a", 0.3, -0.2), ("b", 0.1, 0.05)], "“b” matters: shuffling it worsens log loss beyond chance"),
        ([("a", 0.3, -0.2), ("b", -0.1, -0.3)], "No single column matters beyond chance"),
        ([("a", -0.1, -0.2)], "No single column matters beyond chance"),
    ],
)
def test_a_column_matters_only_beyond_chance(items: list[tuple[str, float, float]], words: str) -> None:
    part = {"importance": [{"feature": f, "mean": m, "low": lo, "high": m + 0.1} for f, m, lo in items]}
    figure = importance(part, {"metric": {"label": "log loss", "format": ".4f"}})
    assert figure is not None
    assert words in figure.title


def test_what_questions_every_score_stands_first(runs: Runs) -> None:
    run = runs("binary")
    run["data"]["warnings"] = [{"kind": "missing", "column": "x", "text": "Many values are missing."}]
    assert "Before you trust these scores" not in render(run)
    run["data"]["warnings"] = [{"kind": "leakage", "column": "x", "text": "'x' alone predicts the target."}]
    page = render(run)
    assert page.index("Before you trust these scores") < page.index('<dl class="keys">')
