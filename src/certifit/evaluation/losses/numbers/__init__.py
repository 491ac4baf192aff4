"""Losses of numbers: one file each."""
