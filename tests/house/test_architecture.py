"""The page on the architecture is true: its picture is the imports, and its walks are the calls."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certifit
from certifit import GradientBoostingClassifier, Lasso, LogisticRegression

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(certifit.__file__).resolve().parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOMS = {
    "contest",
    "data",
    "evaluation",
    "exploration",
    "models",
    "onnx",
    "optimization",
    "persistence",
    "plots",
    "representation",
    "sklearn",
}
DRAWN_BY = {"plots"}  # a model's `plot` asks for axes, wherever it lives: pictures are no part of the flow of data


def drawn() -> set[tuple[str, str]]:
    """The arrows of the picture."""
    picture = re.search(r"```mermaid\nflowchart LR\n(.*?)```", PAGE, re.DOTALL)
    assert picture is not None
    arrows = set()
    for line in picture[1].strip().splitlines():
        source, targets = line.split("-->")
        arrows |= {(source.strip(), target.strip()) for target in targets.split("&")}
    return arrows


def modules(path: Path) -> set[str]:
    """What a file imports, at any level, as full names; names taken from a package may be its modules."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def imported() -> set[tuple[str, str]]:
    """Pairs of rooms of which the first imports from the second."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0]
        for module in modules(path):
            parts = module.split(".")
            ours = parts[0] == "certifit" and len(parts) > 1
            if ours and {room, parts[1]} <= ROOMS and parts[1] not in (room, *DRAWN_BY):
                found.add((room, parts[1]))
    return found


def test_the_picture_is_the_imports() -> None:
    assert drawn() == {pair for pair in imported() if pair[0] not in DRAWN_BY}


def walk(title: str) -> list[str]:
    """The files of a walk, in the order of the page."""
    section = PAGE.split(f"### `{title}`")[1].split("###")[0]
    return re.findall(r"^\d+\. `([\w/]+\.py)`", section, re.MULTILINE)


def visited(call: Callable[[], Any]) -> list[str]:
    """Files of the package in the order in which a call enters them."""
    order: dict[str, None] = {}

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                order.setdefault(path.relative_to(PACKAGE).as_posix())

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(order)


@pytest.mark.parametrize("title", re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE))
def test_a_walk_names_files_once(title: str) -> None:
    files = walk(title)
    assert len(files) > 4
    assert len(set(files)) == len(files)
    assert all((PACKAGE / file).is_file() for file in files)


@pytest.mark.parametrize(
    "model", [Lasso(alpha=0.1), LogisticRegression(), GradientBoostingClassifier(n_estimators=3)], ids=str
)
def test_a_fit_walks_as_the_page_says(model: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = X[:, 0] if isinstance(model, Lasso) else X[:, 0] > 0
    told = walk(f"{type(model).__name__}().fit(X, y)")
    assert [file for file in visited(lambda: model.fit(X, y)) if file in told] == told


def test_a_contest_can_be_followed_from_file_to_file() -> None:
    files = walk("certifit compete table.csv --target y")
    for number, file in enumerate(files[1:], start=1):
        module = f"certifit.{file.removesuffix('.py').replace('/', '.')}"
        known = set().union(*(modules(PACKAGE / before) for before in files[:number]))
        # A package hands on what its file offers: `from certifit.contest.report import render`.
        assert module in known or module.rpartition(".")[0] in known, file


MOST_FILES = 15
# What the rule of about a dozen is not for: names that users import, a page a family, decisions in their order, what once failed.
FULL = ("src/certifit", "docs/methods", "docs/decisions", "tests/data", "tests/fuzz/corpus")


def folders() -> dict[str, list[str]]:
    """The files of each folder that git knows."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    found: dict[str, list[str]] = defaultdict(list)
    for name in filter(None, listed.split("\0")):
        found[str(Path(name).parent)].append(Path(name).name)
    return found


def test_a_folder_is_a_concept() -> None:
    """It holds about a dozen files, and names that share their beginning have a folder of their own."""
    rooms = {
        folder: names for folder, names in folders().items() if not folder.startswith(FULL[3:]) and folder not in FULL
    }
    if not rooms:
        pytest.skip("not a checkout of git")
    full = {folder: len(names) for folder, names in rooms.items() if len(names) > MOST_FILES}
    assert not full, "make rooms in them, with the words of the families"
    for folder, names in rooms.items():
        begins = Counter(re.sub(r"^test_", "", name).partition(".")[0].partition("_")[0] for name in names)
        shared = [word for word, count in begins.items() if word and count > 2]
        assert not shared, f"{folder} has three files called {shared[0]}_…: they are a folder"


def test_a_file_is_an_idea() -> None:
    """One of more than about 500 lines is two."""
    sources = [*PACKAGE.rglob("*.py"), *(ROOT / "native").rglob("*.?pp")]
    lines = {path.name: path.read_text(encoding="utf-8").count("\n") for path in sources}
    assert {name: count for name, count in lines.items() if count > 500} == {}
