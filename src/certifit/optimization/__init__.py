"""Optimization: the solvers, and the proof of how well they did."""
