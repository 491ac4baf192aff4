"""Arguments that two functions take are described once, and a function's own words stay."""

from __future__ import annotations

from certifit.parameters.docstrings import described, takes_as


def model(X: object, p: object, *, tol: float = 0.0, seed: int = 0) -> None:
    """One sentence.

    Parameters
    ----------
    X : array
    p : array
        Weights.
    tol, seed : float, int
        When it ends, and what it draws.
    """


@takes_as(model)
def alike(X: object, label: object, p: object, *, tol: float = 0.0) -> None:
    """Another sentence.

    Parameters
    ----------
    label : array
        Classes.
    p : array
        Only the sign matters.

    Examples
    --------
    >>> True
    True
    """


@takes_as(model)
def silent(p: object, X: object) -> None:
    """A third."""


def test_own_words_stay_and_arguments_come_in_the_order_of_the_signature() -> None:
    assert alike.__doc__ == (
        "Another sentence.\n\nParameters\n----------\nX : array\nlabel : array\n    Classes.\np : array\n"
        "    Only the sign matters.\ntol, seed : float, int\n    When it ends, and what it draws.\n\n"
        "Examples\n--------\n>>> True\nTrue\n"
    )
    assert silent.__doc__ == "A third.\n\nParameters\n----------\np : array\n    Weights.\nX : array\n"


def test_an_entry_names_its_arguments() -> None:
    assert described("tol, seed : float, int\n    When : it ends.") == ["tol", "seed"]
    assert described("X\n    Rows.") == ["X"]
