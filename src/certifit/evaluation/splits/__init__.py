"""Splits: the sealed part and the folds."""
