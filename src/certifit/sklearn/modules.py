"""The modules of scikit-learn that have a counterpart here: one line enrols a module and what its ``__all__`` names."""

from __future__ import annotations

__all__ = ["MODULES"]

MODULES = ("discriminant_analysis", "ensemble", "linear_model", "naive_bayes", "svm", "tree")
