"""How a class of scikit-learn's becomes one of ours: tables of parameters, questions to our model, arguments on their way."""

from certifit.sklearn.translation.counting import fitted, known_as, learns
from certifit.sklearn.translation.drop_in import DropIn, Several, fresh
from certifit.sklearn.translation.table import (
    COPY_X,
    By,
    Data,
    Free,
    Here,
    Instead,
    Of,
    Only,
    Row,
    Same,
    Table,
    same,
)

__all__ = [
    "COPY_X",
    "By",
    "Data",
    "DropIn",
    "Free",
    "Here",
    "Instead",
    "Of",
    "Only",
    "Row",
    "Same",
    "Several",
    "Table",
    "fitted",
    "fresh",
    "known_as",
    "learns",
    "same",
]
