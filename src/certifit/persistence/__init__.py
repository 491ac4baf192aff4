"""Models as files that hold data and no code.

A ``.cfit`` file is a ZIP archive of JSON and NumPy arrays. Opening one runs nothing that came with it: classes are
looked up among Certifit's own, objects get their attributes directly, and digests show every damage.
"""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from sklearn.base import BaseEstimator

import certifit
from certifit.certificate import Certificate
from certifit.persistence.classes import known_name, qualified_name, shown_name
from certifit.persistence.container import STATE, read_archive, write_archive
from certifit.persistence.decoding import Decoder
from certifit.persistence.encoding import Encoder, is_plain
from certifit.persistence.errors import ModelFileError

__all__ = ["ModelFile", "ModelFileError", "inspect_file", "load", "save"]


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
            lines.append(
                f"{self.n_features} features{names}{', …' if self.features and len(self.features) > 8 else ''}"
            )
        if self.classes is not None:
            lines.append(f"classes: {', '.join(str(label) for label in self.classes)}")
        if self.certificate is not None:
            kind, gap = self.certificate["kind"], self.certificate["relative_gap"]
            verdict = "certified" if self.certificate["certified"] else "not certified"
            lines.append(verdict if kind == "none" else f"{verdict} ({kind}), relative gap {float(gap):.1e}")
        if self.trusted:
            lines.append(f"needs trusted=[{', '.join(self.trusted)}]")
        return "\n".join([*lines, *([self.note] if self.note else [])])


def save(model: Any, path: str | os.PathLike[str], *, note: str = "", trusted: Iterable[Any] = ()) -> Path:
    """Save a model to a file.

    The file appears in one piece: a failure leaves what was there before. The same model gives the same bytes.

    Parameters
    ----------
    model : estimator
        Fitted or not. Also a Pipeline or ColumnTransformer of scikit-learn, or lists and dictionaries of models.
    path : str or path
        The file, by custom with the suffix ``.cfit``; an existing one is replaced.
    note : str, default=""
        What a later reader should know; `inspect_file` shows it.
    trusted : iterable of classes and functions, optional
        Your own classes and functions that the model contains. Only their names are stored, and `load` has to be
        given them as well.

    Returns
    -------
    pathlib.Path
        The path.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from certifit import Lasso
    >>> from certifit.persistence import load, save
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> model = Lasso(alpha=0.1).fit(X, X[:, 0])
    >>> path = save(model, os.path.join(tempfile.mkdtemp(), "lasso.cfit"))
    >>> bool((load(path).predict(X) == model.predict(X)).all())
    True
    """
    if not isinstance(note, str):
        raise TypeError(f"note must be text; got {note!r:.60} of type {type(note).__name__}.")
    path = _checked_path(path)
    encoder = Encoder(_checked_trusted(trusted))
    root = encoder.encode(model)
    state = json.dumps({"root": root, "objects": encoder.entries}, separators=(",", ":"), allow_nan=False)
    manifest = {
        **_description(model),
        "certifit": certifit.__version__,
        "versions": _versions(),
        "note": note,
        "classes_used": sorted(encoder.used),
        "trusted": sorted(encoder.needed),
    }
    write_archive(path, manifest, {STATE: state.encode("ascii"), **encoder.members})
    return path


def load(path: str | os.PathLike[str], *, trusted: Iterable[Any] = ()) -> Any:
    """Open a model that `save` has written. Nothing in the file is executed.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : iterable of classes and functions, optional
        Classes and functions that are not Certifit's and may occur in the file. Their instances get their
        attributes directly; what their methods do with them is up to you.

    Returns
    -------
    object
        The model: its predictions are the same to the last bit.

    Raises
    ------
    ModelFileError
        If the file is damaged, was altered, is of a newer format or no model file, or needs a class that is not
        trusted.

    Examples
    --------
    >>> import os, tempfile
    >>> from certifit import Ridge
    >>> from certifit.persistence import load, save
    >>> path = save(Ridge(alpha=0.5), os.path.join(tempfile.mkdtemp(), "ridge.cfit"))
    >>> load(path)
    Ridge(alpha=0.5)
    """
    path = _checked_path(path)
    allowed = _checked_trusted(trusted)
    manifest, members = read_archive(path)
    missing = sorted(set(_list_of_text(manifest, "trusted")) - {qualified_name(thing) for thing in allowed})
    if missing:
        raise ModelFileError(
            f"{str(path)!r} holds objects that are not Certifit's: {', '.join(missing)}. If you trust them, give them to "
            f"load as trusted=[{', '.join(name.rpartition('.')[2] for name in missing)}]."
        )
    _warn_of_other_scikit_learn(manifest, path)
    try:
        table = json.loads(members[STATE])
        return Decoder(table["objects"], members, allowed, manifest["format"]).decode(table["root"])
    except ModelFileError as error:
        raise ModelFileError(f"{str(path)!r}: {error}") from error
    except (ArithmeticError, AttributeError, ImportError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{str(path)!r} is not as certifit.save writes files: {error}. It may come from another version or have been "
            "altered; save the model anew."
        ) from error


