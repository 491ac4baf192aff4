"""The figures of one finalist, and of the finalists side by side: each title says what was found."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from datetime import UTC, datetime
from statistics import median
from typing import Any

from certifit.contest.numbers import ABSENT, count, is_number, number, percent, readable, with_format
from certifit.contest.report.cleaning import listed, mapped, named
from certifit.contest.report.cleaning import parts as parts_of
from certifit.contest.report.figures import Axis, Figure, Reference, Series, bars, columns, matrix, numbers_only, xy

__all__ = ["comparison_figures", "finalist_figures", "short"]

Part = dict[str, Any]
SHARE = (0.0, 1.0)
FEWEST_FOR_A_CURVE = 4
CLASSES = 24
"""Classes drawn in a confusion matrix; the rarer ones are pooled."""


def short(text: Any, length: int = 40) -> str:
    """A name cut to a length that fits a title."""
    text = " ".join(str(text).split())
    return text if len(text) <= length else text[: length - 1] + "…"


def roc(parts: list[tuple[str, Part]], task: Part) -> Figure | None:
    """True positive rate over false positive rate."""
    series, areas = [], []
    for k, (label, finalist) in enumerate(parts):
        curve = mapped(finalist, "roc")
        if points := numbers_only(curve.get("fpr"), curve.get("tpr")):
            series.append(Series(label, points[0], points[1], tone=k))
            areas.append((label, curve.get("auc")))
    if not series:
        return None
    yes, no = short(task.get("positive") or "yes", 24), "a row of the other class"
    if len(parts) == 1:
        area = areas[0][1]
        title = f"It ranks a random “{yes}” above {no} {percent(area)} of the time"
        title = title if is_number(area) else "How many hits each share of false alarms buys"
    else:
        title = _ranking("area under the curve", areas)
    listed = "; ".join(f"{label}: area {number(area)}" for label, area in areas)
    return Figure(
        title,
        f"Receiver operating characteristic. {listed}. A coin toss has area 0.5.",
        "ROC curve: the higher it bends into the upper left corner, the better. The diagonal is a coin toss.",
        xy(
            Axis(f"false alarms: share of the others called “{yes}”", "share", SHARE),
            Axis(f"hits: share of “{yes}” found", "share", SHARE),
            series,
            [Reference("diagonal", "coin toss")],
            square=True,
        ),
    )


def _ranking(what: str, scores: list[tuple[str, Any]]) -> str:
    known = sorted(((value, label) for label, value in scores if is_number(value)), reverse=True)
    if len(known) < 2:
        return what.capitalize()
    (best, first), (least, last) = known[0], known[-1]
    if best - least < 0.0005:
        return f"All have the same {what}: {best:.3f}"
    return f"{what.capitalize()} runs from {least:.3f} ({short(last)}) to {best:.3f} ({short(first)})"


def precision_recall(parts: list[tuple[str, Part]], task: Part) -> Figure | None:
    """Precision over recall."""
    series, areas, rates = [], [], []
    for k, (label, finalist) in enumerate(parts):
        curve = mapped(finalist, "pr")
        if points := numbers_only(curve.get("recall"), curve.get("precision")):
            series.append(Series(label, points[0], points[1], tone=k))
            areas.append((label, curve.get("average_precision")))
            rates.append(_base_rate(finalist))
    if not series:
        return None
    yes, rate = short(task.get("positive") or "yes", 24), next((r for r in rates if r is not None), None)
    guess = "" if rate is None else f", where guessing gives {number(rate)}"
    if len(parts) == 1:
        title = f"Average precision is {number(areas[0][1])}{guess}"
    else:
        title = _ranking("average precision", areas)
    listed = "; ".join(f"{label}: average precision {number(area)}" for label, area in areas)
    return Figure(
        title,
        f"Precision against recall. {listed}{guess}.",
        "Precision and recall: how pure the alarms stay as more of the hits are found.",
        xy(
            Axis(f"recall: share of “{yes}” found", "share", SHARE),
            Axis("precision: share of alarms that are right", "share", SHARE),
            series,
            [] if rate is None else [Reference("horizontal", "guessing", rate, "left")],
            square=True,
        ),
    )


def _base_rate(finalist: Part) -> float | None:
    table = mapped(finalist, "thresholds")
    if not (cells := numbers_only(*(table.get(cell) for cell in ("tp", "fp", "tn", "fn")))):
        return None
    tp, fp, tn, fn = (cell[0] for cell in cells)
    total = tp + fp + tn + fn
    return (tp + fn) / total if total else None


def calibration(parts: list[tuple[str, Part]], task: Part) -> Figure | None:
    """Observed frequency over stated probability."""
    series, errors = [], []
    for k, (label, finalist) in enumerate(parts):
        part = mapped(finalist, "calibration")
        bins = parts_of(part, "bins")
        fields = [[b.get(key) for b in bins] for key in ("mean", "rate", "low", "high", "count")]
        if points := numbers_only(*fields):
            mean, rate, low, high, size = points
            series.append(Series(label, mean, rate, low, high, "points", k, size))
            errors.append((label, part.get("error")))
    if not series:
        return None
    binary = task.get("kind") == "binary"
    # Probabilities of a rare event all lie in a corner of the unit square: the axes end a little above the largest.
    top = max(max(max(part.x), max(part.high or part.y)) for part in series)
    domain = (0.0, min(1.0, math.ceil(top * 20 + 0.2) / 20))
    event = f"“{short(task.get('positive') or 'yes', 24)}”" if binary else "the most probable class"
    if len(parts) == 1:
        error = errors[0][1]
        points_off = f"{error * 100:.1f} percentage points" if is_number(error) else ABSENT
        title = f"Stated probabilities are off by {points_off} on average"
    else:
        title = "Do the stated probabilities come true?"
    listed = "; ".join(f"{label}: mean error {number(error, 2)}" for label, error in errors)
    return Figure(
        title,
        f"Calibration: how often {event} came true against the probability stated. {listed}.",
        "On the diagonal, “70\u00a0%” comes true in 70 of 100 cases. Whiskers are 95\u00a0% intervals.",
        xy(
            Axis(f"stated probability of {event}", "share", domain),
            Axis("how often it came true", "share", domain),
            series,
            [Reference("diagonal", "")],
            square=True,
        ),
    )


def confusion(finalist: Part) -> Figure | None:
    """Actual against predicted classes, rarer classes pooled when they are many."""
    part = mapped(finalist, "confusion")
    labels, rows = [ABSENT if label is None else str(label) for label in listed(part, "labels")], listed(part, "counts")
    if len(rows) != len(labels) or not labels:
        return None
    if not all(isinstance(row, list) and len(row) == len(labels) and all(map(is_number, row)) for row in rows):
        return None
    total, right = sum(map(sum, rows)), sum(rows[k][k] for k in range(len(labels)))
    names, cells = _pooled(labels, rows)
    share = percent(right / total) if total else ABSENT
    worst = max(
        ((rows[i][j], i, j) for i in range(len(labels)) for j in range(len(labels)) if i != j), default=(0, 0, 0)
    )
    mistake = (
        f" The most frequent mistake: {count(worst[0])} × “{short(labels[worst[1]])}” taken for “{short(labels[worst[2]])}”."
        if worst[0]
        else ""
    )
    return Figure(
        f"{count(right)} of {count(total)} sealed rows ({share}) are classified rightly",
        f"Confusion matrix of {len(names)} classes: {count(right)} of {count(total)} on the diagonal.{mistake}",
        f"Rows: what they are. Columns: what the model says. Shade: share of the row.{mistake}",
        matrix(names, cells),
    )


def _pooled(labels: list[str], rows: list[list[float]]) -> tuple[list[str], list[list[float]]]:
    if len(labels) <= CLASSES:
        return labels, rows
    frequent = sorted(range(len(labels)), key=lambda k: -sum(rows[k]))[: CLASSES - 1]
    kept = sorted(frequent)
    place = {k: i for i, k in enumerate(kept)}
    rest = len(kept)
    cells = [[0.0] * (rest + 1) for _ in range(rest + 1)]
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            cells[place.get(i, rest)][place.get(j, rest)] += value
    return [*(labels[k] for k in kept), f"{len(labels) - rest} other classes"], cells


def residuals(finalist: Part, task: Part) -> list[Figure | None]:
    """Actual against predicted values, and the spread of the errors."""
    part = mapped(finalist, "residuals")
    target = short(task.get("target") or "the target")
    figures: list[Figure | None] = []
    if points := numbers_only(part.get("predicted"), part.get("actual")):
        predicted, actual = points
        errors = [a - p for p, a in zip(predicted, actual, strict=True)]
        typical = part["typical"] if is_number(part.get("typical")) else median(abs(e) for e in errors)
        some = is_number(part.get("rows")) and part["rows"] > len(actual)
        drawn = f"{count(len(actual))}{' of ' + count(part['rows']) if some else ''} sealed rows"
        ends = (min(predicted + actual), max(predicted + actual))
        cloud = Series("sealed rows", predicted, actual, style="cloud")
        figures.append(
            Figure(
                f"Half of the predictions are within {readable(typical, '.3g')} of the truth",
                f"Actual {target} against predicted, {drawn}.",
                "On the diagonal a prediction is exact; above it, the truth was higher than predicted.",
                xy(
                    Axis(f"predicted {target}", domain=ends),
                    Axis(f"actual {target}", domain=ends),
                    [cloud],
                    [Reference("diagonal", "exact")],
                    square=True,
                ),
            )
        )
        wrong = Series("sealed rows", predicted, errors, style="cloud", tone=1)
        figures.append(
            Figure(
                _spread(predicted, errors),
                f"Error (actual minus predicted) against the prediction, {drawn}.",
                "Errors should scatter evenly about zero, wherever the prediction lies.",
                xy(
                    Axis(f"predicted {target}"),
                    Axis("error: actual − predicted"),
                    [wrong],
                    [Reference("horizontal", "exact", 0.0)],
                    square=True,
                ),
            )
        )
    histogram = mapped(part, "histogram")
    edges, counts = histogram.get("edges"), histogram.get("counts")
    if isinstance(edges, list) and isinstance(counts, list) and len(edges) == len(counts) + 1 and sum(counts):
        tallest = max(range(len(counts)), key=lambda k: counts[k])
        figures.append(
            Figure(
                f"Errors are most often between {number(edges[tallest])} and {number(edges[tallest + 1])}",
                f"Histogram of the errors of {count(sum(counts))} sealed rows.",
                "Error: actual minus predicted. A long tail on one side means surprises on that side.",
                columns(
                    Axis("error: actual − predicted"),
                    Axis("sealed rows"),
                    edges,
                    counts,
                    [Reference("vertical", "exact", 0.0)],
                ),
            )
        )
    return figures


def _spread(predicted: list[float], errors: list[float]) -> str:
    """Whether the errors grow with the prediction: the typical error of the upper half against the lower half's."""
    if len(errors) < 40:
        return "The errors over the prediction"
    middle = median(predicted)
    lower = [abs(e) for p, e in zip(predicted, errors, strict=True) if p <= middle]
    upper = [abs(e) for p, e in zip(predicted, errors, strict=True) if p > middle]
    if not lower or not upper or min(median(lower), median(upper)) <= 0:
        return "The errors over the prediction"
    ratio, sure = median(upper) / median(lower), _differ(lower, upper)
    if ratio > 1.25 and sure:
        return f"Errors grow with the prediction: {ratio:.1f} × larger in the upper half"
    if ratio < 0.8 and sure:
        return f"Errors shrink with the prediction: {1 / ratio:.1f} × smaller in the upper half"
    if 0.8 <= ratio <= 1.25:
        return "Errors are about as large for small as for large predictions"
    return "Whether errors change with the prediction cannot be told from these rows"


