"""What the report shows of a finalist: curves, importance, dependence, growth with the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from certifit._types import Array
from certifit.contest.entrants import Conditions
from certifit.contest.record.model import Chain
from certifit.contest.search.search import fit_setting
from certifit.contest.standing import Standing
from certifit.contest.table.encoded import EncodedRows, Training, encoded_by, encoder_for
from certifit.contest.verdict.scoring import Scoring
from certifit.evaluation.decisions.calibration import calibration_curve
from certifit.evaluation.decisions.costs import least_costly
from certifit.evaluation.decisions.thresholds import threshold_table
from certifit.evaluation.explanation.dependence import partial_dependence
from certifit.evaluation.explanation.importance import permutation_importance
from certifit.evaluation.metrics.labels import confusion_matrix
from certifit.evaluation.metrics.ranking import average_precision, pr_curve, roc_auc, roc_curve, thin_curve
from certifit.evaluation.risk.curves import learning_curve, reading
from certifit.models.tree.model import BaseTree

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Evidence", "dependence", "growth", "importance", "shown_at_once"]

MOST_ROWS = 2000  # sealed rows that importance and dependence are computed on
MOST_SHUFFLED = 60  # columns whose importance is computed
LEVELS = 16
SHOWN = {"importance": 20, "dependence": 6, "coefficients": 25, "scatter": 800, "rules": 6000, "decided": 1000}


@dataclass(frozen=True)
class Evidence:
    """What a diagnosis may look at, once all scores are in: the training rows, and the sealed ones."""

    training: Training
    features: pl.DataFrame
    y: Array
    scoring: Scoring
    conditions: Conditions


def shown_at_once(evidence: Evidence, standing: Standing, predicted: Array) -> dict[str, Any]:
    """What costs next to nothing: curves and tables of the predictions, coefficients, rules."""
    if evidence.scoring.n_classes:
        page = _classes(evidence.scoring, evidence.y, predicted, evidence.conditions.classes)
    else:
        page = {"residuals": _residuals(evidence.y, predicted, evidence.conditions.seed)}
    return page | _inside(standing, evidence.conditions.classes)


def _classes(scoring: Scoring, y: Array, predicted: Array, labels: tuple[str, ...]) -> dict[str, Any]:
    said = scoring.labels(predicted)
    page: dict[str, Any] = {
        "confusion": {
            "labels": list(labels),
            "counts": confusion_matrix(y, said, classes=scoring.classes).astype(int).tolist(),
        }
    }
    if scoring.n_classes != 2:
        top = np.argmax(predicted, axis=1)
        curve = calibration_curve(top == y, predicted[np.arange(y.shape[0]), top])
        page["calibration"] = _calibration(curve)
        if scoring.matrix is not None:
            page["decisions"] = _decisions(scoring.matrix, y, predicted)
        return page
    p = predicted[:, 1]
    page["calibration"] = _calibration(calibration_curve(y, p, classes=scoring.classes))
    page["thresholds"] = _thresholds(scoring, y, p)
    if np.unique(y).shape[0] == 2:
        roc, pr = roc_curve(y, p, classes=scoring.classes), pr_curve(y, p, classes=scoring.classes)
        fpr, tpr = thin_curve(roc.fpr, roc.tpr)
        recall, precision = thin_curve(pr.recall, pr.precision)
        page["roc"] = {"fpr": fpr.tolist(), "tpr": tpr.tolist(), "auc": roc_auc(y, p, classes=scoring.classes)}
        area = average_precision(y, p, classes=scoring.classes)
        page["pr"] = {"recall": recall.tolist(), "precision": precision.tolist(), "average_precision": area}
    return page


def _decisions(costs: Array, y: Array, predicted: Array) -> dict[str, Any]:
    """Mean cost of the sealed rows by the rule of least expected cost, by the most probable class, and by always one class.

    Truth and probabilities of at most 1,000 rows let the page decide anew under other costs.
    """
    some = np.unique(np.linspace(0, y.shape[0] - 1, min(y.shape[0], SHOWN["decided"])).round().astype(int))
    return {
        "truth": y[some].astype(int).tolist(),
        "probabilities": np.round(predicted[some], 4).tolist(),
        "cost": float(costs[y, least_costly(predicted, costs)].mean()),
        "most_probable": float(costs[y, predicted.argmax(axis=1)].mean()),
        "always": costs[y].mean(axis=0).tolist(),
        "changed": int((least_costly(predicted, costs) != predicted.argmax(axis=1)).sum()),
        "rows": int(y.shape[0]),
    }


def _thresholds(scoring: Scoring, y: Array, p: Array) -> dict[str, Any]:
    """Counts of the sealed rows at many thresholds, the contest's own among them."""
    table = {name: np.asarray(c) for name, c in threshold_table(y, p, classes=scoring.classes).as_dict().items()}
    chosen = scoring.threshold
    assert chosen is not None  # there are two classes
    if chosen not in table["threshold"]:
        yes, positive = p >= chosen, y == 1
        own = {
            "threshold": chosen,
            "tp": (yes & positive).sum(),
            "fp": (yes & ~positive).sum(),
            "tn": (~yes & ~positive).sum(),
            "fn": (~yes & positive).sum(),
        }
        place = np.searchsorted(table["threshold"], chosen)
        table = {name: np.insert(column, place, own[name]) for name, column in table.items()}
    return {**{name: column.tolist() for name, column in table.items()}, "chosen": chosen}


