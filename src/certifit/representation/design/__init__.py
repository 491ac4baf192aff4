"""The design: what solvers ask of the features."""
