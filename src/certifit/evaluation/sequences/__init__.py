"""Judging labels of sequences: whole sentences are what varies."""
