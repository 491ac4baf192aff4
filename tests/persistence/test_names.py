"""Files name classes by registered names: whoever moves a class changes nothing here, and old files still open."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import certifit
from certifit import Ridge, losses, names
from certifit.models.tree.growing import TreeArrays
from certifit.names import class_of, name_of, stored
from certifit.persistence import inspect_file, load, save
from certifit.persistence.classes import PLUMBING, known_class, known_name
from certifit.persistence.format1 import FORMAT1

PACKAGE = Path(certifit.__file__).parent


def public_classes() -> dict[str, type]:
    return {
        name: value
        for name in certifit.__all__
        if isinstance(value := getattr(certifit, name), type) and not issubclass(value, BaseException)
    }


@pytest.mark.parametrize("name", sorted(public_classes()))
def test_public_classes_have_their_public_name(name: str) -> None:
    cls = public_classes()[name]
    assert name_of(cls) == name
    assert class_of(name) is cls


@pytest.mark.parametrize("module", [losses, certifit.penalties], ids=lambda module: module.__name__)
def test_losses_and_penalties_have_the_name_of_their_public_module(module: Any) -> None:
    short = module.__name__.rpartition(".")[2]
    classes = {name: getattr(module, name) for name in module.__all__ if isinstance(getattr(module, name), type)}
    assert classes
    for name, cls in classes.items():
        assert (name_of(cls), class_of(f"{short}.{name}")) == (f"{short}.{name}", cls)


def test_names_are_given_once_and_in_the_form_that_is_looked_for() -> None:
    """A name in another form would only be found once its module is imported."""
    lines = [line for path in PACKAGE.rglob("*.py") for line in path.read_text().splitlines()]
    given = [match[1] for line in lines if (match := re.match(r"@(?:record|stored)\((.*)\)", line))]
    assert given
    assert {text.strip('"') for text in given} == names._declared().keys()
    assert Counter(given).most_common(1)[0][1] == 1
    assert not names._declared().keys() & set(certifit.__all__)


@pytest.mark.parametrize("name", sorted(names._declared()))
def test_registered_names_resolve(name: str) -> None:
    cls = class_of(name)
    assert cls is not None
    assert name_of(cls) == known_name(cls) == name


@pytest.mark.parametrize("name", sorted(PLUMBING))
def test_names_of_scikit_learn_resolve(name: str) -> None:
    cls = known_class(name)
    assert cls is not None
    assert known_name(cls) == name


@pytest.mark.parametrize("old", sorted(FORMAT1))
def test_names_of_format_1_resolve(old: str) -> None:
    cls = known_class(old, 1)
    assert cls is not None
    assert name_of(cls) == FORMAT1[old]
    assert known_class(old) is None


def test_a_name_is_not_given_twice() -> None:
    with pytest.raises(ValueError, match=r"'TreeArrays' is taken by certifit\.models\.tree\.growing"):
        stored("TreeArrays")(Ridge)
    assert class_of("TreeArrays") is TreeArrays


def test_a_subclass_does_not_inherit_the_name() -> None:
    class Own(TreeArrays):
        pass

    assert name_of(Own) is None


THING = """
from certifit.names import stored

@stored("ThingThatMoves")
class Thing:
    def __init__(self):
        self.value = 3
"""


@pytest.fixture
def extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder whose modules are modules of certifit."""
    monkeypatch.setattr(certifit, "__path__", [*certifit.__path__, str(tmp_path)])
    yield tmp_path
    forget()


def forget() -> None:
    """As in a new process: nothing of the class was imported yet."""
    for cls in [cls for cls, name in names._NAMES.items() if name == "ThingThatMoves"]:
        del names._NAMES[cls]
        del sys.modules[cls.__module__]
    names._CLASSES.pop("ThingThatMoves", None)
    names._declared.cache_clear()
    importlib.invalidate_caches()


def test_a_class_moves_and_its_files_still_open(extended: Path) -> None:
    (extended / "hall.py").write_text(THING)
    thing = importlib.import_module("certifit.hall").Thing()
    path = save({"thing": thing}, extended / "thing.cfit")
    forget()
    (extended / "tower" / "cellar").mkdir(parents=True)
    shutil.move(extended / "hall.py", extended / "tower" / "cellar" / "vault.py")
    found = load(path)["thing"]
    assert type(found).__module__ == "certifit.tower.cellar.vault"
    assert found.value == 3


def test_a_public_class_moves_and_its_files_still_open(extended: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(Ridge(alpha=0.5), extended / "ridge.cfit")
    (extended / "elsewhere.py").write_text("from certifit.models.linear.regression import Ridge\n")
    monkeypatch.setitem(certifit._EXPORTS, "Ridge", "certifit.elsewhere")
    monkeypatch.delitem(vars(certifit), "Ridge", raising=False)
    assert inspect_file(path).model == "Ridge"
    assert load(path).alpha == 0.5


def test_a_class_of_ours_without_a_name_says_what_to_write(tmp_path: Path) -> None:
    from certifit.optimization.objective.units import Units

    with pytest.raises(TypeError, match=r'Units has no name in files\. Write @stored\("Units"\) above it'):
        save(object.__new__(Units), tmp_path / "x.cfit")


def test_classes_of_the_user_may_bear_our_names(tmp_path: Path) -> None:
    class Huber(losses.Huber):
        pass

    Huber.__module__, Huber.__qualname__ = "losses", "Huber"  # as in a file losses.py of the user
    path = save([Huber(2.0), losses.Huber(3.0)], tmp_path / "both.cfit", trusted=[Huber])
    own, ours = load(path, trusted=[Huber])
    assert (type(own), type(ours)) == (Huber, losses.Huber)


def test_inspection_of_old_files_shows_public_names() -> None:
    data = Path(__file__).resolve().parents[1] / "data" / "format1"
    assert inspect_file(data / "linear.cfit").model == "LinearRegression"
    assert inspect_file(data / "pipeline.cfit").model == "sklearn.pipeline.Pipeline"
