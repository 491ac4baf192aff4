"""Classes on a kernel: logistic regression of two classes or more.

    minimize over f    (1/Σs_i) Σ s_i ln(1 + exp(−t_i (f(x_i) + b)))  +  alpha·½‖f‖²,              t_i = ±1
    minimize over f_k  (1/Σs_i) Σ s_i (ln Σ_k exp(f_k(x_i) + b_k) − f_y(x_i) − b_y)  +  alpha·½Σ_k‖f_k‖²

The second form is that of more than two classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from certifit._types import Array
from certifit.evaluation.losses import Loss, Softmax
from certifit.evaluation.losses.labels.margin import HardLogistic
from certifit.models.kernel.model import BaseKernel, Iterated
from certifit.models.kernel.parameters import ALPHA, KERNEL
from certifit.models.logistic.probabilities import LogisticScores
from certifit.parameters import CLASS_WEIGHT, FIT_INTERCEPT, Fitted
from certifit.progress import progress

__all__ = ["KernelLogisticRegression"]


class KernelLogisticRegression(Iterated, LogisticScores, ClassifierMixin, BaseKernel):
    """Logistic regression on a kernel: two classes by the logistic loss, more by the softmax.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import KernelLogisticRegression
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])  # no plane separates these
    >>> model = KernelLogisticRegression(alpha=1e-4).fit(X, ["same", "same", "other", "other"])
    >>> model.score(X, ["same", "same", "other", "other"]), model.certificate_.certified
    (1.0, True)
    """

    kernel: Any = KERNEL
    alpha: float = ALPHA
    fit_intercept: bool = FIT_INTERCEPT
    class_weight: Any = CLASS_WEIGHT

    classes_: Array = Fitted("array of shape (K,)", "The classes.")
    dual_coef_: Array = Fitted(
        "array of shape (n_points,) or (n_points, K)", "β; one column for each class of three or more."
    )
    intercept_: Any = Fitted("float or array of shape (K,)", "b.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelLogisticRegression:
        """Fit the model; X holds what the kernel takes: a matrix, strings, sets, or the Gram matrix for ``"precomputed"``."""
        sample = self._sample(X, y, sample_weight, labels=True, class_weight=self.class_weight)
        self.classes_ = np.asarray(sample.classes)
        K = self.classes_.shape[0]
        loss: Loss = HardLogistic()
        if K == 2:
            sample = sample.with_targets(sample.y.astype(np.float64))
        else:
            loss = Softmax(K)
        with progress(self.verbose, type(self).__name__) as clock:
            certificate = self._solve(sample, loss, "auto", float(self.tol), int(self.max_iter), clock)
        self._certify(certificate)
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores: shape (n,) for two classes (positive: the second class), (n, K) for more."""
        return self._scores(X)
