"""Stochastic gradient descent and Pegasos."""
