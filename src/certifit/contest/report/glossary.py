"""The terms of the page in plain words; only those that a run uses are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from certifit.contest.report.cleaning import mapped
from certifit.contest.report.standings import certified_as

__all__ = ["GLOSSARY", "terms"]

Part = dict[str, Any]


def _always(run: Part) -> bool:
    return True


def _kind(*kinds: str) -> Callable[[Part], bool]:
    return lambda run: run["task"].get("kind") in kinds


def _metric(name: str) -> Callable[[Part], bool]:
    return lambda run: any(name in mapped(entrant, "metrics") for entrant in run["entrants"])


def _finalist(key: str) -> Callable[[Part], bool]:
    return lambda run: any(isinstance(part, dict) and part.get(key) for part in run["finalists"].values())


GLOSSARY: dict[str, tuple[str, Callable[[Part], bool]]] = {
    "Sealed rows": (
        "Rows set aside before anything was learnt. No entrant saw them; each was scored on them once. They stand for the "
        "rows you will meet tomorrow.",
        _always,
    ),
    "Entrant": (
        "One way of learning that took part in the contest, with its settings chosen on the training rows.",
        _always,
    ),
    "Finalist": (
        "An entrant looked at closely: the best, some of those that cannot be told apart from it, and the best one that is "
        "simple to explain.",
        _always,
    ),
    "Baseline": (
        "The trivial entrant that ignores every column and always gives the same answer. Whoever does no better has learnt "
        "nothing.",
        _always,
    ),
    "95\u00a0% interval": (
        "The sealed rows are a sample. Were the contest repeated on other samples, 95 of 100 such intervals would hold the "
        "true score.",
        _always,
    ),
    "Cannot be told apart": (
        "The two were scored on the same rows, and the differences row by row are so uneven that chance alone could have "
        "made them. It does not mean that they are equal.",
        _always,
    ),
    "p, adjusted": (
        "How often chance alone would make a difference at least this large, corrected for the number of pairs compared. "
        "Below 0.05 we call a difference real.",
        lambda run: bool(run["leaderboard"].get("pairs")),
    ),
    "Skill": (
        "The share of the baseline's loss that is removed: 100\u00a0% would be a perfect model, 0\u00a0% is the baseline, "
        "below zero is worse than the baseline.",
        _always,
    ),
    "Certificate": (
        "A proof of how far the fit is from the best possible fit of its kind on the training rows. It says that the "
        "computation was finished, not that the model is right about the world.",
        _always,
    ),
    "Certified": ("The distance to the best possible fit is proven to be within the tolerance asked for.", _always),
    "Certified in part": (
        "A part of the fit is proven to be the best of its kind, and the words beside it say which: the pruning of a tree, the "
        "weights of a blend. Of the rest nothing is claimed.",
        lambda run: any(
            certified_as(mapped(entrant, "certificate")) == "certified in part" for entrant in run["entrants"]
        ),
    ),
    "Gap": (
        "The distance from the objective that was reached to a proven lower bound; relative: divided by the objective of the "
        "best constant model.",
        _always,
    ),
    "No bound possible": (
        "For this kind of model nobody knows how to prove such a distance. Judge it by its score on the sealed rows.",
        lambda run: any(
            mapped(entrant, "certificate").get("verdict") == "no bound possible" for entrant in run["entrants"]
        ),
    ),
    "Inner cross-validation": (
        "The training rows are cut into folds; each setting is trained on all but one fold and scored on that one. The "
        "sealed rows play no part.",
        _always,
    ),
    "Hyperparameters": (
        "The settings of a method that are chosen before it learns, here by inner cross-validation.",
        _always,
    ),
    "Log loss": (
        "The mean surprise at what happened, given the probabilities stated. 0 is perfect; being sure and wrong costs most.",
        _metric("log_loss"),
    ),
    "Brier score": (
        "The mean squared distance between the stated probability and what happened (0 or 1).",
        _metric("brier"),
    ),
    "Accuracy": ("The share of rows classified rightly.", _metric("accuracy")),
    "AUC": (
        "The chance that a random row of the class in question is ranked above a random other row. 0.5 is a coin toss.",
        _metric("roc_auc"),
    ),
    "RMSE": (
        "The root of the mean squared error, in units of the target. Large errors weigh more than small ones.",
        _metric("rmse"),
    ),
    "MAE": ("The mean absolute error, in units of the target.", _metric("mae")),
    "R²": ("The share of the target's variance that is explained. 1 is perfect, 0 is the mean.", _metric("r2")),
    "False alarm, miss": (
        "A false alarm says yes where the truth is no; a miss says no where the truth is yes.",
        _kind("binary"),
    ),
    "Threshold": ("The probability from which on the answer is yes.", _kind("binary")),
    "Precision, recall": (
        "Precision: the share of alarms that are right. Recall: the share of all true cases that are found.",
        _kind("binary"),
    ),
    "Calibration": (
        "Whether stated probabilities come true: of 100 rows with “70\u00a0%”, 70 should turn out so.",
        _finalist("calibration"),
    ),
    "Permutation importance": (
        "How much worse the score gets when one column is shuffled, so that it says nothing any more. Columns that say the "
        "same thing share their importance.",
        _finalist("importance"),
    ),
    "Partial dependence": (
        "The mean prediction when one column is set to a value in every row and all else stays. It shows what the model does, "
        "not what causes what.",
        _finalist("dependence"),
    ),
    "Learning curve": (
        "The score as the number of training rows grows; it tells whether more rows would help.",
        _finalist("learning_curve"),
    ),
    "Optimization, estimation, approximation, noise": (
        "Where the remaining error comes from: a computation not finished, too few rows, a model too simple, and what nobody "
        "could predict from these columns.",
        lambda run: isinstance(run.get("ledger"), dict),
    ),
}
"""Term: its meaning, and whether a run uses it."""


def terms(run: Part) -> list[tuple[str, str]]:
    """The terms a run uses, each with its meaning."""
    return [(term, meaning) for term, (meaning, used) in GLOSSARY.items() if used(run)]
