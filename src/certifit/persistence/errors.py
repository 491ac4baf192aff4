"""The error of a model file that cannot be trusted or read."""

from __future__ import annotations

from certifit.printable import printable

__all__ = ["ModelFileError"]


class ModelFileError(ValueError):
    """A file that is damaged, altered, of a newer format, or not a model file at all.

    Examples
    --------
    >>> import os, tempfile
    >>> from certifit.persistence import ModelFileError, load
    >>> path = os.path.join(tempfile.mkdtemp(), "model.cfit")
    >>> with open(path, "w") as file:
    ...     _ = file.write("not a model")
    >>> try:
    ...     load(path)
    ... except ModelFileError as error:
    ...     print("not a Certifit model file" in str(error))
    True
    """

    def __init__(self, message: object) -> None:
        super().__init__(printable(message))  # it may cite what the file holds
