"""Evaluation: losses, penalties and constraints; what a good prediction function is."""
