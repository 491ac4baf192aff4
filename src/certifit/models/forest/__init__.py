"""Forests and bagging."""
