"""The command line: ``certifit compete data.csv --target y`` and what follows from it.

Exit codes: 0 done; 2 the input or an option is wrong (one line says what and what helps); 130 interrupted without a result.
Heavy modules are imported by the commands that need them, so that ``certifit --help`` answers at once.
"""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from certifit.contest.tagging.command import register as register_tagging
from certifit.exploration.command import register as register_exploration
from certifit.printable import json_text, printable

if TYPE_CHECKING:
    from certifit.contest.contest import Contest
    from certifit.contest.record.result import Result

__all__ = ["app", "main"]

USAGE = 2
INTERRUPTED = 130

app = typer.Typer(
    name="certifit",
    help="Machine learning that shows its proof: an honest contest of methods on your own table.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Write the result as JSON to standard output.")]
Data = Annotated[str, typer.Argument(help="CSV (any delimiter, also .gz), Parquet, or - for standard input.")]
ModelFile = Annotated[Path, typer.Argument(help="A .cfit file, as `certifit compete` writes.")]


def say(text: object, err: bool = False) -> None:
    """One line; what others have written into it does not steer the terminal."""
    typer.echo(printable(text), err=err)


def fail(message: str) -> NoReturn:
    """One line on standard error, exit code 2."""
    say(f"certifit: {' '.join(str(message).split())}", err=True)
    raise typer.Exit(USAGE)


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn errors of the input into one line; an interrupt ends quietly."""
    try:
        yield
    except ValueError as error:  # files, tables, options, model files: all errors of what was given are ValueErrors
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}." if error.filename and error.strerror else str(error))
    except ImportError as error:  # an extra that is not installed
        fail(str(error))
    except KeyboardInterrupt:
        typer.echo("certifit: interrupted.", err=True)
        raise typer.Exit(INTERRUPTED) from None


def version_asked(asked: bool) -> None:
    """Print the version."""
    if asked:
        from importlib.metadata import version

        typer.echo(f"certifit {version('certifit')}")
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=version_asked, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Machine learning that shows its proof: an honest contest of methods on your own table."""


@app.command()
def compete(
    data: Data,
    target: Annotated[str, typer.Option("--target", "-t", help="The column to predict.")],
    task: Annotated[str | None, typer.Option(help="binary, multiclass or regression; inferred by default.")] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(help="Kind of a column: col=category, numeric, boolean, text or date. Repeatable."),
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out. Repeatable, or a,b,c.")] = None,
    group: Annotated[str | None, typer.Option(help="Column whose equal values must stay together.")] = None,
    time_column: Annotated[str | None, typer.Option(help="Column of time: the latest rows are sealed.")] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            help="Costs of the errors: fp=1,fn=5 for two classes; for more, a CSV or JSON file of costs (rows: what is true, "
            'columns: what is said), or JSON such as \'{"a": {"b": 5}, "b": {"a": 1}}\'.'
        ),
    ] = None,
    metric: Annotated[str | None, typer.Option(help="What to rank by: log_loss, roc_auc, rmse, mae, cost, …")] = None,
    entrants: Annotated[
        str | None, typer.Option(help="Names of the entrants, as logistic,boosting; all by default.")
    ] = None,
    time: Annotated[float, typer.Option(help="Seconds the contest may take.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Of every draw; the same seed gives the same contest.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Threads; all cores by default.")] = None,
    test_size: Annotated[float, typer.Option(help="Share of the rows that is sealed.")] = 0.2,
    refit: Annotated[
        bool, typer.Option(help="Ship the winner fitted anew on all rows, or as it was scored (--no-refit).")
    ] = True,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the report, the model and the record.")] = Path(
        "report"
    ),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a contest of methods on a table and write a report."""
    begun = clock.monotonic()  # loading the modules is a part of the time that a contest may take
    with user_errors():
        from certifit.contest.contest import Contest
        from certifit.contest.folder import check_folder

        check_folder(out)
        contest = Contest(
            data,
            target,
            task=task,
            types=_pairs(types or [], "--types"),
            drop=_names(drop or []),
            group=group,
            time_column=time_column,
            cost=cost,
            metric=metric,
            entrants=None if entrants is None else _names([entrants]),
            time=time,
            seed=seed,
            jobs=jobs,
            test_size=test_size,
            refit=refit,
        )
        _hold(contest, out, as_json, quiet, begun)


@app.command()
def demo(
    name: Annotated[str, typer.Argument(help="The bundled table: default, penguins or wage.")] = "default",
    time: Annotated[float, typer.Option(help="Seconds the contest may take.")] = 40.0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the report.")] = Path("certifit-demo"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Hold a contest on a bundled table: who will default on a credit card?"""
    begun = clock.monotonic()
    with user_errors():
        from certifit import datasets
        from certifit.contest.contest import Contest
        from certifit.contest.folder import check_folder

        check_folder(out)
        data = datasets.load(name)
        cost = "fp=1,fn=10" if name == "default" else None
        contest = Contest(str(datasets.path(name)), data.target, time=time, cost=cost)
        _hold(contest, out, as_json, quiet, begun)