def _differ(a: list[float], b: list[float]) -> bool:
    """Whether one sample is larger than the other beyond chance: the sum of ranks, by its normal approximation at 5 %."""
    ordered = sorted([(v, 0) for v in a] + [(v, 1) for v in b])
    total = sum(rank for rank, (_, side) in enumerate(ordered, 1) if side)
    n, m = len(a), len(b)
    return abs(total - m * (n + m + 1) / 2) > 1.96 * math.sqrt(n * m * (n + m + 1) / 12)


def importance(finalist: Part, task: Part) -> Figure | None:
    """What shuffling each column costs."""
    items = [i for i in parts_of(finalist, "importance") if is_number(i.get("mean"))]
    if not items:
        return None
    metric = mapped(task, "metric")
    label, spec = metric.get("label") or "score", metric.get("format")
    first = max(items, key=lambda item: item["mean"])
    beyond_chance = [item for item in items if not is_number(item.get("low")) or item["low"] > 0]
    if first["mean"] > 0 and first in beyond_chance:
        title = (
            f"“{short(named(first, 'feature'))}” matters most: shuffling it worsens {label} by {number(first['mean'])}"
        )
    elif beyond_chance:
        title = f"“{short(named(beyond_chance[0], 'feature'))}” matters: shuffling it worsens {label} beyond chance"
    else:
        title = "No single column matters beyond chance: shuffling it worsens nothing that could be measured"
    rows = [
        {"label": named(i, "feature"), "value": i["mean"], "low": i.get("low"), "high": i.get("high")} for i in items
    ]
    listed = "; ".join(f"{short(named(i, 'feature'))} {with_format(i['mean'], spec)}" for i in items[:5])
    return Figure(
        title,
        f"Permutation importance of {len(items)} columns. {listed}.",
        "Each column is shuffled in the sealed rows, and the model scored again. Whiskers are 95\u00a0% intervals.",
        bars(Axis(f"{label} lost when the column is shuffled"), rows),
        wide=len(items) > 12,
    )