def _calibration(curve: Any) -> dict[str, Any]:
    bins = [{"mean": b.mean, "rate": b.rate, "low": b.low, "high": b.high, "count": float(b.count)} for b in curve.bins]
    return {"bins": bins, "error": curve.error}


def _residuals(y: Array, predicted: Array, seed: int) -> dict[str, Any]:
    counts, edges = np.histogram(y - predicted, bins=min(40, max(5, int(np.sqrt(y.shape[0])))))
    rows = np.arange(y.shape[0])
    if rows.shape[0] > SHOWN["scatter"]:
        rows = np.sort(np.random.default_rng(seed).choice(rows, SHOWN["scatter"], replace=False))
    return {
        "typical": float(np.median(np.abs(y - predicted))),
        "rows": int(y.shape[0]),
        "predicted": predicted[rows].tolist(),
        "actual": y[rows].tolist(),
        "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
    }


def _inside(standing: Standing, classes: tuple[str, ...]) -> dict[str, Any]:
    """Coefficients of a linear model, rules of a tree."""
    if not isinstance(standing.model, Chain):
        return {}
    estimator = getattr(standing.model.estimator, "estimator_", standing.model.estimator)
    coef = getattr(estimator, "coef_", None)
    if coef is not None and np.squeeze(coef).ndim <= 1:
        flat = np.ravel(coef)
        order = np.argsort(-np.abs(flat), kind="stable")[: SHOWN["coefficients"]]
        names = standing.model.names
        shown = [{"feature": names[j], "value": float(flat[j])} for j in order if flat[j] != 0]
        return {"coefficients": shown, "weights": {"all": flat.shape[0], "zero": int((flat == 0).sum())}}
    if isinstance(estimator, BaseTree):
        text = rules_of(standing.model, classes)
        return {"rules": text if len(text) <= SHOWN["rules"] else text[: SHOWN["rules"]].rsplit("\n", 1)[0] + "\n…"}
    return {}


def rules_of(chain: Chain, classes: tuple[str, ...]) -> str:
    """The rules of a tree in the words of the table: names of columns, categories and classes instead of numbers."""
    tree, labels = chain.estimator, chain.encoder.code_labels()
    return str(
        tree.rules(
            feature_names=chain.names,
            class_names=[classes[int(code)] for code in tree.classes_] if classes else None,
            category_names={
                j: [labels[j][int(code)] for code in codes] for j, codes in tree.categories_.items() if j in labels
            },
        )
    )


