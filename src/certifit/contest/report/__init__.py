"""The report of a contest: one HTML file that needs nothing else, made from the run as data."""

from certifit.contest.report.page import render, write_report

__all__ = ["render", "write_report"]
