"""Representation: how rows become vectors; scaling and basis expansion."""
