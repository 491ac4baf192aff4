"""Metrics of labels, probabilities, scores and values."""
