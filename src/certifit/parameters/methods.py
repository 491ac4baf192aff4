"""What the methods that every estimator has take and give back, said once.

`fit(X, y, sample_weight)` means the same in every class, so a method's docstring names only what is special to it; the
sections of numpydoc are completed from here when the class is made. An argument described by hand keeps its words; a class
all of whose methods take something else says so once, by ``takes={"X": DENSE}`` beside its bases, or of one method by
``takes={"fit.X": PAIRWISE}``; where the entry speaks of other arguments too, they are described.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from sklearn.base import ClassifierMixin

from certifit.parameters.docstrings import HEADING, described, entries

__all__ = [
    "DENSE",
    "PAIRWISE",
    "RETURNS",
    "ROWS",
    "SEVERAL",
    "VISITS",
    "WITH_HOLES",
    "complete_methods",
    "weights",
]


def weights(text: str, of: str = "n_samples") -> str:
    """The entry of `sample_weight` where it means something of its own."""
    return f"sample_weight : array of shape ({of},), optional\n    {text}"


MATRIX = "array, sparse matrix or data frame of shape (n_samples, n_features)"
ARGUMENTS = {
    "X": f"X : {MATRIX}\n    Features.",
    "y": "y : array of shape (n_samples,)\n    Target.",
    "sample_weight": weights("A weight of 2 counts a row twice, a weight of 0 drops it."),
}
DENSE = "X : array or data frame of shape (n_samples, n_features)\n    Features."
ROWS = "X : array or data frame of shape (n_samples, n_features)\n    Rows."
PAIRWISE = ROWS[:-1] + '; with ``metric="precomputed"`` their dissimilarities, of shape (n_samples, n_samples).'
WITH_HOLES = ARGUMENTS["X"][:-1] + "; NaN is a missing value and goes, at every split, to the better side."
SEVERAL = "y : array of shape (n_samples,) or (n_samples, n_outputs)\n    Target, or several."
LABELS = "y : array of shape (n_samples,)\n    Labels, of any type."
VISITS = weights("Visits of each row: a weight of 2 counts a row twice, a weight of 0 drops it.")
IGNORED = "y : ignored\n    For pipelines."
RETURNS = {
    "fit": "self",
    "partial_fit": "self",
    "predict": "array of shape (n_samples,)",
    "predict_proba": "array of shape (n_samples, n_classes)",
    "predict_log_proba": "array of shape (n_samples, n_classes)",
    "decision_function": "array of shape (n_samples,) or (n_samples, n_classes)",
    "transform": "array of shape (n_samples, n_features_out)",
    "log_density": "array of shape (n_samples,)",
    "score": "float",
    "apply": "array of shape (n_samples,)",
    "decision_path": "sparse matrix of shape (n_samples, n_nodes)",
}
RETURNS |= {f"staged_{name}": RETURNS[name] for name in ("predict", "predict_proba", "decision_function")}


def complete_methods(cls: type) -> None:
    """Complete the docstrings of the standard methods that a class or a base of it in this package defines.

    Where a class says what its X is, this goes for all of its public methods.
    """
    for owner in cls.__mro__:
        if not owner.__module__.startswith("certifit.") or "__completed__" in vars(owner):
            continue
        setattr(owner, "__completed__", True)  # noqa: B010 - mypy forbids the plain assignment
        all_alike = "X" in getattr(owner, "__takes__", ())
        for name, method in vars(owner).items():
            known = name in RETURNS or (
                all_alike and not name.startswith("_") and "X" in getattr(method, "__annotations__", ())
            )
            if known and inspect.isfunction(method) and method.__doc__:
                method.__doc__ = _completed(method, owner, RETURNS.get(name))


def _completed(method: Callable[..., Any], owner: type, returned: str | None) -> str:
    """The docstring with an entry for every argument, in the order of the signature, and what comes back."""
    sections = HEADING.split(inspect.cleandoc(method.__doc__ or ""))
    head, titled = sections[0].rstrip(), {part.partition("\n")[0]: part.rstrip() for part in sections[1:]}
    said = entries(titled.pop("Parameters", ""))
    named = {name for entry in said for name in described(entry)}
    signature = inspect.signature(method).parameters
    known: list[str] = []
    for name in signature:
        if name in ARGUMENTS and name not in named:
            known.append(_standard(name, owner, method.__name__, signature))
            named.update(described(known[-1]))
    order = {name: place for place, name in enumerate(signature)}
    listed = sorted([*said, *known], key=lambda entry: order.get(described(entry)[0], len(order)))
    parts = [head]
    if listed:
        parts.append("Parameters\n----------\n" + "\n".join(listed))
    if returned and not {"Returns", "Yields"} & titled.keys():
        title = "Yields" if inspect.isgeneratorfunction(method) else "Returns"
        parts.append(f"{title}\n{'-' * len(title)}\n{returned}")
    return "\n\n".join([*parts, *titled.values()]) + "\n"


def _standard(name: str, owner: type, method: str, signature: Any) -> str:
    """What an argument is where nothing else is said of it."""
    of_class: dict[str, str] = getattr(owner, "__takes__", {})
    if said := of_class.get(f"{method}.{name}") or of_class.get(name):
        return said
    if name == "y" and signature["y"].default is None:
        return IGNORED
    return LABELS if name == "y" and issubclass(owner, ClassifierMixin) else ARGUMENTS[name]