@app.command()
def predict(
    model: ModelFile,
    data: Data,
    out: Annotated[str, typer.Option("--out", "-o", help="CSV file for the predictions; - for standard output.")] = "-",
    probabilities: Annotated[bool, typer.Option(help="Also the probability of each class.")] = True,
    threshold: Annotated[
        float | None, typer.Option(help="For two classes: say the positive one from this probability on.")
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(help="Also the ends, or the labels, that hold the truth in this share of rows, such as 0.9."),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Write labels as they are, also those that a spreadsheet runs as formulas.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the rows of a new table with a model file."""
    with user_errors():
        from certifit.contest.record.predicting import predict_file

        written = predict_file(
            model,
            data,
            probabilities=probabilities,
            as_json=as_json,
            threshold=threshold,
            raw=raw,
            interval=interval,
        )
        for note in written.notes:
            if not quiet:
                say(f"certifit: {note}", err=True)
        if out == "-":
            lines = map(printable, written.text.split("\n")) if sys.stdout.isatty() else [written.text]
            sys.stdout.write("\n".join(lines))
        else:
            from certifit.contest.folder import OutputError, write_text

            if not Path(out).parent.is_dir():
                raise OutputError(f"{Path(out).parent} is no folder: give --out a file in a folder that exists.")
            write_text(Path(out), written.text)
            if not quiet:
                say(f"{written.rows:,} predictions in {out}", err=True)


@app.command()
def inspect(model: ModelFile, as_json: Json = False) -> None:
    """Show what is in a model file: method, settings, certificate, columns."""
    with user_errors():
        from certifit.contest.record.predicting import inspect_model

        description = inspect_model(model)
        if as_json:
            typer.echo(json_text(description, indent=1))
            return
        from certifit.contest.terminal import show_description

        show_description(description)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A run.json, as `certifit compete` writes.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The page; by default report.html beside it.")] = None,
    quiet: Quiet = False,
) -> None:
    """Build the report page again from run.json."""
    with user_errors():
        from certifit.contest.folder import OutputError, write_text
        from certifit.contest.record.predicting import read_run
        from certifit.contest.report import render

        page = render(read_run(run))
        path = out or run.parent / "report.html"
        if not path.parent.is_dir() or path.is_dir():
            raise OutputError(f"{path} cannot be written: give --out a file in a folder that exists.")
        write_text(path, page)
        if not quiet:
            say(path)


@app.command()
def export(
    model: ModelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The ONNX file to write.")],
    quiet: Quiet = False,
) -> None:
    """Export a model file to ONNX (needs the onnx extra)."""
    with user_errors():
        from certifit.contest.record.predicting import export_onnx

        export_onnx(model, out)
        if not quiet:
            say(out)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
)
def patch(
    script: Annotated[Path, typer.Argument(help="A Python script that uses scikit-learn.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="The script's own arguments.")] = None,
    quiet: Quiet = False,
) -> None:
    """Run a script with Certifit's estimators in the place of scikit-learn's, and say which were used."""
    try:
        from certifit.sklearn.patching.command import run_patched, traceback_of, used
    except ImportError as error:  # scikit-learn is older than the drop-ins
        fail(str(error))
    if not script.is_file():
        fail(f"{script} is no file: give the script to run.")
    try:
        run_patched(script, arguments or [])
    except (Exception, KeyboardInterrupt) as error:  # as Python would: the script's own lines, and its exit code
        own = error.with_traceback(traceback_of(error))
        sys.excepthook(type(own), own, own.__traceback__)
        raise typer.Exit(INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1) from None
    finally:
        if not quiet:
            say(
                f"certifit: in the place of scikit-learn's: {', '.join(used()) or 'nothing, for nothing was fitted'}",
                err=True,
            )


def _hold(contest: Contest, out: Path, as_json: bool, quiet: bool, begun: float) -> None:
    """Run the contest with a display, write the files, say the answer."""
    from certifit.contest.terminal import Display

    contest.charge(max(0.0, clock.monotonic() - begun - contest.seconds_of_reading))
    display = Display(contest, quiet=quiet, to_stderr=as_json)
    with display:
        result: Result = contest.run(display)
    files = result.save(out)
    if as_json:
        record: dict[str, Any] = {**result.record, "files": {kind: str(path) for kind, path in files.items()}}
        sys.stdout.write(json_text(record) + "\n")
    elif not quiet:
        display.show_result(result, files)


def _pairs(items: list[str], option: str) -> dict[str, str]:
    found = {}
    for item in items:
        name, sign, kind = item.rpartition("=")
        if not sign or not name or not kind:
            raise ValueError(f"{option} wants column=kind, for example {option} zip=category; got {item!r}.")
        found[name] = kind
    return found


def _names(items: list[str]) -> list[str]:
    return [name.strip() for item in items for name in item.split(",") if name.strip()]


register_tagging(app, user_errors)
register_exploration(app, user_errors, _pairs)


def main() -> None:
    """Entry point of the ``certifit`` command."""
    app()
