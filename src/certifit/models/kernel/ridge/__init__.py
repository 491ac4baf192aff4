"""Kernel ridge regression: one alpha, or the best of many."""