def _days(values: list[Any]) -> list[float | None]:
    found: list[float | None] = []
    for value in values:
        try:
            when = datetime.fromisoformat(str(value))
        except ValueError:
            found.append(None)
            continue
        when = when.replace(tzinfo=UTC) if when.tzinfo is None else when
        found.append(when.timestamp() * 1000.0)
    return found


def dependence(part: Part) -> Figure | None:
    """The mean prediction as one column changes, everything else left as it is."""
    feature, label, grid = short(named(part, "feature")), part.get("label") or "prediction", listed(part, "grid")
    mean = listed(part, "mean")
    low, high = (listed(part, end) or mean for end in ("low", "high"))
    note = "Mean over the rows, everything else left as it is; the band holds the middle 80\u00a0% of them."
    if part.get("kind") == "category":
        rows = [
            {"label": str(g), "value": m, "low": lo, "high": hi}
            for g, m, lo, hi in zip(grid, mean, low, high, strict=False)
            if is_number(m)
        ]
        if not rows:
            return None
        least, most = min(rows, key=lambda r: r["value"]), max(rows, key=lambda r: r["value"])
        return Figure(
            f"“{feature}”: from {number(least['value'])} ({short(least['label'], 24)}) to {number(most['value'])} "
            f"({short(most['label'], 24)})",
            f"Mean {label} for each level of {feature}.",
            note.replace("the band holds", "whiskers hold"),
            bars(Axis(f"{label}, mean"), rows, mark="dot", heading=feature),
        )
    dates = part.get("kind") == "date"
    x = _days(grid) if dates else grid
    points = numbers_only(x, mean, low, high)
    if not points:
        return None
    place, value, below, above = points
    if len(place) < FEWEST_FOR_A_CURVE and not dates:
        rows = [
            {"label": number(x), "value": v, "low": lo, "high": hi}
            for x, v, lo, hi in zip(place, value, below, above, strict=True)
        ]
        return Figure(
            f"“{feature}”: {number(value[0])} at {number(place[0])}, {number(value[-1])} at {number(place[-1])}",
            f"Mean {label} at {len(place)} values of {feature}: too few for a curve.",
            note.replace("the band holds", "whiskers hold") + " Too few different values for a curve.",
            bars(Axis(f"{label}, mean"), rows, mark="dot", heading=feature),
        )
    start, end = (str(grid[0])[:10], str(grid[-1])[:10]) if dates else (number(place[0]), number(place[-1]))
    return Figure(
        f"{_trend(feature, value)}: {number(value[0])} at {start}, {number(value[-1])} at {end}",
        f"Mean {label} as {feature} goes from {start} to {end}.",
        note,
        xy(
            Axis(feature, "date" if dates else "number"),
            Axis(f"{label}, mean"),
            [Series("mean prediction", place, value, below, above)],
        ),
    )


