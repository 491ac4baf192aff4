"""Generalized linear models: a family of losses and a map from scores to means."""
