"""The columns of a model that is fitted on blocks of rows: those of every later block."""

from __future__ import annotations

from typing import Any

__all__ = ["known_columns", "same_columns"]


def known_columns(model: Any, first: bool) -> dict[str, Any]:
    """Number and names of the columns of earlier blocks; nothing before the first."""
    names = () if first else ("n_features_in_", "feature_names_in_")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def same_columns(model: Any, known: dict[str, Any]) -> None:
    """Raise if the gate found other columns than those `known` before it; the model keeps the ones it knows."""
    found = model.n_features_in_
    if not known or found == known["n_features_in_"]:
        return
    vars(model).update(known)
    raise ValueError(
        f"X has {found} features, but {type(model).__name__} is expecting {model.n_features_in_} features as input."
    )
