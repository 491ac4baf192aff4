"""Pictures: one function each, matplotlib, drawn on `ax` if it is given."""

from certifit.plots.bayes import plot_band, plot_classes, plot_updates
from certifit.plots.curves import plot_learning_curve, plot_validation_curve
from certifit.plots.decisions import plot_calibration, plot_cost_curve
from certifit.plots.explanation import plot_dependence, plot_importance
from certifit.plots.hierarchy import plot_dendrogram
from certifit.plots.kernel import plot_gram, plot_margin
from certifit.plots.linear import plot_coefficients, plot_influence, plot_path, plot_residuals
from certifit.plots.local import plot_local_fit
from certifit.plots.losses import plot_losses
from certifit.plots.neural import plot_first_layer, plot_history
from certifit.plots.ranking import plot_confusion, plot_precision_recall, plot_roc
from certifit.plots.resampling import plot_bias_variance
from certifit.plots.tree import plot_oob_curve, plot_tree

__all__ = [
    "plot_band",
    "plot_bias_variance",
    "plot_calibration",
    "plot_classes",
    "plot_coefficients",
    "plot_confusion",
    "plot_cost_curve",
    "plot_dendrogram",
    "plot_dependence",
    "plot_first_layer",
    "plot_gram",
    "plot_history",
    "plot_importance",
    "plot_influence",
    "plot_learning_curve",
    "plot_local_fit",
    "plot_losses",
    "plot_margin",
    "plot_oob_curve",
    "plot_path",
    "plot_precision_recall",
    "plot_residuals",
    "plot_roc",
    "plot_tree",
    "plot_updates",
    "plot_validation_curve",
]
