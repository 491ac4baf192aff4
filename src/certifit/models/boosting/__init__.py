"""Boosting: gradient boosting, AdaBoost, stagewise models."""
