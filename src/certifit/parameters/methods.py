"""What the methods that every estimator has take and give back, said once.

`fit(X, y, sample_weight)` means the same in every class, so a method's docstring names only what is special to it; the
sections of numpydoc are completed from here when the class is made. An argument described by hand keeps its words.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from sklearn.base import ClassifierMixin

__all__ = ["complete_methods"]

MATRIX = "array, sparse matrix or data frame of shape (n_samples, n_features)"
ARGUMENTS = {
    "X": f"X : {MATRIX}\n    Features.",
    "y": "y : array of shape (n_samples,)\n    Target.",
    "sample_weight": "sample_weight : array of shape (n_samples,), optional\n"
    "    A weight of 2 counts a row twice, a weight of 0 drops it.",
}
LABELS = "y : array of shape (n_samples,)\n    Labels, of any type."
IGNORED = "y : ignored\n    For pipelines."
RETURNS = {
    "fit": "self",
    "partial_fit": "self",
    "predict": "array of shape (n_samples,)",
    "predict_proba": "array of shape (n_samples, n_classes)",
    "predict_log_proba": "array of shape (n_samples, n_classes)",
    "decision_function": "array of shape (n_samples,) or (n_samples, n_classes)",
    "transform": "array of shape (n_samples, n_features_out)",
    "score": "float",
    "apply": "array of shape (n_samples,)",
    "decision_path": "sparse matrix of shape (n_samples, n_nodes)",
}
RETURNS |= {f"staged_{name}": RETURNS[name] for name in ("predict", "predict_proba", "decision_function")}
HEADING = re.compile(r"\n(?=[A-Z][\w ]+\n-{3,}\n)")


def complete_methods(cls: type) -> None:
    """Complete the docstrings of the standard methods that a class or a base of it in this package defines."""
    for owner in cls.__mro__:
        if not owner.__module__.startswith("certifit."):
            continue
        for name, returned in RETURNS.items():
            method = vars(owner).get(name)
            if inspect.isfunction(method) and method.__doc__:
                method.__doc__ = _completed(method, owner, returned)


def _completed(method: Callable[..., Any], owner: type, returned: str) -> str:
    """The docstring with an entry for every argument, in the order of the signature, and what comes back."""
    sections = HEADING.split(inspect.cleandoc(method.__doc__ or ""))
    head, titled = sections[0].rstrip(), {part.partition("\n")[0]: part.rstrip() for part in sections[1:]}
    said = _entries(titled.pop("Parameters", ""))
    named = {name for entry in said for name in entry.partition(" :")[0].split(", ")}
    signature = inspect.signature(method).parameters
    known = {name: _standard(name, owner, signature) for name in signature if name in ARGUMENTS and name not in named}
    order = {name: place for place, name in enumerate(signature)}
    entries = sorted([*said, *known.values()], key=lambda entry: order.get(re.split(r"[ ,]", entry)[0], len(order)))
    parts = [head]
    if entries:
        parts.append("Parameters\n----------\n" + "\n".join(entries))
    if not {"Returns", "Yields"} & titled.keys():
        title = "Yields" if inspect.isgeneratorfunction(method) else "Returns"
        parts.append(f"{title}\n{'-' * len(title)}\n{returned}")
    return "\n\n".join([*parts, *titled.values()]) + "\n"


def _standard(name: str, owner: type, signature: Any) -> str:
    """What an argument is where nothing else is said of it."""
    if name == "y" and signature["y"].default is None:
        return IGNORED
    return LABELS if name == "y" and issubclass(owner, ClassifierMixin) else ARGUMENTS[name]


def _entries(section: str) -> list[str]:
    """The entries of a section: each begins at the margin."""
    body = section.partition("\n")[2].partition("\n")[2]
    return re.split(r"\n(?=\S)", body) if body else []
