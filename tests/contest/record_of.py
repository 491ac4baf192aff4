"""A small record in which everything is ordinary, to be changed by tests."""

from __future__ import annotations

import copy
from typing import Any


def entrant(name: str, rank: int, value: float, **more: Any) -> dict[str, Any]:
    """An entrant that finished."""
    metrics = {
        "log_loss": {"value": value},
        "accuracy": {"value": 0.9 - 0.01 * rank},
        "roc_auc": {"value": 0.95 - 0.02 * rank},
    }
    return {
        "name": name,
        "label": name.capitalize(),
        "rank": rank,
        "baseline": name == "baseline",
        "readable": name == "logistic",
        "score": {"value": value, "low": 0.9 * value, "high": 1.1 * value},
        "metrics": metrics,
        "skill": 1 - value / 0.6,
        **more,
    }


def record() -> dict[str, Any]:
    """Boosting before logistic regression before the baseline, on two classes, with nothing to warn of."""
    found = {
        "task": {
            "kind": "binary",
            "target": "y",
            "positive": "yes",
            "classes": ["no", "yes"],
            "threshold": 0.5,
            "metric": {"label": "log loss", "format": ".4f"},
        },
        "options": {"cost": None},
        "data": {
            "rows": 1000,
            "test_rows": 200,
            "source": "table.csv",
            "columns_info": [{"role": "feature"}, {"role": "target"}],
            "warnings": [],
        },
        "entrants": [entrant("boosting", 1, 0.3), entrant("logistic", 2, 0.31), entrant("baseline", 3, 0.6)],
        "leaderboard": {"text": "Boosting and Logistic cannot be told apart.", "tied": ["boosting", "logistic"]},
        "finalists": {
            "boosting": {
                "importance": [{"feature": "x", "low": 0.1}],
                "learning_curve": {"reading": "More rows would help."},
            }
        },
        "shipped": {"refitted": True, "rows": 1000},
        "left_out": [],
    }
    return copy.deepcopy(found)
