"""Run the native tests on extension modules built with sanitizers.

    python tests/native/sanitized.py SANITIZER DIRECTORY [PYTEST ARGUMENTS]

SANITIZER is "address" (with undefined behavior) or "thread". DIRECTORY holds the sanitized modules, one `<family>….so` each.
They take the place of `certifit._native.<family>`; everything else comes from the installed package. The exit code is that of
pytest, that of the sanitizer if it found something, or 1 if a module was not tested.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CHILD = "CERTIFIT_SANITIZED_CHILD"
# What each runtime is called, how it is told to report (all it finds, by the exit code), and which tests it can run.
RUNTIMES = {
    "address": (
        "libasan.so",
        {
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        },
        [],
    ),
    "thread": (
        "libtsan.so",
        {
            "TSAN_OPTIONS": "halt_on_error=0:exitcode=66:second_deadlock_stack=1",
            # BLAS is not built with the sanitizer, which would take its ways to wait for races.
            "OPENBLAS_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        },
        ["-k", "not fork"],  # this runtime has no threads in a child forked by a process that had some
    ),
}


class Substitute(importlib.abc.MetaPathFinder):
    """Finds `certifit._native.<family>` among the sanitized modules."""

    def __init__(self, modules: dict[str, Path]) -> None:
        self.modules = modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The specification of a sanitized module, or nothing."""
        found = self.modules.get(fullname)
        return None if found is None else importlib.util.spec_from_file_location(fullname, found)


def sanitized_modules(directory: Path) -> dict[str, Path]:
    """Full module name → shared object; the suffix must be one this interpreter loads."""
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    found = sorted(path for path in directory.glob("*.so") if path.name.endswith(suffixes))
    return {f"certifit._native.{path.name.split('.')[0]}": path.resolve() for path in found}


def runtime(name: str) -> str:
    """The path of a runtime library of the compiler that built the modules."""
    compiler = os.environ.get("CXX", "g++")
    found = subprocess.run([compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True)
    path = found.stdout.strip()
    if not Path(path).is_absolute():
        raise SystemExit(f"{compiler} has no {name}: install the sanitizer runtime of the compiler.")
    return path


def parent(sanitizer: str, arguments: list[str]) -> int:
    """Start the same script with the runtime of the sanitizer loaded first, as it must be."""
    library, options, selection = RUNTIMES[sanitizer]
    # libstdc++ too: the sanitizer looks up the function that throws exceptions when it starts.
    environment = {
        **os.environ,
        **options,
        CHILD: "1",
        "LD_PRELOAD": " ".join([runtime(library), runtime("libstdc++.so")]),
        "PYTHONMALLOC": "malloc",  # so that the sanitizer sees the memory of every Python object
    }
    # The runtime wants the addresses where it expects them.
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    command = [*fixed, sys.executable, __file__, arguments[0], *selection, *arguments[1:]]
    return subprocess.run(command, env=environment, check=False).returncode


def child(directory: Path, arguments: list[str]) -> int:
    """Run pytest with the sanitized modules in place, and check that they were the ones tested."""
    modules = sanitized_modules(directory)
    if not modules:
        print(f"no extension modules in {directory}", file=sys.stderr)
        return 1
    sys.meta_path.insert(0, Substitute(modules))
    import pytest

    # Reports of the sanitizer go to the file descriptor: only Python's own streams are captured.
    options = ["--capture=sys", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=1200"]
    code = int(pytest.main([str(HERE), *options, *arguments]))
    for name, path in modules.items():
        loaded = getattr(sys.modules.get(name), "__file__", None)
        if loaded is None or Path(loaded) != path:
            print(f"{name} was not tested: it was loaded from {loaded}, not from {path}", file=sys.stderr)
            code = code or 1
    return code


def main() -> int:
    """The command line."""
    if os.environ.get(CHILD):
        return child(Path(sys.argv[1]), sys.argv[2:])
    if len(sys.argv) < 3 or sys.argv[1] not in RUNTIMES:
        print(__doc__, file=sys.stderr)
        return 2
    return parent(sys.argv[1], sys.argv[2:])


if __name__ == "__main__":
    os.chdir(ROOT)
    raise SystemExit(main())
