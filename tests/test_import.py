"""Importing certifit is quick and light, and the packages import each other in one direction only."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.grids import each

import certifit

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "certifit"
MODULES = sorted(path for path in PACKAGE.rglob("*.py*") if path.suffix in (".py", ".pyi"))
# Contract and plumbing: what scikit-learn supplies. A learner of theirs is never called by ours.
PLUMBING = {"base", "compose", "exceptions", "model_selection", "pipeline", "utils"}
# Package -> the packages it may import; evaluation is used by all and imports none of them.
BASE = {"certificate", "progress", "data", "threads", "parameters", "names"}
LAYERS: dict[str, set[str]] = {
    "certificate": set(),
    "progress": set(),
    "threads": set(),
    "parameters": set(),
    "names": set(),
    "data": {"threads", "parameters", "names"},
    "evaluation": {"data", "threads", "parameters", "names"},
    "representation": {"evaluation", "data", "threads", "parameters", "names"},
    "optimization": BASE | {"representation", "evaluation"},
    "models": BASE | {"optimization", "representation", "evaluation"},
}
LAYERED = set(LAYERS) | {"contest", "plots", "cli"}


def run(code: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def of_every_module(ask: Callable[[Path], None]) -> None:
    """Ask of every file of the package."""
    assert MODULES
    each((str(path.relative_to(PACKAGE)), functools.partial(ask, path)) for path in MODULES)


@functools.cache
def imports(path: Path) -> list[tuple[int, str]]:
    """Line and dotted name of everything a module imports, at any level."""
    return list(imported(path))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """The same, one after the other."""
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    package = ["certifit", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (start, node.module or "") if part)
            for name in node.names:
                yield node.lineno, f"{module}.{name.name}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value


def test_import_takes_little_longer_than_the_contract_it_implements() -> None:
    clock = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    theirs = min(float(run(clock.format("sklearn.base"))) for _ in range(3))
    # Once is enough: what else the machine does only adds to it.
    assert any(float(run(clock.format("certifit"))) < theirs + 0.3 for _ in range(5))


def test_import_loads_no_learner_and_no_optional_package() -> None:
    loaded = set(json.loads(run("import certifit, json, sys; print(json.dumps(sorted(sys.modules)))")))
    heavy = {"matplotlib", "pandas", "polars", "pyarrow", "cvxpy", "rich", "narwhals", "dask", "altair"}
    assert not loaded & heavy
    assert not [name for name in loaded if name.startswith("sklearn.") and name.split(".")[1] == "linear_model"]


def test_using_every_name_loads_no_learner() -> None:
    code = (
        "import certifit, json, sys\n"
        "[getattr(certifit, name) for name in certifit.__all__]\n"
        "print(json.dumps(sorted({n.split('.')[1] for n in sys.modules if n.startswith('sklearn.')})))"
    )
    learners = {
        "linear_model",
        "svm",
        "tree",
        "ensemble",
        "neighbors",
        "cluster",
        "decomposition",
        "naive_bayes",
    }
    learners |= {"discriminant_analysis", "gaussian_process", "kernel_ridge", "mixture", "neural_network"}
    assert not set(json.loads(run(code))) & learners


def test_every_public_name_resolves() -> None:
    listed = dir(certifit)

    def ask(name: str) -> None:
        assert getattr(certifit, name) is getattr(certifit, name)
        assert name in listed
        assert getattr(certifit, name).__doc__

    each((name, functools.partial(ask, name)) for name in certifit.__all__)


def test_all_names_leave_scikit_learn_its_own() -> None:
    assert "sklearn" not in certifit.__all__
    assert "sklearn" in dir(certifit)


def test_an_unknown_name_says_where_to_look() -> None:
    with pytest.raises(AttributeError, match=r"Lassso.*__all__"):
        certifit.Lassso  # noqa: B018
    with pytest.raises(ImportError):
        from certifit import Lassso  # noqa: F401


def test_only_public_plumbing_of_scikit_learn_is_imported() -> None:
    def ask(path: Path) -> None:
        for line, name in imports(path):
            parts = name.split(".")
            if parts[0] != "sklearn":
                continue
            where = f"{path.relative_to(PACKAGE)}:{line} imports {name}"
            assert not any(part.startswith("_") for part in parts), f"{where}: private"
            if path.relative_to(PACKAGE).parts[0] == "sklearn":
                continue  # the drop-ins inherit from the learners, and learn without them
            assert len(parts) > 1, f"{where}: name the module"
            assert parts[1] in PLUMBING, f"{where}: not contract or plumbing"

    of_every_module(ask)


def test_packages_import_in_one_direction() -> None:
    def ask(path: Path) -> None:
        layer = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if layer not in LAYERS:
            return
        for line, name in imports(path):
            parts = name.split(".")
            if parts[0] == "certifit" and len(parts) > 1 and parts[1] in LAYERED and parts[1] != layer:
                assert parts[1] in LAYERS[layer], f"{path.relative_to(PACKAGE)}:{line} imports {name}"

    of_every_module(ask)