def _trend(feature: str, value: list[float]) -> str:
    """How a curve runs, in words: it rises, falls, turns, or stays level."""
    span = max(value) - min(value)
    steps = [b - a for a, b in itertools.pairwise(value)]
    up, down = sum(s for s in steps if s > 0), -sum(s for s in steps if s < 0)
    if span == 0 or span < 1e-9 * max(abs(v) for v in value):
        return f"“{feature}” makes no difference"
    if down <= 0.1 * up:
        return f"Rises with “{feature}”"
    if up <= 0.1 * down:
        return f"Falls with “{feature}”"
    clear = 0.25 * span
    if min(value[0], value[-1]) - min(value) > clear > max(value) - max(value[0], value[-1]):
        return f"Falls, then rises with “{feature}”"
    if max(value) - max(value[0], value[-1]) > clear > min(value[0], value[-1]) - min(value):
        return f"Rises, then falls with “{feature}”"
    if abs(value[-1] - value[0]) > 0.5 * span:
        return f"Mostly {'rises' if value[-1] > value[0] else 'falls'} with “{feature}”"
    return f"Rises and falls with “{feature}”"


def learning_curve(finalist: Part, task: Part) -> Figure | None:
    """Scores over the number of training rows."""
    part = mapped(finalist, "learning_curve")
    rows, validation = part.get("rows"), part.get("validation")
    low, high = (part.get(key) if isinstance(part.get(key), list) else validation for key in ("low", "high"))
    points = numbers_only(rows, validation, low, high)
    if not points:
        return None
    series = [Series("rows not seen", points[0], points[1], low=points[2], high=points[3])]
    if train := numbers_only(rows, part.get("train")):
        series.append(Series("training rows", train[0], train[1], tone=1))
    label = mapped(task, "metric").get("label") or "score"
    return Figure(
        str(part.get("reading") or f"{label.capitalize()} as the training rows grow"),
        f"Learning curve: {label} on unseen rows goes from {number(points[1][0])} with {count(points[0][0])} rows to "
        f"{number(points[1][-1])} with {count(points[0][-1])} rows.",
        "Learning curve: the model trained on ever more rows. The gap between the lines is what it learnt by heart.",
        xy(Axis("training rows"), Axis(label), series),
    )


