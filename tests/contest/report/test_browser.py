"""The report in a real browser: it answers to pointer and keyboard, computes what NumPy does, and asks nobody for anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.contest.report.conftest import Page
from tests.contest.report.samples import HOSTILE, SAMPLES

Open = Callable[[str], Page]
Runs = Callable[[str], dict[str, Any]]
PARTS = ["leaderboard", "decide", "finalist-boosting", "finalist-logistic", "side-by-side", "data", "ledger", "method"]
RIGHT, LEFT, HOME, END, DOWN, TAB = "\ue014", "\ue012", "\ue011", "\ue010", "\ue015", "\ue004"


@pytest.mark.parametrize("name", SAMPLES)
def test_no_errors_and_no_requests(page: Open, name: str) -> None:
    report = page(name).open()
    for tab in report.all(".tabs a"):
        report.visit(tab)
    for tab in report.all(".subtabs a"):
        report.js("arguments[0].click()", tab)
        report.settle()
    report.shows_all_and_asks_nobody()
    assert report.js("return performance.getEntriesByType('resource').length") == 0


def test_hostile_names_are_shown_as_text(page: Open) -> None:
    report = page("hostile").open()
    seen = HOSTILE.replace("\u202e", "\ufffd")
    assert report.js("return document.images.length") == 0
    assert report.driver.title != "owned"
    assert seen in report.js("return document.querySelector('.board tbody .label').textContent")
    report.js("document.querySelector('a[href=\"#decide\"]').click()")
    assert report.js("return document.querySelector('#decide-entrant option').textContent") == seen
    assert report.js("return document.documentElement.scrollWidth <= innerWidth")


def order(report: Page) -> list[str]:
    return report.js(
        "return [...document.querySelectorAll('.board tbody .label')].map((c) => c.firstChild.textContent)"
    )


@pytest.mark.parametrize(
    ("key", "field"), [("score", None), ("fit", "fit_seconds"), ("memory", "memory_mib"), ("label", "label")]
)
def test_leaderboard_sorts_both_ways(page: Open, runs: Runs, key: str, field: str | None) -> None:
    run, report = runs("binary"), page("binary").open()

    def value(entrant: dict[str, Any]) -> Any:
        return entrant["score"]["value"] if field is None else entrant[field]

    head = report.find(f".board th[data-key='{key}']")
    button = report.find(f".board th[data-key='{key}'] button")
    button.click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert order(report) == [e["label"] for e in sorted(run["entrants"], key=value)]
    button.send_keys(" ")  # by keyboard
    assert head.get_attribute("aria-sort") == "descending"
    stable = sorted(range(len(run["entrants"])), key=lambda k: value(run["entrants"][k]), reverse=True)
    assert order(report) == [run["entrants"][k]["label"] for k in stable]
    assert len(report.all(".board th[aria-sort]")) == 1


def test_failed_entrants_sort_last_both_ways(page: Open) -> None:
    report = page("troubled").open()
    button = report.find(".board th[data-key='score'] button")
    for _ in range(2):
        button.click()
        assert order(report)[-2:] == ["Linear SVM", "Polynomial ridge"]
    assert "column 'income' holds missing values" in report.find(".board").text


def test_tabs_by_click_keyboard_and_address(page: Open) -> None:
    report = page("binary").open()
    assert report.shown() == ["leaderboard"]
    report.find(".tabs a[href='#data']").click()
    assert report.shown() == ["data"]
    assert report.js("return location.hash") == "#data"
    active = report.js("return document.activeElement")
    active.send_keys(RIGHT)
    assert report.shown() == ["ledger"]
    report.js("return document.activeElement").send_keys(HOME)
    assert report.shown() == ["leaderboard"]
    report.js("return document.activeElement").send_keys(LEFT)
    assert report.shown() == ["method"]
    selected = report.all(".tabs [role=tab][aria-selected=true]")
    assert [tab.get_attribute("tabindex") for tab in selected] == ["0"]
    report.driver.back()
    report.settle()
    assert report.shown() == ["leaderboard"]
    report.open("finalist-logistic")
    assert report.shown() == ["finalists"]
    assert report.find("#finalist-logistic").is_displayed()
    assert not report.find("#finalist-boosting").is_displayed()
    report.open("no-such-part")
    assert report.shown() == ["leaderboard"]


def test_leaderboard_leads_to_the_finalist(page: Open) -> None:
    report = page("binary").open()
    report.find(".board a[href='#finalist-boosting']").click()
    report.settle()
    assert report.shown() == ["finalists"]
    assert report.find("#finalist-boosting").is_displayed()


def expected(table: dict[str, Any], fp: float, fn: float) -> tuple[np.ndarray, int]:
    rows = np.array(table["tp"]) + np.array(table["fp"]) + np.array(table["tn"]) + np.array(table["fn"])
    costs = (np.array(table["fp"]) * fp + np.array(table["fn"]) * fn) / rows
    return costs, int(np.argmin(costs))


def check(report: Page, table: dict[str, Any], fp: float, fn: float, at: int | None = None) -> int:
    costs, best = expected(table, fp, fn)
    at = int(np.argmin(np.abs(np.array(table["threshold"]) - fp / (fp + fn)))) if at is None else at
    tp, fps, tn, fns = (table[cell][at] for cell in ("tp", "fp", "tn", "fn"))
    rows = tp + fps + tn + fns
    assert report.value("threshold") == table["threshold"][at]
    assert report.value("cost") == costs[at]
    assert report.value("best") == costs[best]
    assert report.value("always-yes") == (fps + tn) * fp / rows
    assert report.value("always-no") == (tp + fns) * fn / rows
    assert [report.value(name) for name in ("tp", "fp-count", "tn", "fn-count")] == [tp, fps, tn, fns]
    assert report.value("accuracy") == (tp + tn) / rows
    assert report.value("recall") == tp / (tp + fns)
    if tp + fps:
        assert report.value("precision") == tp / (tp + fps)
    return at


def enter(report: Page, name: str, value: str) -> None:
    report.js(
        "const f = document.getElementById(arguments[0]); f.value = arguments[1];"
        "f.dispatchEvent(new Event('input', {bubbles: true})); f.dispatchEvent(new Event('change', {bubbles: true}));",
        f"decide-{name}",
        value,
    )


def test_costs_are_recomputed_as_numpy_does(page: Open, runs: Runs) -> None:
    run, report = runs("binary"), page("binary").open("decide")
    names = [e["name"] for e in run["entrants"] if e["name"] in run["finalists"]]
    table = run["finalists"][names[0]]["thresholds"]
    check(report, table, 1, 5)  # the costs the contest was given
    for fp, fn in [("2", "3.5"), ("10", "0.25"), ("1", "400")]:
        field = report.find("#decide-fp")
        field.clear()
        field.send_keys(fp)
        enter(report, "fn", fn)
        check(report, table, float(fp), float(fn))
    enter(report, "ratio", "0.7")
    assert report.find("#decide-fp").get_property("value") == "1"
    fn_value = float(report.find("#decide-fn").get_property("value"))
    assert fn_value == pytest.approx(10**0.7, rel=5e-3)
    check(report, table, 1, fn_value)
    report.find("#decide-ratio").send_keys(RIGHT)
    assert float(report.find("#decide-fn").get_property("value")) > fn_value
    enter(report, "entrant", "2")
    fp_value, fn_value = (float(report.find(f"#decide-{name}").get_property("value")) for name in ("fp", "fn"))
    check(report, run["finalists"][names[2]]["thresholds"], fp_value, fn_value)


def test_a_table_of_costs_is_recomputed_as_numpy_does(page: Open, runs: Runs) -> None:
    run, report = runs("priced"), page("priced").open("decide")
    names = [e["name"] for e in run["entrants"] if e["name"] in run["finalists"]]
    classes = run["task"]["classes"]
    costs = np.array([[run["options"]["cost"][k][a] for a in classes] for k in classes])

    def verify(name: str) -> None:
        part = run["finalists"][name]["decisions"]
        truth, p = np.array(part["truth"]), np.array(part["probabilities"])
        said, always = (p @ costs).argmin(1), costs[truth].mean(0)
        wanted = {
            "cost": costs[truth, said].mean(),
            "likely": costs[truth, p.argmax(1)].mean(),
            "always": always.min(),
        }
        for field, value in wanted.items():
            assert float(report.find(f"#choices-{field}").get_attribute("data-value")) == pytest.approx(value)
        assert report.find("#choices-answer").get_property("textContent") == classes[int(always.argmin())]
        assert report.find("#choices-changed").text == str(int((said != p.argmax(1)).sum()))
        for k in range(3):
            for a in range(3):
                shown = report.find(f"#choices-count-{k}-{a}").text
                assert shown == str(int(((truth == k) & (said == a)).sum()))

    def put(cell: str, value: str) -> None:
        report.js(
            "const f = document.querySelector(`[data-cell='${arguments[0]}']`); f.value = arguments[1];"
            "f.dispatchEvent(new Event('input', {bubbles: true}));",
            cell,
            value,
        )

    verify(names[0])  # the costs the contest was given
    assert not report.find("#choices-back").is_enabled()
    for cell, value in (("0-1", "7.25"), ("2-0", "0"), ("1-1", "3")):
        put(cell, value)
        costs[tuple(map(int, cell.split("-")))] = float(value)
        verify(names[0])
    report.js(
        "const f = document.querySelector('#choices-entrant'); f.value = '1'; f.dispatchEvent(new Event('change'))"
    )
    verify(names[1])
    put("0-2", "-1")
    assert "zero or more" in report.find("#choices-problem").text
    verify(names[1])  # nothing has changed
    report.find("#choices-back").click()
    costs = np.array([[run["options"]["cost"][k][a] for a in classes] for k in classes])
    verify(names[1])


def test_threshold_moves_by_keyboard_slider_and_drag(page: Open, runs: Runs) -> None:
    run, report = runs("binary"), page("binary").open("decide")
    name = next(e["name"] for e in run["entrants"] if e["name"] in run["finalists"])
    table = run["finalists"][name]["thresholds"]
    best = check(report, table, 1, 5)
    handle = report.find("#decide-plot svg")
    assert handle.get_attribute("role") == "slider"
    report.js("arguments[0].focus()", handle)
    handle.send_keys(RIGHT)
    handle.send_keys(RIGHT)
    handle.send_keys(LEFT)
    check(report, table, 1, 5, best + 1)
    assert float(handle.get_attribute("aria-valuenow")) == pytest.approx(table["threshold"][best + 1], rel=1e-5)
    handle.send_keys(END)
    check(report, table, 1, 5, len(table["threshold"]) - 1)
    report.find("#decide-slider").send_keys(LEFT)
    check(report, table, 1, 5, len(table["threshold"]) - 2)
    report.find("#decide-reset").click()
    check(report, table, 1, 5)
    assert not report.find("#decide-reset").is_enabled()

    from selenium.webdriver import ActionChains

    circle = report.find("#decide-plot .handle")
    ActionChains(report.driver).drag_and_drop_by_offset(circle, 200, 0).perform()
    moved = report.value("threshold")
    assert moved > table["threshold"][best] + 0.1
    check(report, table, 1, 5, table["threshold"].index(moved))


def test_the_answer_is_a_line_on_the_other_parts(page: Open) -> None:
    report = page("binary").open()
    height = "return document.querySelector('.masthead').offsetHeight"
    tall = report.js(height)
    report.js("document.querySelector('a[href=\"#data\"]').click()")
    assert report.js(height) < 0.35 * tall
    assert report.find("h1").is_displayed()
    report.js("document.querySelector('a[href=\"#leaderboard\"]').click()")
    assert report.js(height) == tall


def test_bad_costs_are_named_and_change_nothing(page: Open) -> None:
    report = page("binary").open("decide")
    before = report.value("cost")
    for value in ("0", "-2", ""):
        enter(report, "fp", value)
        assert "above zero" in report.find("#decide-problem").text
        assert report.find("#decide-fp").get_attribute("aria-invalid") == "true"
        assert report.value("cost") == before
    enter(report, "fp", "1")
    assert report.find("#decide-problem").text == ""


def test_dark_toggle_and_preference(page: Open) -> None:
    report = page("binary").open()
    background = "return getComputedStyle(document.body).backgroundColor"
    light = report.js(background)
    assert report.find("#theme").text == "Dark"
    report.find("#theme").click()
    assert report.find("#theme").text == "Light"
    dark = report.js(background)
    assert dark != light
    report.open(dark=True)
    assert report.js(background) == dark
    report.find("#theme").click()
    assert report.js(background) == light
    assert report.js("return Object.keys(localStorage).length + Object.keys(sessionStorage).length") == 0


@pytest.mark.parametrize("width", [360, 768, 1160])
def test_nothing_is_wider_than_the_screen(page: Open, width: int) -> None:
    for name in ("binary", "hostile", "troubled"):
        report = page(name).open(width=width, height=740)
        for part in [
            *(p for p in report.js("return [...document.querySelectorAll('.panel, .subpanel')].map((p) => p.id)"))
        ]:
            report.js("location.hash = arguments[0]", part)
            report.settle()
            wide = report.js("return document.documentElement.scrollWidth")
            assert wide <= width, f"{name}: {part} is {wide} wide"


def test_targets_are_large_enough_for_a_finger(page: Open) -> None:
    report = page("binary").open(width=360, height=740)
    small = """
      return [...document.querySelectorAll('button, a, summary, select, input')]
        .filter((n) => n.offsetParent && !n.classList.contains('skip') && getComputedStyle(n).display !== 'inline')
        .map((n) => [n.outerHTML.slice(0, 80), n.getBoundingClientRect().height]).filter(([, h]) => h < 39.5)"""
    for part in PARTS:
        report.js("location.hash = arguments[0]", part)
        report.settle()
        assert report.js(small) == []


CONTRAST = """
const channel = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const parse = (c) => c.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => 0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);
const over = (top, under) => { const a = top[3] ?? 1; return [0, 1, 2].map((k) => top[k] * a + under[k] * (1 - a)); };
const behind = (node) => {
  const layers = [];
  for (let n = node; n; n = n.parentElement) {
    const c = parse(getComputedStyle(n).backgroundColor);
    if ((c[3] ?? 1) > 0) { layers.push(c); if ((c[3] ?? 1) === 1) break; }
  }
  return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let checked = 0;
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !node.getClientRects().length) continue;
  if (node.closest('.unseen, script, :disabled')) continue;
  const style = getComputedStyle(node);
  const color = node.namespaceURI.endsWith('svg') ? style.fill : style.color;
  const back = behind(node.closest('svg')?.parentElement ?? node);
  const [a, b] = [light(over(parse(color), back)), light(back)].sort((p, q) => q - p);
  const ratio = (a + 0.05) / (b + 0.05);
  checked += 1;
  if (ratio < 4.5) found.push([walker.currentNode.textContent.trim().slice(0, 40), ratio.toFixed(2)]);
}
return [checked, found];
"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_enough_contrast(page: Open, dark: bool) -> None:
    report = page("binary").open(dark=dark)
    for part in PARTS:
        report.js("location.hash = arguments[0]", part)
        report.settle()
        checked, found = report.js(CONTRAST)
        assert checked > 30
        assert found == []


