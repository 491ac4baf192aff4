"""The patch replaces what was imported before and after it, and nothing is left of it afterwards."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import sklearn.linear_model
import sklearn.pipeline
from typer.testing import CliRunner

import certifit.sklearn
from certifit.cli import app
from certifit.sklearn import patch, patched, replacements, unpatch
from certifit.sklearn.translation import fitted

KEPT = [sklearn.linear_model.Ridge]  # in a list: a name of this module would be replaced too


@pytest.fixture(autouse=True)
def clean() -> None:
    assert sklearn.linear_model.Ridge is KEPT[0]


def test_names_are_replaced_and_restored() -> None:
    with patched() as names:
        from sklearn.linear_model import Ridge

        assert Ridge is certifit.sklearn.linear_model.Ridge
        assert "sklearn.linear_model.Ridge" in names
        assert set(names) == set(replacements())
    assert sklearn.linear_model.Ridge is KEPT[0]


def test_modules_that_hold_the_class_already_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = ModuleType("somebody_elses")
    earlier.Ridge, earlier.Other = KEPT[0], sklearn.linear_model.Lasso  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "somebody_elses", earlier)
    with patched("linear_model.Ridge"):
        assert earlier.Ridge is not KEPT[0]
        assert earlier.Other is sklearn.linear_model.Lasso
    assert earlier.Ridge is KEPT[0]


def test_patching_twice_is_patching_once() -> None:
    patch()
    with patched("linear_model"):
        assert sklearn.linear_model.Ridge is not KEPT[0]
    assert sklearn.linear_model.Ridge is not KEPT[0]
    unpatch()
    unpatch()


def test_an_exception_takes_the_patch_along() -> None:
    with pytest.raises(RuntimeError), patched():
        raise RuntimeError


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"nothing called 'linear_model.Rigde'"):
        patch("linear_model.Rigde")


def test_a_script_runs_patched(tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(
        "import sys\nfrom sklearn.linear_model import Ridge\nclass Own(Ridge): pass\nOwn().fit([[0.0], [1.0]], [0.0, 1.0])\n"
        "if __name__ == '__main__':\n"
        "    print(sys.argv[1:], Ridge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 3.0]).certificate_.certified)\n",
        encoding="utf-8",
    )
    fitted.clear()
    done = CliRunner().invoke(app, ["patch", str(script), "--depth", "3"])
    assert done.exit_code == 0, done.output
    assert "['--depth', '3'] True" in done.output
    assert "linear_model.Ridge (2 fits)" in done.output
    assert CliRunner().invoke(app, ["patch", str(tmp_path / "none.py")]).exit_code == 2


def test_importing_the_package_loads_no_learner() -> None:
    code = "import certifit.sklearn, sys; print('sklearn.linear_model' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_an_earlier_scikit_learn_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sklearn, "__version__", "1.8.2")
    with pytest.raises(
        ImportError, match=r"of scikit-learn 1\.9, and 1\.8\.2 is installed: install scikit-learn>=1\.9"
    ):
        runpy.run_path(str(certifit.sklearn.__file__))
    monkeypatch.setitem(sys.modules, "certifit.sklearn.patching.command", None)  # what a refused import leaves
    script = tmp_path / "script.py"
    script.write_text("raise SystemExit(0)")
    assert CliRunner().invoke(app, ["patch", str(script)]).exit_code == 2
