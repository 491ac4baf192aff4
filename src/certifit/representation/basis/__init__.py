"""Basis expansion and scaling."""
