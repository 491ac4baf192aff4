"""A table as it is read: what scikit-learn has judged of the parameters, and what they are for us, is found out once."""

from __future__ import annotations

from typing import Any

from certifit.sklearn.translation.counting import learns
from certifit.sklearn.translation.table import Data, Here, Row, Table

__all__ = ["Reading"]

Settings = tuple[dict[str, Any], tuple[tuple[str, Row], ...]]
MOST_KNOWN = 10_000
"""Settings that are remembered."""


class Reading:
    """The table of one class. Checks and translations that depend on parameters alone take longer than many a fit: those of
    settings that were seen before are remembered.
    """

    def __init__(self, table: Table) -> None:
        self.names = tuple(table)
        self.rows: tuple[tuple[str, Row], ...] = tuple(
            (name, row) for name, row in table.items() if not isinstance(row, Here)
        )
        self.judged: set[Any] = set()
        self.known: dict[Any, Settings] = {}

    def __call__(self, estimator: Any) -> None:
        """Let scikit-learn judge the parameters, unless it has judged the same ones before; count the fit."""
        learns(type(estimator))
        key = self._key(estimator)
        if key in self.judged:
            return
        estimator._validate_params()
        if key is not None and len(self.judged) < MOST_KNOWN:
            self.judged.add(key)

    def settings(self, estimator: Any) -> Settings:
        """The parameters of our model that depend on theirs alone, and the rows of the others."""
        key = self._key(estimator)
        return self.known.get(key) or self._read(key, estimator)

    def _key(self, estimator: Any) -> Any:
        """The parameters and their types, since 1 == True; None where they cannot be compared, as arrays."""
        values = tuple(map(vars(estimator).get, self.names))
        key = (values, tuple(map(type, values)))
        try:
            hash(key)
        except TypeError:
            return None
        return key

    def _read(self, key: Any, estimator: Any) -> Settings:
        found: dict[str, Any] = {}
        open_, held, nothing = [], vars(estimator), Data(estimator, None)
        for name, row in self.rows:
            if name not in held:  # a release of scikit-learn may lack it
                continue
            if row.settled(held[name]):
                found.update(row.settings(name, held[name], nothing))
            else:
                open_.append((name, row))
        known = found, tuple(open_)
        if key is not None and len(self.known) < MOST_KNOWN:
            self.known[key] = known
        return known