def test_every_control_has_a_name_and_every_drawing_words(page: Open) -> None:
    report = page("binary").open()
    unnamed = """
      return [...document.querySelectorAll('input, select, button, a, [role=img], [role=region], [role=slider]')].filter((n) => {
        const label = n.getAttribute('aria-label') || [...(n.labels ?? [])].map((l) => l.textContent).join('') || n.textContent;
        return !label.trim();
      }).map((n) => n.outerHTML.slice(0, 100))"""
    for part in PARTS:
        report.js("location.hash = arguments[0]", part)
        report.settle()
        assert report.js(unnamed) == []
    broken = """
      return ['aria-controls', 'aria-labelledby', 'for'].flatMap((name) => [...document.querySelectorAll(`[${name}]`)]
        .map((n) => n.getAttribute(name)).filter((id) => !document.getElementById(id)))"""
    assert report.js(broken) == []
    assert report.js("return document.documentElement.lang") == "en"
    report.open()
    report.find("body").send_keys(TAB)
    skip = report.js("return document.activeElement")
    assert skip.text == "Skip to the results"
    assert report.js("return arguments[0].getBoundingClientRect().top >= 0", skip)


def test_figures_are_read_by_pointer_and_by_keys(page: Open, runs: Runs) -> None:
    from selenium.webdriver import ActionChains

    report = page("binary").open("side-by-side")
    drawing = report.find("[data-figure='compare-1'] svg")
    tip = report.find("[data-figure='compare-1'] .tip")
    ActionChains(report.driver).move_to_element(drawing).perform()
    assert tip.is_displayed()
    assert "Stacked blend" in tip.text
    report.js("arguments[0].focus()", drawing)
    drawing.send_keys(HOME)
    spoken = report.find("#spoken").get_attribute("textContent")
    drawing.send_keys(RIGHT)
    drawing.send_keys(RIGHT)
    assert report.find("#spoken").get_attribute("textContent") != spoken
    drawing.send_keys("\ue00c")
    assert not tip.is_displayed()

    report.open("finalist-boosting")
    importance = runs("binary")["finalists"]["boosting"]["importance"]
    bars = report.find("[data-figure='finalist-boosting-5'] svg")
    report.js("arguments[0].focus()", bars)
    bars.send_keys(DOWN)
    assert report.find("#spoken").get_attribute("textContent").startswith(importance[0]["feature"])


