"""Structured support vector machine: the right labelling beats every other one by what that one would cost.

minimize over w    (1/Σs_i) Σ s_i max_y (Δ(y_i, y) + score(x_i, y) − score(x_i, y_i))  +  alpha·½‖w‖²

Δ is a sum over the positions, by default the number of wrong labels. Sequences of length one without boundaries are the
multiclass support vector machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from certifit.models.margin.multiclass import check_delta, constant_objective
from certifit.models.structured.base import FeatureModel
from certifit.optimization.chain.margin import solve_margin
from certifit.optimization.chain.shape import ChainShape
from certifit.parameters import MAX_EPOCHS, RANDOM_STATE, TOL, Any_, Fitted, Parameter, Real
from certifit.progress import progress
from certifit.threads import one_blas_thread

__all__ = ["StructuredSVM"]


class StructuredSVM(FeatureModel):
    """Structured support vector machine on chains of labels, with any cost that is a sum over the positions.

    Minimizes ``mean max_y (Δ(y_i, y) + score(y) − score(y_i)) + alpha·½‖w‖²`` by block-coordinate Frank-Wolfe on the
    dual. The gap between the objective and the dual value is the certificate. All weights are penalized.

    Examples
    --------
    >>> from certifit import StructuredSVM
    >>> X, y = [["pay", "tax"], ["pay", "rent"], ["rent", "rises"]], [["V", "N"], ["V", "N"], ["N", "V"]]
    >>> dear_verbs = [[0, 1], [5, 0]]  # a verb taken for a noun costs five times as much as a noun taken for a verb
    >>> model = StructuredSVM(alpha=0.01, delta=dear_verbs).fit(X, y)
    >>> model.predict([["tax", "rises"]]), model.certificate_.certified
    ([['N', 'V']], True)
    """

    alpha: float = Parameter(0.001, Real(0, open_low=True), "Strength of the penalty.")
    delta: Any = Parameter(
        None,
        Any_("array of shape (n_labels, n_labels) or None", ("a", [[1.0]], np.full((5, 5), -1.0), np.ones((5, 5)))),
        "Cost of taking one label for another: rows are the right labels in the order of `classes_`, the diagonal is "
        "zero; None: 1 for every error.",
    )
    tol: float = TOL.but(1e-2)
    max_iter: int = MAX_EPOCHS.but(200, text="Most passes over the sequences.")
    random_state: Any = RANDOM_STATE.but(0, text="Draws the order of the sequences.")

    n_iter_: int = Fitted("int", "Passes over the sequences.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, lengths: Any = None) -> StructuredSVM:
        """Fit the model."""
        threads = self._check()
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        data = self._fit_data(X, y, sample_weight, lengths)
        cost, K = check_delta(self.delta, self.classes_), self.classes_.shape[0]
        shape = ChainShape(K, data.positions.n_features, data.positions.n_markov, self.allowed_, self._free())
        mass = data.position_weight
        unit = float(mass.sum()) * constant_objective(data.y, mass / mass.sum(), cost, True)
        with progress(int(self.verbose), "StructuredSVM") as clock, one_blas_thread():
            found = solve_margin(
                data.positions,
                data.y,
                data.p,
                shape,
                cost,
                alpha=float(self.alpha),
                unit=unit,
                tol=float(self.tol),
                max_epochs=int(self.max_iter),
                rng=rng,
                threads=threads,
                clock=clock,
            )
            seconds = clock.seconds
        self.n_iter_ = found.epochs
        self._keep_proven(shape, found, "duality gap", unit, found.epochs, seconds)
        return self
