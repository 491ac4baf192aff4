"""The modules of scikit-learn that have a counterpart here: one line enrols a module and what its ``__all__`` names."""

from __future__ import annotations

__all__ = ["MODULES"]

MODULES = (
    "calibration",
    "cluster",
    "decomposition",
    "discriminant_analysis",
    "ensemble",
    "feature_extraction.text",
    "feature_selection",
    "kernel_approximation",
    "kernel_ridge",
    "linear_model",
    "manifold",
    "mixture",
    "multiclass",
    "naive_bayes",
    "neighbors",
    "neural_network",
    "preprocessing",
    "svm",
    "tree",
)
