"""Every alarm a contest can ring: its code, its kind, the sentence, and the condition under which the sentence is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ALARMS", "Alarm", "listed", "of_classes", "ring"]

LISTED = 5


@dataclass(frozen=True)
class Alarm:
    """
    An alarm.

    Parameters
    ----------
    code : str
        Its name: stable, for tests and for programs that read `run.json`.
    kind : str
        Its heading in the report. "leakage" and "split" question every score, and the page says so at its top.
    text : str
        The sentence, with fields in braces.
    when : str
        The condition under which it is rung.
    """

    code: str
    kind: str
    text: str
    when: str


_ALL = (
    # leaks
    Alarm(
        "leak",
        "leakage",
        "'{column}' alone predicts the target almost perfectly ({what} {score}). If it is not known at the time of "
        "prediction, it is a leak: leave it out (drop).",
        "one feature predicts the target of rows left out with an AUC, accuracy or R² above 0.99, or classes are bands of it that"
        " meet where rows are dense",
    ),
    Alarm(
        "leak of several",
        "leakage",
        "The target is {formula}, exactly or nearly ({what} {score}). If these columns are not known at the time of "
        "prediction, they are a leak: leave them out (drop), or every score below says nothing.",
        "a sum, difference, product or quotient of up to eight features gives a number, or one of two features its order, with "
        "R² above 0.9999, and no feature alone does",
    ),
    Alarm(
        "leak of two",
        "leakage",
        "{formula} predicts the target almost perfectly ({what} {score}), and neither column does so alone. If they are not "
        "known at the time of prediction, they are a leak: leave them out (drop).",
        "the sum, difference, product or quotient of two features orders two classes with an AUC above 0.999, and each alone "
        "stays below 0.9; or classes are bands of it that meet where rows are dense, and each alone stays below 0.99",
    ),
    Alarm(
        "leak of three",
        "leakage",
        "{formula} predicts the target almost perfectly ({what} {score}), and none of the three columns does so alone. If they "
        "are not known at the time of prediction, they are a leak: leave them out (drop).",
        "as for two features, by a sum of three with their signs",
    ),
    Alarm(
        "leak in an identifier",
        "leakage",
        "The identifier '{column}' tells the target ({what} {score}). It was left out, but other columns may come from "
        "the same source: ask how it is given.",
        "a column left out as an identifier predicts the target of rows left out with a score above 0.9",
    ),
    Alarm(
        "too good",
        "leakage",
        "{label} is almost perfect ({text}). In real tables that is a leak more often than a discovery: ask of every "
        "column that matters whether it is known at the time of prediction.",
        "the best entrant explains more than 99.99 % of the variation of a number, or removes more than 99.9 % of the "
        "baseline's log loss, on 30 sealed rows or more, and no other leak was found",
    ),
    # the split
    Alarm(
        "one group",
        "split",
        "Only one group, '{group}', is sealed: the score says how the methods do on that group, not on new groups. More "
        "groups would help.",
        "the split is by group and one group is sealed",
    ),
    Alarm(
        "few groups",
        "interval",
        "Only {count} groups are sealed. Intervals count rows, not groups: where the rows of a group are alike, they are too "
        "narrow.",
        "the split is by group and from two to nine groups are sealed",
    ),
    Alarm(
        "class not sealed",
        "split",
        "No sealed row has the class{es} {classes}: nothing below says how well {they_are} predicted.",
        "a class that has at least two rows is missing from the sealed rows",
    ),
    Alarm(
        "class not trained",
        "split",
        "No training row has the class{es} {classes}: {they} cannot be learned, and every answer to {their} sealed rows is an "
        "error.",
        "a class of the sealed rows is missing from the training rows",
    ),
    Alarm(
        "copies",
        "duplicates",
        "{count:,} rows ({share} %) are exact copies of an earlier row{aside}",
        "features and target of a row equal those of an earlier one, beyond chance; from 5 % of the rows on, that intervals "
        "count them is said",
    ),
    Alarm(
        "repeats",
        "duplicates",
        "{count:,} rows ({share} %) equal an earlier row, which chance alone brings about where values are so few: each counts "
        "as a case of its own.",
        "rows equal an earlier one, and at least half as many do if every column is shuffled for itself",
    ),
    Alarm(
        "copies across",
        "duplicates",
        "{count:,} sealed rows are exact copies of training rows: on these the score flatters.",
        "a sealed row equals a training row",
    ),
    Alarm(
        "sorted",
        "order",
        "The rows are sorted by the target ({what} {score}): a column that numbers or dates the rows would give it away.",
        "the place of a row in the table predicts its target with a score above 0.95, and no time column is given",
    ),
    Alarm(
        "trend",
        "order",
        "The target changes along '{column}' ({what} {score}). If you will predict what comes later, seal the latest "
        "rows: --time-column {column}.",
        "a date, or the order of rows, tells more than a tenth of a numeric target or ranks two classes with an AUC above"
        " 0.65, and no time column is given",
    ),
    Alarm(
        "order",
        "order",
        "The target changes along the rows of the table ({what} {score}). If they are in order of time, say which column "
        "gives it: --time-column.",
        "as for a trend, by the order of the rows alone",
    ),
    Alarm(
        "drift",
        "drift",
        "'{column}' has drifted: its values in the sealed, later part differ from the earlier ones.",
        "with a split by time, the distributions of a feature in the two parts are further apart than 0.3",
    ),
    # columns and rows
    Alarm(
        "missing tells",
        "missing",
        "Whether '{column}' is missing tells much about the target: make sure it is also missing when you predict.",
        "the squared correlation of being missing with the target is above 0.1",
    ),
    Alarm(
        "missing",
        "missing",
        "Many values are missing: {columns}.",
        "more than 30 % of a column is missing",
    ),
    Alarm(
        "pooled",
        "categories",
        "Rare categories are taken together as one: {columns}. What one of them alone would tell is not learned.",
        "categories of a feature are too rare, or too many, to have a column of numbers each, and hold a tenth of the training "
        "rows or more",
    ),
    Alarm(
        "rare class",
        "imbalance",
        "The class '{label}' is rare: {count:,} of {rows:,} training rows ({share} %). Accuracy says little here; look at the"
        " probabilities and the costs.",
        "a class has fewer than 5 % of the training rows (2.5 % among several)",
    ),
    Alarm(
        "few rows",
        "small",
        "Only {train} training rows and {test} sealed ones: expect wide intervals.",
        "fewer than 200 training rows",
    ),
    Alarm(
        "wide",
        "small",
        "There are more columns ({columns:,}) than training rows ({train:,}): some will fit by chance.",
        "more features than training rows",
    ),
    Alarm(
        "left out",
        "dropped",
        "Left out as {what}: {columns}.",
        "a column is an identifier, constant or empty",
    ),
    Alarm(
        "single row",
        "small",
        "Of the class{es} {classes} there is a single row{each}: it is used for training, and nothing can be said about it.",
        "a class has one row",
    ),
    Alarm(
        "target missing",
        "missing",
        "{count:,} row{s} without a value of the target {were} left out.",
        "the target of a row is missing",
    ),
    Alarm(
        "bad rows",
        "bad rows",
        "{count:,} row{s} {were} left out; the first is line {line:,}: {why}.",
        "a line of the file does not fit the header",
    ),
    Alarm(
        "reading",
        "other",
        "{note}.",
        "something had to be decided to read the file",
    ),
    # after the race
    Alarm(
        "heavy tail",
        "interval",
        "A few rows make up much of the error (the {rows:,} worst of {every:,} {sealed} give {share} % of it): the interval of "
        "the score cannot be trusted, since the next such row may lie further out.",
        "of 30 sealed rows or more the worst 2 % give more than half of the metric's loss of a number (squared errors, where it "
        "is no mean over rows); or, of fewer than 2,000 together with the rows left out in the search, more than a third",
    ),
    Alarm(
        "no time",
        "time",
        "There was no time for {parts}: give the contest more --time.",
        "a part of the report was left out because the time was over",
    ),
    Alarm(
        "not refitted",
        "other",
        "The model in the file was not fitted on all rows: {why}.",
        "the refit failed or had no time",
    ),
    Alarm(
        "not saved",
        "other",
        "The winner was not saved: {why}",
        "the winner is not one of Certifit's own models",
    ),
)

ALARMS: dict[str, Alarm] = {alarm.code: alarm for alarm in _ALL}


def ring(code: str, column: str | None = None, **fields: Any) -> dict[str, Any]:
    """A warning of the record: kind, code, column and text."""
    alarm = ALARMS[code]
    return {"kind": alarm.kind, "code": code, "column": column, "text": alarm.text.format(column=column, **fields)}


def of_classes(labels: list[str]) -> dict[str, str]:
    """Fields of a sentence about one class or several."""
    one = len(labels) == 1
    return {
        "classes": listed(labels),
        "es": "" if one else "es",
        "they": "it" if one else "they",
        "they_are": "it is" if one else "they are",
        "their": "its" if one else "their",
        "each": "" if one else " each",
    }


def listed(names: list[str]) -> str:
    """Names in quotes, the first few."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(f"'{name}'" for name in names[:LISTED]) + more