def inspect_file(path: str | os.PathLike[str]) -> ModelFile:
    """What a model file says about itself, without building the model; its digests are checked.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    ModelFile
        Class, parameters, certificate, versions and note.

    Examples
    --------
    >>> import os, tempfile
    >>> from certifit import Ridge
    >>> from certifit.persistence import inspect_file, save
    >>> print(inspect_file(save(Ridge(), os.path.join(tempfile.mkdtemp(), "ridge.cfit"))))
    Ridge(alpha=1.0, fit_intercept=True, ..., verbose=0)
    not fitted, format 2, certifit ...
    """
    path = _checked_path(path)
    manifest, _ = read_archive(path)
    names = [name for name in ModelFile.__dataclass_fields__ if name not in ("path", "bytes")]
    absent = [name for name in names if name not in manifest]
    if absent:
        raise ModelFileError(f"{str(path)!r} is not as certifit.save writes files: its manifest has no {absent[0]!r}.")
    manifest["model"] = shown_name(str(manifest["model"]), manifest["format"])
    return ModelFile(path=str(path), bytes=path.stat().st_size, **{name: manifest[name] for name in names})


def _description(model: Any) -> dict[str, Any]:
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
        "classes": (
            [_shown(label) for label in np.asarray(classes).tolist()]
            if isinstance(classes, (np.ndarray, list, tuple)) and len(classes)
            else None
        ),
        "certificate": (
            {name: _shown(value) for name, value in certificate.as_dict().items()}
            if isinstance(certificate, Certificate)
            else None
        ),
    }


def _shown(value: Any) -> Any:
    """A value for people: itself if JSON has it, else a short text that is the same in every run."""
    if is_plain(value):
        return value
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}, {value.dtype}"
    if (vars(type(value)).get("__repr__") is None and " at 0x" in repr(value)) or callable(value):
        return qualified_name(value if callable(value) and hasattr(value, "__qualname__") else type(value))
    return f"{value!r:.200}"


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": version("scikit-learn"),
    }


def _warn_of_other_scikit_learn(manifest: dict[str, Any], path: Path) -> None:
    """scikit-learn's own classes may change what they hold from one release to the next."""
    theirs = [name for name in _list_of_text(manifest, "classes_used") if name.startswith("sklearn.")]
    versions = manifest.get("versions")
    then = str(versions.get("scikit-learn") if isinstance(versions, dict) else None)
    now = version("scikit-learn") if theirs else then
    if then.split(".")[:2] != now.split(".")[:2]:
        warnings.warn(
            f"{str(path)!r} holds {', '.join(theirs)} of scikit-learn {then}; this is {now}. Check its "
            "predictions, or save it anew.",
            stacklevel=3,
        )


def _list_of_text(manifest: dict[str, Any], key: str) -> list[str]:
    found = manifest.get(key)
    return [str(item) for item in found] if isinstance(found, list) else []


def _checked_path(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be text or a path; got {path!r:.60} of type {type(path).__name__}.")
    return Path(path)


def _checked_trusted(trusted: Iterable[Any]) -> list[Any]:
    if isinstance(trusted, (str, bytes)) or not isinstance(trusted, Iterable):
        raise TypeError(f"trusted must be a list of classes and functions; got {trusted!r:.60}.")
    things = list(trusted)
    for thing in things:
        if not callable(thing):
            raise TypeError(f"trusted must hold classes and functions; got {thing!r:.60}.")
    return things
