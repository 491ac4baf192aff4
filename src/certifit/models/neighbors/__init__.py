"""Neighbors: predictions from the nearest rows, and local regression."""