def test_legend_hides_and_shows_a_curve(page: Open) -> None:
    report = page("binary").open("side-by-side")
    curves = "return document.querySelectorAll(\"[data-figure='compare-1'] .series\").length"
    assert report.js(curves) == 3
    button = report.find("[data-figure='compare-1'] .series-toggle")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert report.js(curves) == 2
    button.click()
    assert report.js(curves) == 3


def test_numbers_of_a_figure_are_its_numbers(page: Open, runs: Runs) -> None:
    report = page("binary").open("finalist-boosting")
    report.js("document.querySelector(\"[data-figure='finalist-boosting-5'] details\").open = true")
    report.settle()
    cells = """
      return [...document.querySelectorAll("[data-figure='finalist-boosting-5'] tbody tr")]
        .map((r) => [...r.cells].map((c) => c.textContent))"""
    table = report.js(cells)
    importance = runs("binary")["finalists"]["boosting"]["importance"]
    assert [row[0] for row in table] == [item["feature"] for item in importance]
    for row, item in zip(table, importance, strict=True):
        shown = [float(text.replace("−", "-").replace(",", "")) for text in row[1:]]
        np.testing.assert_allclose(shown, [item["mean"], item["low"], item["high"]], rtol=1e-4, atol=1e-9)


def test_curve_is_drawn_where_its_points_are(page: Open, runs: Runs) -> None:
    """The drawn path, mapped back by the ends of the axes, is the curve."""
    report = page("binary").open("finalist-boosting")
    curve = runs("binary")["finalists"]["boosting"]["roc"]
    points = report.find("[data-figure='finalist-boosting-1'] .curve").get_attribute("points")
    drawn = np.array([list(map(float, pair.split(","))) for pair in points.split()])
    grid = """
      return [...document.querySelectorAll("[data-figure='finalist-boosting-1'] .grid")]
        .map((l) => ['x1', 'x2', 'y1'].map((k) => +l.getAttribute(k)))"""
    lines = np.array(report.js(grid))
    left, right, bottom, top = lines[0, 0], lines[0, 1], lines[:, 2].max(), lines[:, 2].min()
    np.testing.assert_allclose((drawn[:, 0] - left) / (right - left), curve["fpr"], atol=1e-3)
    np.testing.assert_allclose((bottom - drawn[:, 1]) / (bottom - top), curve["tpr"], atol=1e-3)