def importance(evidence: Evidence, predict: Callable[[Any], Array]) -> list[dict[str, Any]]:
    """What shuffling each column costs, the costliest first."""
    features = evidence.features
    found = permutation_importance(
        lambda X: evidence.scoring.view(predict(X)),
        features,
        evidence.y,
        evidence.scoring.metric,
        n_repeats=3,
        columns=_candidates(predict, features, evidence.conditions.seed),
        random_state=evidence.conditions.seed,
        max_rows=MOST_ROWS,
        classes=evidence.scoring.classes,
    )
    shown = found[: SHOWN["importance"]]
    return [{"feature": f.feature, "mean": f.mean, "low": f.low, "high": f.high} for f in shown]


def _candidates(predict: Callable[[Any], Array], features: pl.DataFrame, seed: int) -> list[str] | None:
    """All columns, or of very many those that go most with the predictions: shuffling each of thousands would take hours."""
    if features.width <= MOST_SHUFFLED:
        return None
    rows = np.random.default_rng(seed).permutation(features.height)[:MOST_ROWS]
    part = features[rows]
    predicted = predict(part)
    target = predicted if predicted.ndim == 1 else predicted[:, -1]
    spread = float(np.var(target))
    if spread == 0.0:
        return list(features.columns[:MOST_SHUFFLED])
    shares = {}
    for name in features.columns:
        # The share of the variance of the predictions that the levels of the column explain, numbers cut at their quantiles.
        codes = part.get_column(name).rank("dense").fill_null(0).to_numpy().astype(np.int64)
        levels = codes * LEVELS // (int(codes.max()) + 1) if codes.max() >= LEVELS else codes
        count = np.bincount(levels)
        mean = np.bincount(levels, weights=target)[count > 0] / count[count > 0]
        shares[name] = float(count[count > 0] @ (mean - target.mean()) ** 2) / (spread * target.shape[0])
    return sorted(shares, key=lambda name: -shares[name])[:MOST_SHUFFLED]


def dependence(evidence: Evidence, predict: Callable[[Any], Array], name: str) -> dict[str, Any]:
    """The mean prediction as one column changes."""
    column, label = _shown_class(evidence)

    def values(X: Any) -> Array:
        predicted = predict(X)
        return predicted if column is None else np.asarray(predicted[:, column])

    kind = {"numeric": "numeric", "date": "date"}.get(evidence.training.kinds[name], "category")
    curve = partial_dependence(
        values, evidence.features, name, kind=kind, max_rows=300, random_state=evidence.conditions.seed
    )
    return {**curve.as_dict(), "label": label}


def _shown_class(evidence: Evidence) -> tuple[int | None, str]:
    """Whose probability a dependence curve shows: the positive class, or the most frequent one."""
    if not evidence.scoring.n_classes:
        return None, "prediction"
    column = 1 if evidence.scoring.n_classes == 2 else int(np.argmax(np.bincount(evidence.training.y)))
    return column, f"probability of {evidence.conditions.classes[column]}"


def growth(evidence: Evidence, standing: Standing) -> dict[str, Any] | None:
    """The same settings on growing parts of the training rows."""
    if not isinstance(standing.model, Chain) or standing.found is None:
        return None
    entrant, best = standing.entrant, standing.found.best
    features, y = evidence.training.features, evidence.training.y

    def fit(rows: Array) -> Callable[[Any], Array]:
        part = features[rows]
        encoder = encoder_for(entrant.encoding, evidence.training.kinds).fit(part)
        chain = fit_setting(
            entrant, best, EncodedRows(encoded_by(encoder, part, y[rows]), None, encoder), evidence.conditions
        )
        return lambda X: evidence.scoring.view(chain.predict(X))

    curve = learning_curve(
        fit,
        features,
        y,
        evidence.scoring.metric,
        sizes=5,
        cv=evidence.training.folds[:2],
        classes=evidence.scoring.classes,
        random_state=evidence.conditions.seed,
        error_score="raise",
    )
    return {**curve.as_dict(), "reading": reading(curve)}
