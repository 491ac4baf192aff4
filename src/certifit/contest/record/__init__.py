"""The record of a run and the model that is shipped."""

from __future__ import annotations

__all__ = ["RUN_FORMAT"]

RUN_FORMAT = 1
"""The format of the record in `run.json`, written and read."""
