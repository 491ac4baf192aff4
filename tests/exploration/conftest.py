"""The browser of the report's tests, for the page of an exploration."""

from tests.contest.report.conftest import driver

__all__ = ["driver"]
