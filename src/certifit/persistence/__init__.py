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
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import certifit
from certifit.data.gate import check_real
from certifit.persistence.classes import qualified_name, shown_name
from certifit.persistence.container import MOST_BYTES, STATE, parsed, read_archive, write_archive
from certifit.persistence.decoding import Decoder
from certifit.persistence.encoding import Encoder
from certifit.persistence.errors import ModelFileError
from certifit.persistence.manifest import FIELDS, ModelFile, description, manifest_problem

__all__ = ["ModelFile", "ModelFileError", "inspect_file", "load", "save"]


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
        **description(model),
        "certifit": certifit.__version__,
        "versions": _versions(),
        "note": note,
        "classes_used": sorted(encoder.used),
        "trusted": sorted(encoder.needed),
    }
    write_archive(path, manifest, {STATE: state.encode("ascii"), **encoder.members})
    return path


def load(path: str | os.PathLike[str], *, trusted: Iterable[Any] = (), max_bytes: int = MOST_BYTES) -> Any:
    """Open a model that `save` has written. Nothing in the file is executed.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : iterable of classes and functions, optional
        Classes and functions that are not Certifit's and may occur in the file. Their instances get their
        attributes directly; what their methods do with them is up to you.
    max_bytes : int, default=4 GiB
        Files that would take more memory are refused before anything of them is read: a small file can claim to be
        large. Raise it for a model of yours that is.

    Returns
    -------
    object
        The model: its predictions are the same to the last bit.

    Raises
    ------
    ModelFileError
        If the file is damaged, was altered, is of a newer format, too large or no model file, or needs a class that
        is not trusted. Whatever a file holds, no other error comes of it.

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
    manifest, members = read_archive(path, _checked_bytes(max_bytes))
    missing = sorted(set(_list_of_text(manifest, "trusted")) - {qualified_name(thing) for thing in allowed})
    if missing:
        raise ModelFileError(
            f"{str(path)!r} holds objects that are not Certifit's: {', '.join(missing)}. If you trust them, give them to "
            f"load as trusted=[{', '.join(name.rpartition('.')[2] for name in missing)}]."
        )
    _warn_of_other_scikit_learn(manifest, path)
    try:
        table = parsed(members[STATE], max_bytes)
        return Decoder(table["objects"], members, allowed, manifest["format"]).decode(table["root"])
    except ModelFileError as error:
        raise ModelFileError(f"{str(path)!r}: {error}") from error
    except Exception as error:  # the digests are right, so that somebody wrote the file so
        raise ModelFileError(
            f"{str(path)!r} is not as certifit.save writes files: {str(error) or type(error).__name__:.300}. It may come "
            "from another version or have been altered; save the model anew."
        ) from error


def inspect_file(path: str | os.PathLike[str], *, max_bytes: int = MOST_BYTES) -> ModelFile:
    """What a model file says about itself, without building the model; its digests are checked.

    Parameters
    ----------
    path : str or path
        The file.
    max_bytes : int, default=4 GiB
        As in `load`.

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
    manifest, _ = read_archive(path, _checked_bytes(max_bytes))
    wrong = manifest_problem(manifest)
    if wrong is not None:
        raise ModelFileError(f"{str(path)!r} is not as certifit.save writes files: {wrong}.")
    manifest["model"] = shown_name(manifest["model"], manifest["format"])
    return ModelFile(path=str(path), bytes=path.stat().st_size, **{name: manifest[name] for name in FIELDS})


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


def _checked_bytes(most: Any) -> int:
    return int(check_real("max_bytes", most, low=1, integer=True))


def _checked_trusted(trusted: Iterable[Any]) -> list[Any]:
    if isinstance(trusted, (str, bytes)) or not isinstance(trusted, Iterable):
        raise TypeError(f"trusted must be a list of classes and functions; got {trusted!r:.60}.")
    things = list(trusted)
    for thing in things:
        if not callable(thing):
            raise TypeError(f"trusted must hold classes and functions; got {thing!r:.60}.")
    return things
