"""L-BFGS on the whole objective: no batches, no step size, and a gradient that goes to zero.

    minimize over W, b    Σ p_i ℓ(y_i, f(x_i)) + alpha · ½ Σ_l ‖W_l‖²          Liu and Nocedal 1989; the code is SciPy's

An iteration counts as an epoch: its loss is told and watched like that of one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from certifit._types import Array
from certifit.models.neural.layers import penalty_of
from certifit.models.neural.trainers.double import DoubleTrainer
from certifit.models.neural.training import History, Recipe, State, Watch
from certifit.progress import Progress

__all__ = ["minimize_whole"]


def minimize_whole(
    trainer: DoubleTrainer, recipe: Recipe, state: State, held_out: object, clock: Progress
) -> tuple[State, History]:
    """Iterations from `state` until no slope is greater than the tolerance, or nothing is gained any more.

    Rows set aside end it early like any training; without them the loss falls at every iteration, and is not watched.
    """
    watch = Watch(held_out, recipe, state, clock)
    history = watch.history
    start = state.weights.astype(np.float64)
    trainer.load(replace(state, weights=start))

    def iterated(intermediate_result: Any) -> None:
        at = np.array(intermediate_result.x)
        trainer.now.weights = at
        loss = float(intermediate_result.fun) - recipe.alpha * penalty_of(trainer.net.sizes, at)
        if watch.saw(loss, trainer, State.start(at)) and held_out is not None:
            history.settled = True
            raise StopIteration

    def objective(at: Array) -> tuple[float, Array]:
        return trainer.objective(at, recipe.alpha)

    if not np.isfinite(objective(start)[0]):
        history.ran_away, history.note = True, "The objective of the first weights is beyond double precision: scale X."
        return watch.found()
    options: Any = {
        "maxiter": recipe.max_epochs,
        "maxfun": recipe.evaluations,
        "gtol": recipe.tol,
        "ftol": recipe.flat,
    }
    found = minimize(objective, start, jac=True, method="L-BFGS-B", callback=iterated, options=options)
    steepest = float(np.abs(found.jac).max())
    history.settled |= bool(found.success) or steepest <= recipe.tol
    if not history.settled:
        cure = (
            "give a greater max_iter or tol"
            if found.status == 1
            else "there is no lower point along its direction, as at a kink or at the end of double precision"
        )
        history.note = (
            f"L-BFGS stopped after {found.nit} iterations at a greatest slope of {steepest:.2g}, where {recipe.tol:.2g} was "
            f"wanted: {cure}."
        )
    return watch.found()
