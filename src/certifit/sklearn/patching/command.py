"""``certifit patch script.py args…``: run a script with the drop-ins in the place of scikit-learn's estimators."""

from __future__ import annotations

import builtins
import os
import sys
from collections import Counter
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

__all__ = ["run_patched", "traceback_of", "used"]

_elsewhere: Counter[str] = Counter()
"""What processes that scripts have started have learned."""


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
    from certifit.sklearn.translation.counting import counted_elsewhere

    if not script.is_file():
        raise ValueError(f"{script} is no file: give the script to run.")
    path = os.path.abspath(script)
    main: Any = ModuleType("__main__")
    main.__file__, main.__loader__ = path, SourceFileLoader("__main__", path)
    main.__builtins__ = builtins
    kept_argv, kept_path, kept_main = sys.argv[:], sys.path[:], sys.modules["__main__"]
    sys.argv[:] = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    sys.modules["__main__"] = main
    try:
        with patched(), counted_elsewhere(_elsewhere):
            exec(compile(script.read_bytes(), path, "exec", dont_inherit=True), vars(main))
    finally:
        sys.argv[:], sys.path[:], sys.modules["__main__"] = kept_argv, kept_path, kept_main


def traceback_of(error: BaseException) -> TracebackType | None:
    """The traceback of an error of the script, from its own first line on."""
    trace, ours = error.__traceback__, os.path.abspath(__file__)
    while trace is not None and trace.tb_frame.f_code.co_filename != ours:
        trace = trace.tb_next
    return trace.tb_next if trace is not None else None


def used() -> list[str]:
    """Drop-ins that have learned in this process or in those that a script has started, with the number of fits."""
    from certifit.sklearn.translation.counting import fitted, known_as

    names = _elsewhere.copy()
    for one, count in fitted.items():
        names[known_as(one)] += count
    return [f"{name} ({count} fits)" if count > 1 else f"{name} (1 fit)" for name, count in sorted(names.items())]
