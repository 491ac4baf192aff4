"""Pictures: one function each, matplotlib, drawn on `ax` if it is given."""

from certifit.plots.tree import plot_oob_curve, plot_tree

__all__ = ["plot_oob_curve", "plot_tree"]
