"""Embeddings: rows in few columns."""
