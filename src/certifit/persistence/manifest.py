"""What a model file says about itself: the part of it that can be read without building the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from certifit.certificate import Certificate
from certifit.persistence.classes import known_name, qualified_name
from certifit.persistence.encoding import is_plain
from certifit.printable import printable

__all__ = ["FIELDS", "ModelFile", "description", "manifest_problem"]


@dataclass(frozen=True)
class ModelFile:
    """What a model file says about itself.

    Parameters
    ----------
    path : str
        Where it lies.
    bytes : int
        Its size.
    format : int
        Version of the file format.
    certifit : str
        Version of Certifit that wrote it.
    versions : dict
        Versions of Python, NumPy, SciPy and scikit-learn at that time.
    model : str
        Class of the model, by its public name.
    parameters : dict
        Its constructor arguments, as numbers and text; of what is no estimator, the plain attributes.
    fitted : bool
        Whether it was fitted.
    n_features : int or None
        Columns it was fitted on.
    features : list of str or None
        Their names, if they had some.
    classes : list or None
        Labels of a classifier.
    certificate : dict or None
        The fields of its certificate.
    note : str
        What the author added.
    trusted : list of str
        Classes and functions that are not Certifit's; `load` has to be given them.

    Examples
    --------
    >>> import os, tempfile
    >>> from certifit import Ridge
    >>> from certifit.persistence import inspect_file, save
    >>> path = save(Ridge(alpha=0.5), os.path.join(tempfile.mkdtemp(), "ridge.cfit"), note="a first try")
    >>> found = inspect_file(path)
    >>> found.model, found.parameters["alpha"], found.fitted, found.note
    ('Ridge', 0.5, False, 'a first try')
    """

    path: str
    bytes: int
    format: int
    certifit: str
    versions: dict[str, str]
    model: str
    parameters: dict[str, Any]
    fitted: bool
    n_features: int | None
    features: list[str] | None
    classes: list[Any] | None
    certificate: dict[str, Any] | None
    note: str
    trusted: list[str]

    def as_dict(self) -> dict[str, Any]:
        """The fields as a plain dictionary, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        lines = [f"{self.model.rpartition('.')[2]}({parameters})"]
        lines.append(f"{'fitted' if self.fitted else 'not fitted'}, format {self.format}, certifit {self.certifit}")
        if self.n_features is not None:
            names = f": {', '.join(self.features[:8])}" if self.features else ""
            more = ", …" if self.features and len(self.features) > 8 else ""
            lines.append(f"{self.n_features} features{names}{more}")
        if self.classes is not None:
            lines.append(f"classes: {', '.join(str(label) for label in self.classes)}")
        if self.certificate is not None:
            kind, gap = self.certificate["kind"], self.certificate["relative_gap"]
            verdict = "certified" if self.certificate["certified"] else "not certified"
            lines.append(verdict if kind == "none" else f"{verdict} ({kind}), relative gap {float(gap):.1e}")
        if self.trusted:
            lines.append(f"needs trusted=[{', '.join(self.trusted)}]")
        # Names, labels and the note were written by others; only the note may have lines of its own.
        return "\n".join(printable(line) for line in [*lines, *self.note.splitlines()])


def description(model: Any) -> dict[str, Any]:
    """What the manifest tells about a model."""
    attributes = getattr(model, "__dict__", {})
    certificate = getattr(model, "certificate_", None)
    names, width = attributes.get("feature_names_in_"), attributes.get("n_features_in_")
    classes = attributes.get("classes_", attributes.get("classes"))
    if isinstance(model, BaseEstimator):
        parameters = {name: _shown(value) for name, value in model.get_params(deep=False).items()}
        fitted = any(name.endswith("_") and not name.startswith("_") for name in attributes)
    else:
        parameters, fitted = {name: value for name, value in attributes.items() if is_plain(value)}, bool(attributes)
    return {
        "model": known_name(type(model)) or qualified_name(type(model)),
        "parameters": parameters,
        "fitted": fitted,
        "n_features": int(width) if isinstance(width, (int, np.integer)) else None,
        "features": [str(name) for name in names] if isinstance(names, np.ndarray) else None,
        "classes": _labels(classes) if isinstance(classes, (np.ndarray, list, tuple)) and len(classes) else None,
        "certificate": (
            {name: _shown(value) for name, value in certificate.as_dict().items()}
            if isinstance(certificate, Certificate)
            else None
        ),
    }


def _labels(classes: Any) -> list[Any]:
    """The names of classes; of several targets, a list for each."""
    if isinstance(classes, list) and all(isinstance(each, np.ndarray) for each in classes):
        return [_labels(each) for each in classes]
    return [_shown(label) for label in np.asarray(classes).tolist()]


def _shown(value: Any) -> Any:
    """A value for people: itself if JSON has it, else a short text that is the same in every run."""
    if is_plain(value):
        return value
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}, {value.dtype}"
    if (vars(type(value)).get("__repr__") is None and " at 0x" in repr(value)) or callable(value):
        return qualified_name(value if callable(value) and hasattr(value, "__qualname__") else type(value))
    return f"{value!r:.200}"


FIELDS = tuple(field.name for field in fields(ModelFile) if field.name not in ("path", "bytes"))
"""What the manifest of a file has to say."""


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _plain_dict(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_plain, value.values()))


def _certificate(value: Any) -> bool:
    if not _plain_dict(value) or not {"kind", "relative_gap", "certified"} <= value.keys():
        return False
    gap = value["relative_gap"]  # infinity and NaN, which JSON does not have, are written as text
    return isinstance(value["kind"], str) and (type(gap) in (int, float) or gap in ("inf", "-inf", "nan"))


def _count(value: Any) -> bool:
    return type(value) is int and is_plain(value) and value >= 0


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "format": _count,
    "certifit": lambda value: isinstance(value, str),
    "versions": lambda value: _plain_dict(value) and _texts(list(value.values())),
    "model": lambda value: isinstance(value, str),
    "parameters": _plain_dict,
    "fitted": lambda value: isinstance(value, bool),
    "n_features": lambda value: value is None or _count(value),
    "features": lambda value: value is None or _texts(value),
    "classes": lambda value: value is None or (isinstance(value, list) and all(map(is_plain, value))),
    "certificate": lambda value: value is None or _certificate(value),
    "note": lambda value: isinstance(value, str),
    "trusted": _texts,
}


def manifest_problem(manifest: dict[str, Any]) -> str | None:
    """What is wrong with the description in a manifest; None if every field is what it should be."""
    for name in FIELDS:
        if name not in manifest:
            return f"its manifest has no {name!r}"
        if not _CHECKS[name](manifest[name]):
            return f"{name!r} of its manifest is not one"
    return None
