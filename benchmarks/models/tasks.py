"""The tasks of a benchmark, chosen by name on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterable


def parse_tasks(parser: argparse.ArgumentParser, tasks: Iterable[str]) -> tuple[argparse.Namespace, list[str]]:
    """The arguments, and the names of the tasks to run: all where none is named."""
    known = list(tasks)
    parser.add_argument("tasks", nargs="*", help=", ".join(known))
    arguments = parser.parse_args()
    unknown = set(arguments.tasks) - set(known)
    if unknown:
        parser.error(f"unknown task {', '.join(sorted(unknown))}: choose among {', '.join(known)}")
    return arguments, [name for name in known if not arguments.tasks or name in arguments.tasks]
