"""Neural networks: multilayer perceptrons with any loss."""
