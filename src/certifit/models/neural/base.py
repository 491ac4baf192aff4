"""What networks share: parameters, one fit, one pass of `partial_fit`, features and scores.

    f(x) = W_Lᵀ a_{L−1} + b_L,   a_l = σ(W_lᵀ a_{l−1} + b_l),   a_0 = (x − mean) / scale

    minimize    (1/Σs_i) Σ s_i · loss(y_i, f(x_i))  +  alpha · ½ Σ_l ‖W_l‖²

The weights of the penalty are those of standardized columns and of targets in their own unit, so that units do not matter.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import certifit._native.network as native
from certifit._types import Array, Matrix, is_sparse
from certifit.base import ConvergenceWarning, TakesSparse
from certifit.data.equal_rows import CONTENT_LIMIT, row_codes
from certifit.data.gate import check_x
from certifit.evaluation.losses import Loss
from certifit.models.boosting.fit import validation_rows
from certifit.models.neural.categories import known, learned, places, weighed
from certifit.models.neural.declared import NetworkParameters
from certifit.models.neural.diagnostics import Diagnostics
from certifit.models.neural.evidence import evidence
from certifit.models.neural.layers import Columns, flat, initial, leaks, parts
from certifit.models.neural.objective import Target
from certifit.models.neural.parameters import check_hidden
from certifit.models.neural.polish import best_output_layer
from certifit.models.neural.trainers.cpu import Trainer, layer_output
from certifit.models.neural.trainers.cuda import CudaTrainer, import_torch
from certifit.models.neural.trainers.double import BLOCK, DoubleNetwork, DoubleTrainer
from certifit.models.neural.training import History, Recipe, State, adaptive, train
from certifit.models.neural.whole import minimize_whole
from certifit.models.sgd.base import partial_certificate
from certifit.optimization.stochastic.descent import Visits
from certifit.progress import Progress, progress
from certifit.threads import n_threads, one_blas_thread

__all__ = ["BaseNetwork", "takes_steps"]

LONG = 100.0  # a weight beyond which it is asked whether what a network says is still a number


class BaseNetwork(TakesSparse, Diagnostics, NetworkParameters):
    """Layers, their training and their outputs; a subclass says what its targets are."""

    # Columns

    def _spread(self, X: Any, y: Any, sample_weight: Any, first: bool) -> tuple[Any, Any, Any, Any]:
        """Who checks the rows, and the rows, with columns of 0 and 1 for categories."""
        if not first and (self.categorical_features is None) != (getattr(self, "_categories", None) is None):
            raise ValueError(
                "warm_start and partial_fit continue a network, and categorical_features="
                f"{self.categorical_features!r} is not what it began with: set it back, or fit anew with warm_start=False."
            )
        if self.categorical_features is None:
            self._categories = None
            return self, X, y, sample_weight
        X, y, sample_weight = weighed(X, y, sample_weight)
        if first:
            self._categories, X = learned(self, X)
        else:
            X = known(self, X)
        return clone(self), X, y, sample_weight

    def _checked(self, X: Any) -> Matrix:
        """New rows as the network takes them."""
        if getattr(self, "_categories", None) is None:
            return check_x(self, X, reset=False)
        judge = clone(self)
        return check_x(judge, known(self, X), reset=True)

    def _scaling(self, X: Matrix, weight: Array) -> Columns:
        """How columns are brought to one scale; those of categories stay 0 and 1."""
        columns = Columns.of(X, weight, bool(self.standardize))
        if self._categories is not None:
            columns.mean[self.n_features_in_ :], columns.scale[self.n_features_in_ :] = 0.0, 1.0
        return columns

    @property
    def embeddings_(self) -> dict[int, dict[Any, Array]]:
        """For every column of categories, by number: the learned vector of each category, in the units of the first layer."""
        check_is_fitted(self)
        if self._categories is None:
            return {}
        return {
            j: dict(zip(self._categories.levels[j], self.coefs_[0][rows], strict=True))
            for j, rows in places(self._categories, self.n_features_in_).items()
        }

    # Training

    def _train(self, X: Matrix, y: Array, weight: Array, loss: Loss, seed: Any) -> None:
        """Fit checked arrays."""
        self._check_whole()
        X = X.tocsr() if is_sparse(X) else X
        if (order := self._arranged(X, y)) is not None:
            X, y, weight = X[order], y[order], weight[order]
        learn, aside = self._parted(X, y)
        target, columns = self._units(X[learn], y[learn], weight[learn], loss)
        rng = np.random.default_rng(seed)
        sizes = (X.shape[1], *check_hidden(self.hidden), target.n_scores)
        state = self._continued(sizes) or self._first(sizes, target, rng)
        threads = n_threads(self.n_jobs)
        with self._progress() as clock, one_blas_thread():
            trainer = self._trainer(sizes, columns, X[learn], target, threads)
            held_out = None
            if aside is not None:
                held_out = self._held_out(target.again(y[aside], weight[aside]), X[aside])
            visits = self._visits(target.weight, rng, X.shape[0] * X.shape[1] * 4)
            recipe = self._recipe(target, rng)
            if self.optimizer == "lbfgs":
                state, history = minimize_whole(trainer, recipe, state, held_out, clock)
            else:
                first = state
                state, history = train(trainer, visits, recipe, first, held_out, clock)
                # The last step may have gone too far, and without its dropped units a network is larger than it ever was.
                long = recipe.dropout > 0 or float(np.abs(state.weights).max(initial=0.0)) > LONG
                if (history.ran_away or long) and not _speaks(trainer, state, target.unit):
                    state = first
                    history.note = (
                        f"Training ran away by epoch {len(history.loss)} and went back to the weights it began with: "
                        "give a smaller learning_rate or dropout, or clip gradients."
                    )
                    history.ran_away = True
            self._keep(sizes, columns, target, state)
            self._remember(history, target)
            self._judge(trainer, X[learn], target, state, sizes, history, clock)
        self._generator = None

    def _train_once(self, X: Matrix, y: Array, weight: Array, loss: Loss) -> None:
        """One pass over checked arrays, from where the network stands."""
        first = not hasattr(self, "coefs_")
        if first:
            target, columns = Target.of(loss, y, weight, bool(self.standardize_target)), self._scaling(X, weight)
        else:
            target, columns = self._again(loss, y, weight), Columns(self.mean_, self.scale_)
        if getattr(self, "_generator", None) is None:
            self._generator = np.random.default_rng(self._seed())
        sizes = (X.shape[1], *check_hidden(self.hidden), target.n_scores)
        state = self._first(sizes, target, self._generator) if first else self._same_layers(sizes)
        with progress(0, type(self).__name__) as clock, one_blas_thread():
            trainer = self._trainer(sizes, columns, X, target, n_threads(self.n_jobs))
            visits = self._visits(weight, self._generator)
            before = 0 if first else len(self.loss_curve_)
            recipe = replace(
                self._recipe(target, self._generator),
                max_epochs=1,
                before=before,
                horizon=int(self.max_iter),
                visited=0 if first else getattr(self, "_visited", 0),  # files of old have none
            )
            state, history = train(trainer, visits, recipe, state, None, clock)
        self._keep(sizes, columns, target, state)
        self._moments = (state.first, state.second, state.steps)
        known: dict[str, list[float]] = {} if first else self.history_
        self._remember(history, target)
        for name in ("loss", "learning_rate"):
            self.history_[name] = [*known.get(name, []), *self.history_[name]]
        self.loss_curve_ = self.history_["loss"]
        self.n_iter_ = self.best_epoch_ = len(self.loss_curve_)
        self._certify(partial_certificate(self.n_iter_, clock))

    def _progress(self) -> AbstractContextManager[Progress]:
        return progress(self.verbose, type(self).__name__)

    def _check_whole(self) -> None:
        """L-BFGS compares values of one objective, and so takes no draws."""
        drawn = [name for name in ("dropout", "input_noise", "adversarial_eps") if getattr(self, name) > 0]
        if self.optimizer == "lbfgs" and drawn:
            raise ValueError(f"optimizer='lbfgs' minimizes an objective that stays the same: {drawn[0]} must be 0.")

    def _arranged(self, X: Matrix, y: Array) -> Array | None:
        """An order of the rows by which the order in which they were given does not matter."""
        return _order(X, y) if self.shuffle else None

    def _visits(self, weight: Array, rng: np.random.Generator, size: int = 0) -> Visits:
        """The rows of one epoch after the other."""
        return Visits(weight, bool(self.shuffle), rng, size)

    def _held_out(self, target: Target, X: Matrix) -> Any:
        """Loss and score of rows set aside, as the trainer stands."""

        def judge(trainer: Any) -> tuple[float, float | None]:
            scores = trainer.scores(X)
            return target.mean(scores), None if self.scoring == "loss" else self._score(target, scores)

        return judge

    def _score(self, target: Target, scores: Array) -> float:
        raise TypeError(f"{type(self).__name__} must say how it is scored.")

    def _parted(self, X: Matrix, y: Array) -> tuple[Any, Any]:
        """Rows to learn from, and rows set aside for early stopping or None."""
        if not self.early_stopping:
            return slice(None), None
        aside = validation_rows(X, np.zeros(X.shape[0]), float(self.validation_fraction))
        if aside is None or not aside.any() or aside.all():
            raise ValueError(
                f"early_stopping sets rows aside, and X has too few distinct rows ({X.shape[0]} rows) for "
                f"validation_fraction={self.validation_fraction}."
            )
        return ~aside, aside

    def _units(self, X: Matrix, y: Array, weight: Array, loss: Loss) -> tuple[Target, Columns]:
        """Targets and columns in the units the network learns in; a warm start keeps those it began with."""
        if self._goes_on():
            return self._again(loss, y, weight), Columns(self.mean_, self.scale_)
        return Target.of(loss, y, weight, bool(self.standardize_target)), self._scaling(X, weight)

    def _again(self, loss: Loss, y: Array, weight: Array) -> Target:
        """Other targets in the units of the fitted network."""
        found, scores = loss.n_scores(y), self._offset.shape[0]
        if found != scores:
            raise ValueError(
                f"The fitted network has a score for each target or class, {scores} of them, and y asks for {found}: give the "
                "targets or classes that it began with, or fit anew with warm_start=False."
            )
        if self._unit != 1.0 and loss.rescaled(self._unit) is None:
            raise ValueError(
                f"The fitted network learned y in units of {self._unit:.4g}, in which {loss!r} has no meaning: set loss back to "
                f"{self._loss!r}, or fit anew with warm_start=False."
            )
        return Target.in_units(loss, y, weight, self._unit, self._offset)

    def _goes_on(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "coefs_")

    def _continued(self, sizes: tuple[int, ...]) -> State | None:
        """The state that a warm start goes on from."""
        return self._same_layers(sizes) if self._goes_on() else None

    def _same_layers(self, sizes: tuple[int, ...]) -> State:
        """Where the fitted network stands, if it has these layers."""
        before = (self.coefs_[0].shape[0], *(coef.shape[1] for coef in self.coefs_))
        if before != sizes:
            raise ValueError(
                f"warm_start and partial_fit continue a network of layers {before}; hidden, X and y now ask for {sizes}: "
                "fit anew with warm_start=False."
            )
        last = self.coefs_[-1] / self._unit, self.intercepts_[-1] / self._unit - self._offset
        weights = flat(
            [*self.coefs_[:-1], last[0]],
            [*self.intercepts_[:-1], last[1]],
            self._leaks(),
            self._kind(self._in_double()),
        )
        if self._moments is None or adaptive(getattr(self, "_stepped_by", self.optimizer)) != adaptive(self.optimizer):
            return State.start(weights)  # what one optimizer remembers means nothing to another
        first, second, steps = self._moments
        return State(weights, first.astype(weights.dtype), second.astype(weights.dtype), steps)

    def _in_double(self) -> bool:
        """Whether the next training is in double precision; of a fitted network `_double` says whether the last one was."""
        return self.optimizer == "lbfgs" or self.dtype == "float64"

    @staticmethod
    def _kind(double: bool) -> Any:
        return np.float64 if double else np.float32

    def _first(self, sizes: tuple[int, ...], target: Target, rng: np.random.Generator) -> State:
        """Weights before the first step; scores of several classes begin at the shares of the classes, and a y that is constant
        at that constant.
        """
        leak = float(self.leak) if self.activation == "prelu" else None
        weights = initial(sizes, self.init, float(self.bias_init), rng, leak, self._kind(self._in_double()))
        if target.inner.coupled and self.standardize_target:
            parts(sizes, weights)[1][-1][:] = np.clip(target.constant, -10.0, 10.0)
        elif self.standardize_target and (target.y == target.y[:1]).all():
            parts(sizes, weights)[0][-1][:] = 0.0
        return State.start(weights)

    def _recipe(self, target: Target, rng: np.random.Generator) -> Recipe:
        if self.adversarial_eps > 0 and not target.form:
            raise ValueError(f"adversarial_eps needs a loss with a native kernel; {target.loss!r} has none.")
        scale = target.scale if self.scoring == "loss" or not self.early_stopping else 1.0
        return Recipe(
            self.optimizer,
            float(self.learning_rate),
            self.schedule,
            float(self.momentum),
            (float(self.beta1), float(self.beta2)),
            float(self.epsilon),
            float(self.alpha),
            int(self.batch_size),
            float(self.dropout),
            float(self.input_noise),
            float(self.adversarial_eps),
            0.0 if self.clip is None else float(self.clip),
            int(self.max_iter),
            int(self.n_iter_no_change),
            float(self.tol) * (scale if np.isfinite(scale) else 0.0),
            int(rng.integers(2**63)),
            float(self.power_t),
        )

    def _trainer(self, sizes: tuple[int, ...], columns: Columns, X: Matrix, target: Target, threads: int) -> Any:
        """The epochs on the processor, or on a GPU."""
        if self._in_double():
            if self.device == "cuda":
                raise ValueError(
                    "device='cuda' trains in single precision and by batches: "
                    "dtype='float64' and optimizer='lbfgs' need device='cpu'."
                )
            return DoubleTrainer(sizes, self.activation, float(self.leak), columns, X, target)
        if self.device == "cuda":
            return CudaTrainer(import_torch(), sizes, self.activation, float(self.leak), columns, X, target)
        return Trainer(sizes, self.activation, float(self.leak), columns, X, target, threads)

    def _keep(self, sizes: tuple[int, ...], columns: Columns, target: Target, state: State) -> None:
        """Fitted attributes from a state: the last layer in the unit of y and in double precision."""
        coefs, intercepts = parts(sizes, state.weights)
        self.coefs_ = [*(coef.copy() for coef in coefs[:-1]), coefs[-1].astype(np.float64) * target.unit]
        last = (intercepts[-1].astype(np.float64) + target.offset) * target.unit
        self.intercepts_ = [*(intercept.copy() for intercept in intercepts[:-1]), last]
        self.leaks_ = [slopes.copy() for slopes in leaks(sizes, state.weights)]
        self.mean_, self.scale_ = columns.mean, columns.scale
        self._loss, self._unit, self._offset = target.loss, target.unit, target.offset
        self._several = target.inner.coupled or target.y.ndim == 2
        self._double, self._stepped_by = self._in_double(), self.optimizer
        self._moments = (state.first, state.second, state.steps) if self.warm_start else None

    def _remember(self, history: History, target: Target) -> None:
        self.n_iter_, self.best_epoch_ = len(history.loss), history.best
        with np.errstate(over="ignore"):
            curves = {
                name: [float(min(value * target.factor, np.finfo(float).max)) for value in values]
                for name, values in (("loss", history.loss), ("validation_loss", history.validation))
            }
        self.history_ = {**curves, "learning_rate": history.rate}
        if history.score:
            self.history_["validation_score"] = history.score
        self._settled, self._ran_away, self._visited = history.settled, history.ran_away, history.visited
        self.loss_curve_ = curves["loss"]
        if history.note:
            warnings.warn(f"{type(self).__name__}: {history.note}", ConvergenceWarning, stacklevel=4)

    def _judge(
        self,
        trainer: Any,
        X: Matrix,
        target: Target,
        state: State,
        sizes: tuple[int, ...],
        history: History,
        clock: Progress,
    ) -> None:
        """The certificate, after the output layer was polished if that was asked for."""
        trainer.load(state)
        if self.polish:
            features = self._features(X, len(sizes) - 2).astype(np.float64)
            self.coefs_[-1], self.intercepts_[-1], found = best_output_layer(
                features, target, float(self.alpha), float(self.tol), n_threads(self.n_jobs), clock
            )
        else:
            found = evidence(trainer, target, state, sizes, float(self.alpha), history, clock)
        self._certify(found)

    def _seed(self) -> Array:
        return np.asarray(check_random_state(self.random_state).randint(2**31 - 1, size=4))

    # Outputs

    def _network(self) -> tuple[native.Network, Columns]:
        """The native network of the fitted hidden layers."""
        sizes = [self.coefs_[0].shape[0], *(coef.shape[1] for coef in self.coefs_)]
        net = native.network(sizes, self.activation, float(self.leak))
        # The output layer is applied in double precision: in the unit of y it may be beyond single precision.
        last = np.zeros_like(self.coefs_[-1]), np.zeros_like(self.intercepts_[-1])
        net.load("weights", flat([*self.coefs_[:-1], last[0]], [*self.intercepts_[:-1], last[1]], self._leaks()))
        return net, Columns(self.mean_, self.scale_)

    def _leaks(self) -> list[Array]:
        """Learned slopes below zero, which only units that learn them have."""
        slopes: list[Array] = getattr(self, "leaks_", [])  # files of old have none
        if bool(slopes) != (self.activation == "prelu" and len(self.coefs_) > 1):
            raise ValueError(
                f"activation={self.activation!r} is not that of the fitted network, whose units "
                f"{'learned' if slopes else 'did not learn'} their slopes below zero: set it back, or fit anew with "
                "warm_start=False."
            )
        return slopes

    def _features(self, X: Matrix, layer: int) -> Array:
        if getattr(self, "_double", False):
            return self._double_features(X, layer)
        net, columns = self._network()
        width = self.coefs_[layer - 1].shape[1] if layer else self.coefs_[0].shape[0]
        return layer_output(net, columns.seen(X), layer, width, n_threads(self.n_jobs))

    def _double_features(self, X: Matrix, layer: int) -> Array:
        X = X.tocsr() if is_sparse(X) else X
        columns, sizes = Columns(self.mean_, self.scale_), [self.coefs_[0].shape[0], *(c.shape[1] for c in self.coefs_)]
        net = DoubleNetwork(sizes, self.activation, float(self.leak))
        weights = flat(self.coefs_, self.intercepts_, self._leaks(), np.float64)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            blocks = [
                net.outputs(weights, columns.scaled(X[start : start + BLOCK], np.float64), layer)
                for start in range(0, X.shape[0], BLOCK)
            ]
        return np.concatenate(blocks)

    def features(self, X: Any, layer: int | None = None) -> Array:
        """What the units of a hidden layer make of rows: learned features.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.
        layer : int, optional
            From 1, the first hidden layer; the last one by default.

        Returns
        -------
        array of shape (n_samples, n_units)
        """
        check_is_fitted(self)
        last = len(self.coefs_) - 1
        chosen = last if layer is None else layer
        if not (isinstance(chosen, (int, np.integer)) and 0 <= chosen <= last) or isinstance(chosen, bool):
            raise ValueError(
                f"layer must be an integer from 0 (the columns) to {last}, the last hidden layer; got {layer!r}."
            )
        return self._features(self._checked(X), int(chosen))

    def _scores(self, X: Any) -> Array:
        """Scores of rows in the units of y, shape (n, K), in the type of X."""
        check_is_fitted(self)
        X = self._checked(X)
        features = self._features(X, len(self.coefs_) - 1).astype(np.float64)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            scores = features @ self.coefs_[-1] + self.intercepts_[-1]
            if not np.isfinite(scores).all():  # parts of a sum may be beyond the range where it is not
                scores = (features @ (self.coefs_[-1] / self._unit) + self.intercepts_[-1] / self._unit) * self._unit
        return np.asarray(scores.astype(X.dtype, copy=False))


def _order(X: Matrix, y: Array) -> Array | None:
    """An order by content, if that is cheap: by X, and where rows are equal by rising y, which no change of its unit disturbs."""
    entries = X.nnz if is_sparse(X) else X.size
    if entries > CONTENT_LIMIT:
        return None
    codes = row_codes(X, np.zeros(X.shape[0]))
    return np.lexsort((*np.atleast_2d(y.T), codes))


def takes_steps(network: Any) -> bool:
    """Whether a network can go on with other rows."""
    if network.optimizer == "lbfgs":
        raise AttributeError(
            "partial_fit takes steps on rows, and optimizer='lbfgs' takes none: choose another optimizer."
        )
    return True


def _speaks(trainer: Any, state: State, unit: float) -> bool:
    """Whether what a network says of the rows it learned from are numbers, in the unit of y too."""
    trainer.load(state)
    with np.errstate(over="ignore"):
        return bool(np.isfinite(trainer.scores().astype(np.float64) * unit).all())
