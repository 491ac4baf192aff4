"""Texts: their words and characters, counted and weighted."""
