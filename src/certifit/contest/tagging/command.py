"""The command ``certifit tag train.conllu test.conllu``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from certifit.contest.tagging.contest import TaggingResult

__all__ = ["register", "write_result"]

FILES = {"report": "report.html", "model": "model.cfit", "run": "run.json"}


def register(app: typer.Typer, user_errors: Any) -> None:
    """Add the command to the command line."""

    @app.command()
    def tag(
        train: Annotated[
            Path, typer.Argument(help="Annotated text: .conllu, or columns with the label last; also .gz.")
        ],
        test: Annotated[Path, typer.Argument(help="Annotated text that no tagger sees before it is scored.")],
        target: Annotated[
            str | None, typer.Option("--target", "-t", help="Column to predict; upos or the last.")
        ] = None,
        entrants: Annotated[str | None, typer.Option(help="Names of the taggers, as crf,hmm; all by default.")] = None,
        metric: Annotated[str | None, typer.Option(help="accuracy or span_f1; spans where labels mark spans.")] = None,
        seed: Annotated[int, typer.Option(help="Of every draw.")] = 0,
        jobs: Annotated[int | None, typer.Option(help="Threads; all cores by default.")] = None,
        out: Annotated[Path, typer.Option("--out", "-o", help="Folder for report, model and record.")] = Path(
            "tagging"
        ),
        as_json: Annotated[bool, typer.Option("--json", help="Write the record as JSON to standard output.")] = False,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
    ) -> None:
        """Hold a contest of taggers on annotated text and write a report and a model."""
        with user_errors():
            import json

            from certifit.contest.folder import check_folder
            from certifit.contest.tagging.contest import TaggingContest

            check_folder(out)
            names = None if entrants is None else [name.strip() for name in entrants.split(",") if name.strip()]
            contest = TaggingContest(train, test, target=target, entrants=names, metric=metric, seed=seed, jobs=jobs)
            silent = quiet or as_json
            if not silent:
                typer.echo(
                    f"{contest.train.source}: {len(contest.train):,} sentences, {contest.train.n_tokens:,} words; "
                    f"predict {contest.target}"
                )
            result = contest.run(lambda text: None if silent else typer.echo(text))
            files = write_result(result, out)
            if as_json:
                typer.echo(json.dumps(result.record, ensure_ascii=False, allow_nan=False))
            elif not quiet:
                typer.echo(result.record["leaderboard"]["text"])
                for kind, path in files.items():
                    typer.echo(f"{kind}: {path}")


def write_result(result: TaggingResult, folder: Path) -> dict[str, Path]:
    """Write the page, the model and the record."""
    import json

    from certifit.contest.folder import write_text
    from certifit.contest.plain import plain
    from certifit.contest.report import render
    from certifit.persistence import save

    paths = {kind: folder / name for kind, name in FILES.items()}
    save(result.model, paths["model"])
    record = {**result.record, "files": dict(FILES)}
    write_text(paths["run"], json.dumps(plain(record, str), ensure_ascii=False, allow_nan=False, indent=1) + "\n")
    write_text(paths["report"], render(record))
    return paths
