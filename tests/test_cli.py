"""The command as a person and a script use it: exit codes, one-line errors with the cure, nothing half-written."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.contest.tables import loans, prices
from typer.testing import CliRunner

from certifit.cli import app

QUICK = ["--entrants", "logistic", "--time", "8"]


def certifit(*arguments: Any, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
    """The command within this process: most of what can be asked of it needs no new one."""
    found = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin, catch_exceptions=False)
    return subprocess.CompletedProcess(arguments, found.exit_code, found.stdout, found.stderr)


def in_a_process(*arguments: Any, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
    """The command as a shell starts it."""
    done = subprocess.run(
        [sys.executable, "-m", "certifit", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "loans.csv"
    loans().write_csv(path)
    return path


@pytest.fixture(scope="module")
def done(table: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("out") / "report"
    run = in_a_process("compete", table, "--target", "default", "--cost", "fp=1,fn=5", "--out", out, *QUICK)
    assert run.returncode == 0, run.stderr
    return out, run.stdout


def test_compete_shows_what_it_inferred_and_writes_everything(done: tuple[Path, str]) -> None:
    out, shown = done
    assert {p.name for p in out.iterdir()} == {"report.html", "leaderboard.csv", "model.cfit", "run.json"}
    for words in ("income", "numeric", "category", "Logistic regression", "Baseline", "Certified:", "report.html"):
        assert words in shown
    assert "<!doctype html>" in (out / "report.html").read_text(encoding="utf-8")[:200].lower()


def test_predict_reads_new_rows_and_writes_csv(done: tuple[Path, str], tmp_path: Path) -> None:
    out, _ = done
    new = tmp_path / "new.csv"
    loans(30, seed=8).drop("default").write_csv(new)
    run = certifit("predict", out / "model.cfit", new)
    assert run.returncode == 0, run.stderr
    predicted = pl.read_csv(run.stdout.encode())
    assert predicted.columns == ["default", "probability of no", "probability of yes"]
    assert predicted.height == 30
    said = predicted["default"].to_numpy() == "yes"
    np.testing.assert_array_equal(said, predicted["probability of yes"].to_numpy() >= 1 / 6)
    as_json = certifit("predict", out / "model.cfit", new, "--json")
    assert json.loads(as_json.stdout)[0]["default"] == predicted["default"][0]
    to_file = certifit("predict", out / "model.cfit", "-", "--out", tmp_path / "p.csv", "-q", stdin=new.read_bytes())
    assert to_file.returncode == 0
    assert to_file.stdout == to_file.stderr == ""
    assert (tmp_path / "p.csv").read_text() == run.stdout


def test_predict_says_its_threshold_and_takes_another(done: tuple[Path, str], tmp_path: Path) -> None:
    out, _ = done
    new = tmp_path / "new.csv"
    loans(30, seed=4).drop("default").write_csv(new)
    own = certifit("predict", out / "model.cfit", new)
    assert "'yes' is said from probability 0.1667 on (the model's own" in own.stderr
    asked = certifit("predict", out / "model.cfit", new, "--threshold", "0.8")
    assert "'yes' is said from probability 0.8 on (as asked)" in asked.stderr
    predicted = pl.read_csv(asked.stdout.encode())
    said = predicted["default"].to_numpy() == "yes"
    np.testing.assert_array_equal(said, predicted["probability of yes"].to_numpy() >= 0.8)
    assert_refused(certifit("predict", out / "model.cfit", new, "--threshold", "1.2"), "threshold")


def test_predict_says_which_categories_it_does_not_know(done: tuple[Path, str], tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    rows = loans(30, seed=4).drop("default")
    rows.write_csv(new)
    assert "does not know" not in certifit("predict", done[0] / "model.cfit", new).stderr
    rows.with_columns(region=pl.Series(["west", "west", *rows["region"][2:]])).write_csv(new)
    told = certifit("predict", done[0] / "model.cfit", new).stderr
    assert "'region' has 1 category that the model does not know ('west'), in 2 rows" in told


def test_a_model_file_that_is_not_there(tmp_path: Path) -> None:
    for command in (["predict", "nope.cfit", "x.csv"], ["inspect", "nope.cfit"]):
        run = certifit(*command)
        assert run.returncode == 2
        assert (
            run.stderr == "certifit: there is no file 'nope.cfit': give a .cfit file, as `certifit compete` writes.\n"
        )


def test_inspect_says_which_rows_the_model_has_seen(done: tuple[Path, str]) -> None:
    told = " ".join(certifit("inspect", done[0] / "model.cfit").stdout.split())
    assert "threshold 0.1667 origin" in told
    assert "Fitted on all 400 rows" in told
    assert "80 sealed rows" in told


def test_predict_names_the_missing_column(done: tuple[Path, str], tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    loans(5).drop("default", "income").write_csv(new)
    assert_refused(certifit("predict", done[0] / "model.cfit", new), "income")


def test_inspect(done: tuple[Path, str]) -> None:
    run = certifit("inspect", done[0] / "model.cfit")
    assert run.returncode == 0, run.stderr
    for words in ("Logistic regression", "default", "Certified", "income"):
        assert words in run.stdout
    described = json.loads(certifit("inspect", done[0] / "model.cfit", "--json").stdout)
    assert described["target"] == "default"
    assert described["classes"] == ["no", "yes"]


def test_report_is_rebuilt_byte_for_byte(done: tuple[Path, str], tmp_path: Path) -> None:
    out, _ = done
    run = certifit("report", out / "run.json", "--out", tmp_path / "again.html")
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "again.html").read_bytes() == (out / "report.html").read_bytes()


def test_export(done: tuple[Path, str], tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    run = certifit("export", done[0] / "model.cfit", "--out", tmp_path / "model.onnx")
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "model.onnx").stat().st_size > 100


def test_json_is_for_machines(table: Path, tmp_path: Path) -> None:
    run = certifit("compete", table, "-t", "default", "--json", "--quiet", "--out", tmp_path / "o", *QUICK)
    record = json.loads(run.stdout)
    assert record["task"]["target"] == "default"
    assert Path(record["files"]["model"]).exists()
    assert run.stderr == ""


def test_quiet_says_nothing(table: Path, tmp_path: Path) -> None:
    run = certifit("compete", table, "-t", "default", "--quiet", "--out", tmp_path / "o", *QUICK)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_standard_input_and_gzip(table: Path, tmp_path: Path) -> None:
    packed = tmp_path / "loans.csv.gz"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    first = certifit("compete", packed, "-t", "default", "--json", "-q", "--out", tmp_path / "a", *QUICK)
    second = in_a_process(
        "compete", "-", "-t", "default", "--json", "-q", "--out", tmp_path / "b", *QUICK, stdin=table.read_bytes()
    )
    scores = [json.loads(run.stdout)["entrants"][0]["score"] for run in (first, second)]
    assert scores[0] == scores[1]


def test_parquet_and_a_numeric_target(tmp_path: Path) -> None:
    prices().write_parquet(tmp_path / "p.parquet")
    run = certifit(
        "compete", tmp_path / "p.parquet", "-t", "price", "--entrants", "ridge", "--time", "5", "--json", "-q",
        "--out", tmp_path / "o",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["task"]["kind"] == "regression"


# bad input: one line, the cure, exit code 2, nothing half-written


def assert_refused(run: subprocess.CompletedProcess[str], words: str) -> None:
    assert run.returncode == 2, (run.returncode, run.stdout, run.stderr)
    lines = run.stderr.strip().splitlines()
    assert len(lines) == 1, run.stderr
    assert lines[0].startswith("certifit: ")
    assert re.search(words, lines[0]), lines[0]
    assert "Traceback" not in run.stderr


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "(?i)empty"),
    "header only": (b"a,b,y\n", "(?i)row"),
    "binary": (bytes(range(256)) * 40, "(?i)binary|text|CSV"),
    "five rows": (b"a,y\n" + b"".join(b"%d,%d\n" % (k, k % 2) for k in range(5)), "(?i)rows"),
    "one value": (b"a,y\n" + b"".join(b"%d,1\n" % k for k in range(50)), "(?i)y\\b.*(one|same|single|only)"),
    "nothing known": (b"a,y\n" + b"".join(b"%d,\n" % k for k in range(50)), "known 'y'"),
    "name twice": (b"a,a,y,y\n" + b"".join(b"%d,1,%d,%d\n" % (k, k % 2, k % 3) for k in range(50)), "several columns called 'y'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_bad_files(kind: str, tmp_path: Path) -> None:
    content, words = BAD[kind]
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    out = tmp_path / "out"
    assert_refused(certifit("compete", path, "--target", "y", "--out", out, *QUICK), words)
    assert not out.exists() or not list(out.iterdir())


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    assert_refused(certifit("compete", tmp_path / "no.csv", "-t", "y", "--out", tmp_path / "o"), "no.csv")


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    assert_refused(certifit("compete", tmp_path, "-t", "y", "--out", tmp_path / "o"), "(?i)folder|directory")


def test_the_nearest_column_is_suggested(table: Path, tmp_path: Path) -> None:
    assert_refused(certifit("compete", table, "-t", "defualt", "--out", tmp_path / "o"), "default")
    assert_refused(certifit("compete", table, "-t", "default", "--drop", "incom", "--out", tmp_path / "o"), "income")


def test_out_that_is_a_file(table: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    assert_refused(certifit("compete", table, "-t", "default", "--out", tmp_path / "taken"), "--out")
    assert (tmp_path / "taken").read_text() == "x"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_out_that_cannot_be_written(table: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert_refused(certifit("compete", table, "-t", "default", "--out", tmp_path / "o"), "--out")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--types", "income"], "--types"),
        (["--types", "income=colour"], "colour"),
        (["--cost", "5"], "fp"),
        (["--metric", "rmse"], "log_loss"),
        (["--entrants", "magic"], "magic.*logistic"),
        (["--task", "guess"], "binary"),
        (["--time", "-1"], "time"),
        (["--test-size", "2"], "test_size"),
        (["--group", "nobody"], "nobody"),
        (["--time-column", "when"], "when"),
    ],
)
def test_bad_options(table: Path, tmp_path: Path, options: list[str], words: str) -> None:
    assert_refused(certifit("compete", table, "-t", "default", "--out", tmp_path / "o", *options), words)


def test_model_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "m.cfit").write_bytes(b"not a model")
    assert_refused(certifit("inspect", tmp_path / "m.cfit"), "m.cfit")
    assert_refused(certifit("predict", tmp_path / "none.cfit", "x.csv"), "none.cfit")


def test_a_record_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    assert_refused(certifit("report", tmp_path / "run.json"), "run.json")
    (tmp_path / "run.json").write_text('{"format": 99, "entrants": []}')
    assert_refused(certifit("report", tmp_path / "run.json"), "99.*upgrade")
    (tmp_path / "run.json").write_text("{")
    assert_refused(certifit("report", tmp_path / "run.json"), "line 1")


def test_many_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(10_000)]
    frame = pl.DataFrame(rng.normal(size=(60, 10_000)), schema=names).with_columns(pl.Series("y", ["a", "b"] * 30))
    frame.write_csv(tmp_path / "wide.csv")
    run = certifit(
        "compete", tmp_path / "wide.csv", "-t", "y", "--entrants", "tree", "--time", "12", "-q", "--out", tmp_path / "o"
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "o" / "report.html").stat().st_size < 3_000_000


def test_ragged_rows_are_told_by_line(tmp_path: Path) -> None:
    lines = loans(100).write_csv().splitlines()
    lines.insert(5, "1,2,3,4,5,6,7")
    (tmp_path / "ragged.csv").write_text("\n".join(lines) + "\n")
    run = certifit("compete", tmp_path / "ragged.csv", "-t", "default", "--out", tmp_path / "o", *QUICK)
    assert run.returncode == 0, run.stderr
    assert "line 6" in run.stdout


def test_ctrl_c_still_writes_the_report(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "o"
    big = tmp_path / "big.csv"
    loans(20_000).write_csv(big)
    process = subprocess.Popen(
        [sys.executable, "-m", "certifit", "compete", str(big), "-t", "default", "--time", "300", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    for line in process.stdout:  # an event is a line when no terminal is attached
        if line.startswith(b"Baseline") or b"sealing" in line:
            break
    time.sleep(3.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=90)
    assert process.returncode == 0, errors.decode()
    assert (out / "report.html").exists()
    assert json.loads((out / "run.json").read_text())["interrupted"]


def test_help_answers_at_once() -> None:
    in_a_process("--help")  # the first start reads from disk
    best = np.inf
    for _ in range(3):
        started = time.perf_counter()
        run = in_a_process("--help")
        best = min(best, time.perf_counter() - started)
    assert run.returncode == 0
    for command in ("compete", "predict", "inspect", "demo", "report", "export"):
        assert command in run.stdout
    assert best < 1.5  # half a second on a machine that does nothing else


def test_version() -> None:
    assert certifit("--version").stdout.startswith("certifit ")
