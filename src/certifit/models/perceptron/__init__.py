"""The perceptron and its relatives."""
