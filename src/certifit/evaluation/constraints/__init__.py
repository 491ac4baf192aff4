"""Constraints: boxes and balls."""
