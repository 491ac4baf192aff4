"""The contest on a terminal: what was inferred, a line per entrant while it runs, the leaderboard at the end."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.segment import Segment
from rich.spinner import Spinner
from rich.table import Table as Grid
from rich.text import Text

from certifit.contest.numbers import duration, readable
from certifit.contest.search.limits import Budget
from certifit.contest.standing import Standing
from certifit.printable import printable

if TYPE_CHECKING:
    from certifit.contest.contest import Contest
    from certifit.contest.record.result import Result

__all__ = ["Display", "show_description"]

MOST_COLUMNS = 30
HEAD = 14  # characters of a line of a heading
DONE = {"finished": "green", "fitted": "green", "failed": "red", "out of time": "yellow", "interrupted": "yellow"}


class SafeConsole(Console):
    """A console on which the texts of others, such as names of columns, are shown and not obeyed."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The parts of what is shown; control sequences come from the console itself only."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment("\n".join(map(printable, segment.text.split("\n"))), segment.style)


class Display:
    """Shows a contest; on a terminal the lines move, in a file each event is a line."""

    def __init__(self, contest: Contest, *, quiet: bool, to_stderr: bool) -> None:
        self.contest, self.quiet = contest, quiet
        self.console = SafeConsole(stderr=to_stderr, quiet=quiet, highlight=False)
        self.standings: list[Standing] = []
        self.text = ""
        self.budget = Budget(contest.options.time)
        self._live: Live | None = None

    def __enter__(self) -> Display:
        if not self.quiet:
            self._show_table()
            if self.console.is_terminal:
                self._live = Live(self, console=self.console, refresh_per_second=8, transient=True)
                self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    # what the contest tells

    def planned(self, standings: list[Standing]) -> None:
        """The entrants are known."""
        self.standings = standings

    def changed(self, standing: Standing) -> None:
        """An entrant moved on; in a file only its end is worth a line."""
        if standing not in self.standings:
            self.standings.append(standing)
        if self._live is None and standing.status not in ("searching", "fitting", "fitted", "waiting"):
            self.console.print(f"{standing.entrant.label}: {self._outcome(standing)}", markup=False)

    def phase(self, text: str) -> None:
        """The contest does something that is no entrant's."""
        self.text = text
        if self._live is None:
            self.console.print(f"… {text}", markup=False)

    # what is shown

    def __rich__(self) -> Group:
        grid = Grid.grid(padding=(0, 2))
        for standing in self.standings:
            running = standing.status in ("searching", "fitting")
            mark = (
                Spinner("dots")
                if running
                else Text("✓" if standing.fitted else "·", style=DONE.get(standing.status, ""))
            )
            grid.add_row(mark, standing.entrant.label, self._outcome(standing))
        left = f"{self.budget.left:.0f} s left · Ctrl-C stops early and still writes the report"
        return Group(grid, Text(f"now: {self.text} · {left}" if self.text else left, style="dim"))

    def _outcome(self, standing: Standing) -> str:
        metric = self.contest.scoring.metric
        if standing.verdict is not None:
            return f"{metric.label} {readable(standing.verdict.score.value, metric.format)}"
        if standing.error:
            return f"{standing.status}: {standing.error}"
        if standing.inner_score is not None:
            shown = readable(standing.inner_score, metric.format)
            return f"{standing.status}; {metric.label} {shown} within the training part"
        return standing.status

    def _show_table(self) -> None:
        table = self.contest.table
        task = table.task
        self.console.print(
            f"{table.source}: {table.frame.height:,} rows, {len(table.columns):,} columns; "
            f"predict {table.target} ({task.kind}: {task.why})",
            markup=False,
        )
        grid = Grid(box=None, padding=(0, 2), header_style="bold")
        for title in ("column", "kind", "missing", "distinct", ""):
            grid.add_column(title, justify="right" if title in ("missing", "distinct") else "left")
        for column in table.columns[:MOST_COLUMNS]:
            role = "" if column.role == "feature" else column.role
            why = " — ".join(part for part in (role, column.why or "") if part)
            grid.add_row(
                escape(column.name), column.kind, f"{column.missing:,}", f"{column.distinct:,}", Text(why, style="dim")
            )
        self.console.print(grid)
        if len(table.columns) > MOST_COLUMNS:
            self.console.print(f"… and {len(table.columns) - MOST_COLUMNS:,} more columns (all are in the report)")
        for line, why in table.bad_rows[:5]:
            self.console.print(f"line {line} left out: {why}", style="yellow", markup=False)
        if len(table.bad_rows) > 5:
            self.console.print(f"… and {len(table.bad_rows) - 5:,} more lines left out", style="yellow")
        for warning in table.warnings:
            self.console.print(f"note: {warning['text']}", style="yellow", markup=False)

    def show_result(self, result: Result, files: Mapping[str, Path]) -> None:
        """The leaderboard, the summary and the files."""
        record = result.record
        metric = record["task"]["metric"]
        form = metric["format"]
        wide = self.console.width >= 110
        grid = Grid(box=None, padding=(0, 1), header_style="bold")
        titles = ["", "entrant", metric["label"], "95 % interval", "verdict", *(["certificate", "fit"] if wide else [])]
        for title in titles:
            # A number that is cut is worse than none: words wrap, numbers never do.
            words = title in ("entrant", "verdict", "certificate")
            right = title in ("", metric["label"], "fit")
            # A long head is broken by hand, or the words beside it would have no room.
            head = "\n".join(textwrap.wrap(title, HEAD))
            grid.add_column(head, justify="right" if right else "left", no_wrap=not words, overflow="fold")
        first = next((e["score"]["value"] for e in record["entrants"] if e["score"]), None)
        for e in record["entrants"]:
            if e["score"] is None:
                grid.add_row("", escape(e["label"]), "", "", Text(f"{e['status']}: {e['error']}", style="dim"))
                continue
            low, high, value = (e["score"][key] for key in ("low", "high", "value"))
            numbers = [readable(v, form, beside=first) for v in (value, low, high)]
            interval = "" if low is None or high is None else f"{numbers[1]} – {numbers[2]}"
            interval = "not to be trusted" if e["score"].get("trusted") is False else interval
            proof = [(e["certificate"] or {}).get("verdict", ""), duration(e["fit_seconds"])] if wide else []
            style = "bold" if e["rank"] == 1 else ""
            grid.add_row(
                str(e["rank"]), escape(e["label"]), numbers[0], interval, e["verdict"] or "", *proof, style=style
            )
        self.console.print()
        self.console.print(grid)
        self.console.print()
        for verdict in ("certified", "not certified", "no bound possible"):
            proofs = [(e["label"], e["certificate"] or {}) for e in record["entrants"]]
            names = [
                label + (f" ({proof['claim']})" if proof.get("claim") and verdict == "certified" else "")
                for label, proof in proofs
                if proof.get("verdict") == verdict
            ]
            if names:
                self.console.print(f"{verdict.capitalize()}: {', '.join(names)}.", markup=False)
        self.console.print()
        for warning in record["data"]["warnings"]:
            # What was said when the table was read, and what the summary says, is not said again.
            if warning not in self.contest.table.warnings and warning["text"] not in record["summary"]:
                loud = warning["kind"] in ("leakage", "split")
                mark, style = ("warning", "bold red") if loud else ("note", "yellow")
                self.console.print(f"{mark}: {warning['text']}", style=style, markup=False)
        for sentence in record["summary"]:
            self.console.print(sentence, markup=False)
        self.console.print()
        for path in files.values():
            self.console.print(str(path), markup=False, soft_wrap=True)


def show_description(description: Mapping[str, Any]) -> None:
    """A model file in words."""
    console = SafeConsole(highlight=False, file=sys.stdout)
    grid = Grid.grid(padding=(0, 2))
    for name in (
        "file",
        "class",
        "entrant",
        "task",
        "target",
        "classes",
        "threshold",
        "costs",
        "origin",
        "model",
        "certificate",
    ):
        value = description.get(name)
        if value not in (None, [], ""):
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            text = f"{value:.4g}" if isinstance(value, float) else text
            grid.add_row(Text(name, style="bold"), Text(text))
    console.print(grid)
    columns = description.get("columns")
    if columns:
        console.print(
            f"{len(columns)} columns: " + ", ".join(f"{c['name']} ({c['kind']})" for c in columns), markup=False
        )