def test_columns_are_filtered_by_a_word(page: Open) -> None:
    report = page("binary").open("data")
    report.find("#column-filter").send_keys("drop")
    names = """
      return [...document.querySelectorAll('#columns-table tbody tr')].filter((r) => !r.hidden)
        .map((r) => r.querySelector('bdi').textContent)"""
    assert report.js(names) == ["row", "currency"]
    assert report.find("#column-filter-count").text.startswith("2 of")


def test_printing_shows_every_part(page: Open) -> None:
    report = page("binary").open()
    report.js("dispatchEvent(new Event('beforeprint'))")
    report.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        hidden = "return [...document.querySelectorAll('.panel, .subpanel')].filter((p) => !p.getClientRects().length).length"
        assert report.js(hidden) == 0
        assert (
            report.js(
                "return [...document.querySelectorAll('[data-figure] .plot')].filter((p) => !p.querySelector('svg')).length"
            )
            == 0
        )
    finally:
        report.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_without_script_the_main_content_is_there(page: Open, runs: Runs) -> None:
    report = page("binary")
    report.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        report.driver.get("about:blank")
        report.driver.get(report.path.as_uri())
        text = report.find("body").text
        for entrant in runs("binary")["entrants"]:
            assert entrant["label"] in text
        assert runs("binary")["summary"][0] in text
        assert all(panel.is_displayed() for panel in report.all(".panel"))
        assert not report.find("#theme").is_displayed()
    finally:
        report.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
