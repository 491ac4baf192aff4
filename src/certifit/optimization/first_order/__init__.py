"""Gradient and proximal gradient descent."""
