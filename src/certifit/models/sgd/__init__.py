"""Stochastic gradient descent."""
