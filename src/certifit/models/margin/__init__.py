"""Margins: support vector machines, hard margins, separability."""
