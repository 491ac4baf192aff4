"""``certifit patch script.py args…``: run a script with the drop-ins in the place of scikit-learn's estimators."""

from __future__ import annotations

import runpy
import sys
from collections import Counter
from pathlib import Path

__all__ = ["run_patched", "used"]


def run_patched(script: Path, arguments: list[str]) -> None:
    """Run a script as ``python script.py args…`` would, patched; `used` then names the drop-ins that have learned.

    Parameters
    ----------
    script : Path
        The script.
    arguments : list of str
        What it finds in ``sys.argv[1:]``.
    """
    from certifit.sklearn import patched

    if not script.is_file():
        raise ValueError(f"{script} is no file: give the script to run.")
    kept_argv, kept_path = sys.argv[:], sys.path[:]
    sys.argv[:] = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        with patched():
            runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.argv[:], sys.path[:] = kept_argv, kept_path


def used() -> list[str]:
    """Drop-ins that have learned in this process, with the number of fits."""
    from certifit.sklearn.translation import fitted, known_as

    names: Counter[str] = Counter()
    for cls, count in fitted.items():
        names[known_as(cls)] += count
    return [f"{name} ({count} fits)" if count > 1 else f"{name} (1 fit)" for name, count in sorted(names.items())]
