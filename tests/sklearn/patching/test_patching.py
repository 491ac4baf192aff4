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


def test_blocks_may_end_in_any_order() -> None:
    first, second = patched("linear_model.Lasso"), patched("linear_model")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sklearn.linear_model.Ridge is not KEPT[0]
    assert sklearn.linear_model.Lasso is replacements()["sklearn.linear_model.Lasso"][0]
    second.__exit__(None, None, None)
    with patched("linear_model.Lasso"):
        unpatch()
        patch("linear_model.Ridge")
    assert sklearn.linear_model.Ridge is not KEPT[0]
    unpatch()


def test_what_scikit_learn_imports_meanwhile_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    late = ModuleType("sklearn.late")
    monkeypatch.setitem(sys.modules, "sklearn.late", late)
    with patched("linear_model"):
        with patched():
            late.Ridge = sklearn.linear_model.Ridge  # type: ignore[attr-defined]  # as its import statement would
        assert late.Ridge is certifit.sklearn.linear_model.Ridge
    assert late.Ridge is KEPT[0]


def test_a_name_that_was_bound_anew_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("somebody_elses")
    module.Ridge = KEPT[0]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "somebody_elses", module)
    with patched("linear_model.Ridge"):
        module.Ridge = "my own"  # type: ignore[attr-defined]
    assert module.Ridge == "my own"


def test_an_exception_takes_the_patch_along() -> None:
    with pytest.raises(RuntimeError), patched():
        raise RuntimeError


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"nothing called 'linear_model.Rigde'"):
        patch("linear_model.Rigde")
    with pytest.raises(TypeError, match=r"are strings such as .*; got \['svm'\]"):
        patch(["svm"])  # type: ignore[arg-type]


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


def test_a_script_finds_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "beside.py").write_text("from sklearn.linear_model import Ridge\n", encoding="utf-8")
    (tmp_path / "study.py").write_text(
        "import os, pickle, sys, beside\nclass Own(beside.Ridge): pass\n"
        "os.chdir('/')\n"
        "print(__name__, __file__, sys.argv[0], sys.modules['__main__'].Own is Own)\n"
        "print(pickle.loads(pickle.dumps(Own().fit([[0.0], [1.0]], [0.0, 1.0]))).certificate_.certified)\n"
        "def f(x: Missing): pass\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    before = sys.modules["__main__"]
    done = CliRunner().invoke(app, ["patch", "study.py"])
    assert done.stdout == f"__main__ {tmp_path / 'study.py'} study.py True\nTrue\n"
    assert done.exit_code == 1
    assert "NameError: name 'Missing' is not defined" in done.output  # nothing of `from __future__` leaks into it
    assert sys.modules["__main__"] is before


@pytest.mark.parametrize(
    ("code", "words", "status"),
    [
        ("def go():\n    raise ValueError('no such thing')\ngo()\n", "ValueError: no such thing", 1),
        ("import nothing_of_this_name\n", "ModuleNotFoundError: No module named 'nothing_of_this_name'", 1),
        ("def go(:\n", "SyntaxError: invalid syntax", 1),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt", 130),
        ("raise SystemExit(3)\n", "", 3),
    ],
    ids=["error", "import", "syntax", "interrupt", "exit"],
)
def test_a_script_ends_as_python_would_end_it(code: str, words: str, status: int, tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(code, encoding="utf-8")
    plain = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    done = CliRunner().invoke(app, ["patch", "-q", str(script)])
    assert done.stderr == plain.stderr
    assert words in done.stderr
    assert done.exit_code == status
    assert plain.returncode in (status, -2)  # a shell makes 130 of an interrupt's signal


def test_fits_in_other_processes_are_counted(tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(
        "import numpy as np\nfrom sklearn.linear_model import Lasso, Ridge\n"
        "from sklearn.model_selection import cross_val_score\n"
        "from multiprocessing import get_context\n"
        "X = np.random.default_rng(0).normal(size=(20, 2))\n"
        "def fit(alpha):\n    return Lasso(alpha=alpha).fit(X, X[:, 0]).coef_[0]\n"
        "if __name__ == '__main__':\n"
        "    cross_val_score(Ridge(), X, X[:, 0], cv=4, n_jobs=2)\n"
        "    with get_context('fork').Pool(2) as pool:\n        pool.map(fit, [0.1, 0.2, 0.3])\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "certifit", "patch", str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "linear_model.Lasso (3 fits), linear_model.Ridge (4 fits)" in done.stderr


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
