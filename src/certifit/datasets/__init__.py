"""Three small real tables that come with the package.

=========  ==========  ====  =======  ===========================================================
name       task        rows  columns  license
=========  ==========  ====  =======  ===========================================================
default    binary     10000        4  BSD-3-Clause (ISLP, An Introduction to Statistical Learning)
penguins   3 classes    344        8  CC0 (palmerpenguins: Horst, Hill and Gorman)
wage       regression  3000       10  BSD-3-Clause (ISLP, An Introduction to Statistical Learning)
=========  ==========  ====  =======  ===========================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DATASETS", "Dataset", "load", "load_default", "load_penguins", "load_wage", "path"]

ISLP = "BSD-3-Clause; from the package ISLP 0.6.0, data of G. James, D. Witten, T. Hastie, R. Tibshirani and J. Taylor"
PALMER = "CC0; from the package palmerpenguins by A. Horst, A. Hill and K. Gorman, data collected by K. Gorman"


@dataclass(frozen=True)
class Dataset:
    """A table that comes with the package.

    Attributes
    ----------
    name : str
        Its name.
    frame : polars.DataFrame
        The table, with the target among its columns.
    target : str
        The column to predict.
    description : str
        What the rows and columns are.
    license : str
        Who made it, and under which terms it may be passed on.
    """

    name: str
    frame: pl.DataFrame
    target: str
    description: str
    license: str


def path(name: str) -> Path:
    """Where the file of a bundled table lies.

    Examples
    --------
    >>> from certifit import datasets
    >>> datasets.path("wage").name
    'wage.csv.gz'
    """
    return Path(__file__).with_name(f"{_known(name)}.csv.gz")


def load(name: str) -> Dataset:
    """A bundled table by name: "default", "penguins" or "wage".

    Examples
    --------
    >>> from certifit import datasets
    >>> data = datasets.load("penguins")
    >>> data.target, data.frame.shape
    ('species', (344, 8))
    """
    return DATASETS[_known(name)]()


def load_default() -> Dataset:
    """Credit card holders: who will default? Binary, 3 % positive.

    Examples
    --------
    >>> from certifit.datasets import load_default
    >>> load_default().frame.shape
    (10000, 4)
    """
    text = "10,000 (simulated) holders of a credit card: student or not, balance, income, and whether they defaulted."
    return _loaded("default", "default", text, ISLP)


def load_penguins() -> Dataset:
    """Penguins of the Palmer archipelago: which of three species? With missing values.

    Examples
    --------
    >>> from certifit.datasets import load_penguins
    >>> load_penguins().frame["species"].n_unique()
    3
    """
    text = "344 penguins of three species on three islands near Palmer Station: bill, flipper, mass, sex and year."
    return _loaded("penguins", "species", text, PALMER)


def load_wage() -> Dataset:
    """Men in the Mid-Atlantic region of the United States: what do they earn? Regression.

    The logarithm of the wage, a column of the original, is left out: it is the target.

    Examples
    --------
    >>> from certifit.datasets import load_wage
    >>> data = load_wage()
    >>> data.target, data.frame.height
    ('wage', 3000)
    """
    text = "Wage, age, education, job and health of 3,000 men in the Mid-Atlantic region, surveyed 2003 to 2009."
    return _loaded("wage", "wage", text, ISLP)


DATASETS: dict[str, Callable[[], Dataset]] = {"default": load_default, "penguins": load_penguins, "wage": load_wage}
"""Every bundled table, by name."""


def _known(name: str) -> str:
    if name not in DATASETS:
        raise ValueError(f"name must be one of {', '.join(DATASETS)}; got {name!r}.")
    return name


def _loaded(name: str, target: str, description: str, license: str) -> Dataset:
    import polars as pl  # only those who load a table wait for it

    return Dataset(name, pl.read_csv(path(name)), target, description, license)