def coefficients(finalist: Part) -> Figure | None:
    """The weights of a linear model, the largest twenty."""
    items = [i for i in parts_of(finalist, "coefficients") if is_number(i.get("value"))]
    if not items:
        return None
    largest = sorted(items, key=lambda item: -abs(item["value"]))
    rows = [{"label": named(i, "feature"), "value": i["value"]} for i in largest[:20]]
    weights = mapped(finalist, "weights")
    every = weights["all"] if is_number(weights.get("all")) else len(items)
    zero = weights["zero"] if is_number(weights.get("zero")) else sum(1 for i in items if i["value"] == 0)
    left = f" The largest {len(rows)} of {count(every)} are drawn." if every > len(rows) else ""
    return Figure(
        f"“{short(named(largest[0], 'feature'))}” has the largest weight: {number(largest[0]['value'])}",
        f"Weights of the linear model, {count(every)} in all, {count(zero)} of them zero.",
        f"To the right pushes the prediction up, to the left down. {count(zero)} of {count(every)} weights are zero.{left}",
        bars(Axis("coefficient, in units of the encoded column"), rows),
        wide=len(rows) > 12,
    )


def finalist_figures(label: str, finalist: Part, task: Part) -> list[Figure | None]:
    """Everything that can be drawn of one finalist, in reading order."""
    alone = [(label, finalist)]
    dependences = [dependence(part) for part in parts_of(finalist, "dependence")]
    return [
        roc(alone, task),
        precision_recall(alone, task),
        calibration(alone, task),
        confusion(finalist),
        *residuals(finalist, task),
        importance(finalist, task),
        learning_curve(finalist, task),
        coefficients(finalist),
        *dependences,
    ]


def comparison_figures(parts: list[tuple[str, Part]], task: Part) -> list[Figure | None]:
    """The finalists' curves over one another, where at least two of them have one."""
    drawn: list[Figure | None] = []
    figures: tuple[Callable[[list[tuple[str, Part]], Part], Figure | None], ...] = (roc, precision_recall, calibration)
    for figure, key in zip(figures, ("roc", "pr", "calibration"), strict=True):
        having = [(label, part) for label, part in parts if isinstance(part.get(key), dict)]
        drawn.append(figure(having, task) if len(having) > 1 else None)
    return drawn
