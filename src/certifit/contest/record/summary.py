"""The contest in five plain sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["number", "summarize"]


def number(value: float, form: str = ".4g") -> str:
    """A number for a sentence."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,{form}}"


def summarize(run: Mapping[str, Any]) -> list[str]:
    """Question, answer, rivals, meaning, advice: five sentences that need no statistics."""
    best = next(e for e in run["entrants"] if e["rank"] == 1)
    return [_question(run), _answer(run, best), _rivals(run), _meaning(run, best), _advice(run, best)]


def _question(run: Mapping[str, Any]) -> str:
    task, data = run["task"], run["data"]
    used = sum(column["role"] == "feature" for column in data["columns_info"])
    source = "the data frame" if data["source"] == "data frame" else data["source"]
    asked = {
        "binary": f"whether {task['target']} is {task['positive']}",
        "multiclass": f"which of {len(task['classes'] or ())} classes {task['target']} is",
        "regression": f"the number {task['target']}",
    }[task["kind"]]
    return (
        f"The question was {asked}, from {used} column{'' if used == 1 else 's'} of {number(data['rows'])} rows of "
        f"{source}; {number(data['test_rows'])} rows were sealed before anything was fitted, and every score below "
        "is from them."
    )


def _answer(run: Mapping[str, Any], best: Mapping[str, Any]) -> str:
    metric, score = run["task"]["metric"], best["score"]
    form = metric["format"]
    shown = f"{metric['label']} {score['value']:{form}}"
    if best["baseline"]:
        return (
            f"No method did better than giving the same answer for every row ({shown}): these columns do not help to predict "
            f"{run['task']['target']}."
        )
    text = f"{best['label']} did best: {shown}"
    if score["low"] is not None:
        text += f", between {score['low']:{form}} and {score['high']:{form}} with 95 % confidence"
    baseline = next((e for e in run["entrants"] if e["baseline"] and e["score"]), None)
    if baseline is not None:
        text += f", against {baseline['score']['value']:{form}} for the same answer every time"
        if best["skill"] is not None and best["skill"] > 0:
            text += f" ({100 * best['skill']:.0f} % of the way to perfect)"
    return text + "."


def _rivals(run: Mapping[str, Any]) -> str:
    text = str(run["leaderboard"]["text"]).strip()
    if not text:
        return "There was no rival to compare it with."
    order = [e for e in run["entrants"] if e["name"] in run["leaderboard"]["tied"]]
    simple = next((e for e in order[1:] if e["readable"]), None)
    if simple is not None and not order[0]["readable"]:
        text += f" {simple['label']} is among them and is simpler to explain."
    return text


def _meaning(run: Mapping[str, Any], best: Mapping[str, Any]) -> str:
    metrics, kind = best["metrics"], run["task"]["kind"]
    if kind == "regression":
        mae, r2 = metrics.get("mae"), metrics.get("r2")
        text = f"A prediction is off by {number(mae['value'])} on average" if mae else "Errors are as the report shows"
        return text + (f", and {100 * max(0.0, r2['value']):.0f} % of the variation is explained." if r2 else ".")
    accuracy = metrics.get("accuracy")
    text = (
        f"It is right for {100 * accuracy['value']:.1f} % of the sealed rows"
        if accuracy
        else "See the confusion matrix"
    )
    auc = metrics.get("roc_auc")
    if kind == "binary" and auc:
        text += (
            f", and it ranks a random {run['task']['positive']} above a random other row {100 * auc['value']:.0f} % of the "
            "time"
        )
    return text + "."


def _advice(run: Mapping[str, Any], best: Mapping[str, Any]) -> str:
    """The most pressing warning; else what the learning curve says; else what matters most."""
    pressing = [w for w in run["data"]["warnings"] if w["kind"] in ("leakage", "drift", "small")]
    if pressing:
        return f"Take care: {pressing[0]['text']}"
    page = run["finalists"].get(best["name"], {})
    curve = page.get("learning_curve")
    importance = page.get("importance")
    matters = ""
    if importance and importance[0]["low"] > 0:
        real = [row["feature"] for row in importance[:3] if row["low"] > 0]
        listed = real[0] if len(real) == 1 else ", ".join(real[:-1]) + " and " + real[-1]
        matters = f"What matters most is {listed}"
    if curve and matters:
        return f"{matters}; {curve['reading'][0].lower()}{curve['reading'][1:]}"
    if curve:
        return str(curve["reading"])
    if matters:
        return f"{matters}."
    return "The report shows how the answer was reached and every number behind it."
