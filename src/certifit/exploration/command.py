"""The command ``certifit explore data.csv``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["register"]


def register(app: typer.Typer, user_errors: Any, pairs: Callable[[list[str], str], dict[str, str]]) -> None:
    """Add the command to the command line."""

    @app.command()
    def explore(
        data: Annotated[str, typer.Argument(help="CSV (any delimiter, also .gz), Parquet, or - for standard input.")],
        label: Annotated[
            str | None, typer.Option("--label", "-l", help="Column that colours the map; it does not make the groups.")
        ] = None,
        types: Annotated[
            list[str] | None,
            typer.Option(help="Kind of a column: col=category, numeric, boolean, text or date. Repeatable."),
        ] = None,
        drop: Annotated[list[str] | None, typer.Option(help="Column to leave out. Repeatable, or a,b,c.")] = None,
        rows: Annotated[int, typer.Option(min=100, help="Of more rows, a sample of so many is compared.")] = 20_000,
        seed: Annotated[int, typer.Option(min=0, help="Of every draw.")] = 0,
        out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the page and the record.")] = Path("explore"),
        as_json: Annotated[bool, typer.Option("--json", help="Write the record as JSON to standard output.")] = False,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
    ) -> None:
        """Show what is in a table that has no target: columns, holes, associations, groups, outliers."""
        with user_errors():
            from certifit.contest.folder import check_folder
            from certifit.contest.plain import plain
            from certifit.exploration.exploration import explore as look
            from certifit.exploration.page import write
            from certifit.exploration.sentences import answer, summary
            from certifit.printable import json_text, printable

            check_folder(out)
            dropped = [name.strip() for item in drop or [] for name in item.split(",") if name.strip()]
            record = look(data, label=label, types=pairs(types or [], "--types"), drop=dropped, rows=rows, seed=seed)
            files = write(record, out)
            if as_json:
                sys.stdout.write(json_text(plain(record, str)) + "\n")
            elif not quiet:
                clean = plain(record, str)
                for line in (
                    answer(clean) + ".",
                    *summary(clean),
                    *(f"{kind}: {path}" for kind, path in files.items()),
                ):
                    typer.echo(printable(line))
