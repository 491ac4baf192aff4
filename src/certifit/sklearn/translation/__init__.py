"""How a class of scikit-learn's becomes one of ours: tables of parameters, questions to our model, arguments on their way."""

from __future__ import annotations

from certifit.sklearn.translation.table import (
    By,
    Data,
    DropIn,
    Free,
    Instead,
    Only,
    Row,
    Same,
    Several,
    Table,
    fitted,
    fresh,
    known_as,
)

__all__ = [
    "By",
    "Data",
    "DropIn",
    "Free",
    "Instead",
    "Only",
    "Row",
    "Same",
    "Several",
    "Table",
    "fitted",
    "fresh",
    "known_as",
]
