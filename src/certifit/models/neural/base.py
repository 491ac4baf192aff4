"""What networks share: parameters, one fit, one pass of `partial_fit`, features and scores.

    f(x) = W_Lᵀ a_{L−1} + b_L,   a_l = σ(W_lᵀ a_{l−1} + b_l),   a_0 = (x − mean) / scale

    minimize    (1/Σs_i) Σ s_i · loss(y_i, f(x_i))  +  alpha · ½ Σ_l ‖W_l‖²

The weights of the penalty are those of standardized columns and of targets in their own unit, so that units do not matter.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import certifit._native.network as native
from certifit._types import Array, Matrix, is_sparse
from certifit.base import CertifiedEstimator, ConvergenceWarning
from certifit.certificate import Certificate
from certifit.data.equal_rows import CONTENT_LIMIT, row_codes
from certifit.data.gate import check_x
from certifit.evaluation.losses import Loss
from certifit.models.boosting.fit import validation_rows
from certifit.models.neural.categories import known, learned, places, weighed
from certifit.models.neural.cpu import Trainer, layer_output
from certifit.models.neural.cuda import CudaTrainer, import_torch
from certifit.models.neural.diagnostics import Diagnostics
from certifit.models.neural.evidence import evidence
from certifit.models.neural.layers import ACTIVATIONS, INITS, Columns, flat, initial, leaks, parts
from certifit.models.neural.objective import Target
from certifit.models.neural.parameters import (
    BATCH_SIZE,
    BETA,
    CATEGORIES,
    CLIP,
    EARLY_STOPPING,
    HIDDEN,
    PATIENCE,
    SHARE,
    check_hidden,
)
from certifit.models.neural.polish import best_output_layer
from certifit.models.neural.training import SCHEDULES, History, Recipe, State, train
from certifit.models.sgd.base import partial_certificate
from certifit.optimization.stochastic.descent import Visits
from certifit.parameters import (
    ALPHA,
    LEARNING_RATE,
    MAX_EPOCHS,
    SHUFFLE,
    TOL,
    VALIDATION_FRACTION,
    WARM_START,
    Choice,
    Declared,
    Fitted,
    Flag,
    Parameter,
    Real,
)
from certifit.progress import Progress, progress
from certifit.threads import n_threads, one_blas_thread

__all__ = ["BaseNetwork"]


class BaseNetwork(Diagnostics, Declared, CertifiedEstimator):
    """Layers, their training and their outputs; a subclass says what its targets are."""

    hidden: Any = HIDDEN
    activation: str = Parameter(
        "relu",
        Choice(*ACTIVATIONS),
        'What a hidden unit makes of its input; a unit of "prelu" learns its own slope below zero (He et al. 2015).',
    )
    leak: float = Parameter(
        0.01, Real(0, 1), 'Slope below zero of ``activation="leaky_relu"``; that of "prelu" before the first step.'
    )
    alpha: float = ALPHA.but(1e-4, "Strength of the penalty ½‖W‖² of all weights (weight decay); biases are free.")
    optimizer: str = Parameter(
        "adam",
        Choice("adam", "adamw", "sgd", "nesterov"),
        '"sgd" is with `momentum`; "adamw" shrinks the weights beside the step instead of in the gradient.',
    )
    learning_rate: float = LEARNING_RATE.but(1e-3, "Step size of the first epoch.")
    schedule: str = Parameter(
        "constant",
        Choice(*SCHEDULES),
        "Step size of later epochs: the same, divided by √t, down to zero along half a cosine by `max_iter`, or cut to a fifth "
        "wherever training would stop otherwise.",
    )
    momentum: float = BETA.but(0.9, 'Share of the last step in the next, of "sgd" and "nesterov".')
    beta1: float = BETA
    beta2: float = BETA.but(0.999, "Memory of Adam's mean of the squared gradients.")
    epsilon: float = Parameter(1e-8, Real(0, open_low=True), "Added to Adam's root mean square.")
    batch_size: int = BATCH_SIZE
    max_iter: int = MAX_EPOCHS.but(200)
    shuffle: bool = SHUFFLE
    init: str = Parameter(
        "glorot",
        Choice(*INITS),
        'Weights before the first step, for D inputs of a unit: "normal" N(0, 1/D), "he" N(0, 2/D), "glorot" uniform.',
    )
    bias_init: float = Parameter(
        0.0, Real(-1e6, 1e6), "Biases of hidden units before the first step; small and positive keeps ReLUs alive."
    )
    dropout: float = SHARE.but(text="Share of the hidden units that a step leaves out; the others are scaled up.")
    input_noise: float = Parameter(
        0.0, Real(0, 1e6), "Deviation of normal noise added to standardized inputs in training."
    )
    adversarial_eps: float = Parameter(
        0.0,
        Real(0),
        "Trains on rows moved by this much, in standardized units, along the sign of the slope of their loss; 0 does not.",
    )
    clip: float | None = CLIP
    standardize: bool = Parameter(True, Flag(), "Whether the network sees each column centered and scaled.")
    categorical_features: Any = CATEGORIES
    early_stopping: bool = EARLY_STOPPING
    validation_fraction: float = VALIDATION_FRACTION
    n_iter_no_change: int = PATIENCE
    tol: float = TOL.but(
        1e-4,
        "Improvement that counts, relative to the loss of the best constant; with `polish` the wanted relative gap.",
    )
    polish: bool = Parameter(
        False, Flag(), "Whether to solve the output layer on the last features to `tol`, with a proof, after training."
    )
    warm_start: bool = WARM_START
    device: str = Parameter(
        "cpu",
        Choice("cpu", "cuda"),
        'Where to train: "cuda" is a GPU, through PyTorch; the model is the same up to rounding, except for what dropout draws.',
    )

    coefs_: list[Array] = Fitted(
        "list of arrays of shape (n_in, n_out)",
        "Weights of each layer. The first is of standardized columns, with a row for each category behind them, the last in the "
        "unit of y.",
    )
    intercepts_: list[Array] = Fitted("list of arrays of shape (n_out,)", "Biases of each layer.")
    leaks_: list[Array] = Fitted(
        "list of arrays of shape (n_units,)",
        'Slopes below zero of the units of each hidden layer that ``activation="prelu"`` learned; empty otherwise.',
    )
    mean_: Array = Fitted("array of shape (n_inputs,)", "What is subtracted from each column; zero for categories.")
    scale_: Array = Fitted("array of shape (n_inputs,)", "What each column is then divided by; one for categories.")
    n_iter_: int = Fitted("int", "Epochs.")
    best_epoch_: int = Fitted("int", "The epoch whose weights were kept.")
    history_: dict[str, list[float]] = Fitted(
        "dict of lists", "``loss``, ``validation_loss`` and ``learning_rate`` of each epoch."
    )
    loss_curve_: list[float] = Fitted("list of float", "Mean loss of each epoch, every row as it was met.")
    certificate_: Certificate = Fitted(
        "Certificate", "Objective and stationarity; after `polish`, the proof for the output layer on its features."
    )
    n_features_in_: int = Fitted("int", "Number of columns.")

    _moments: Any = Fitted()
    """The optimizer's running means and its steps, where training may go on."""
    _categories: Any = Fitted()
    """The columns of categories, and the categories seen in training."""
    _generator: Any = Fitted()
    """What `partial_fit` draws from."""

    # Columns

    def _spread(self, X: Any, y: Any, sample_weight: Any, first: bool) -> tuple[Any, Any, Any, Any]:
        """Who checks the rows, and the rows, with columns of 0 and 1 for categories."""
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
        if self._categories is None:
            return {}
        return {
            j: dict(zip(self._categories.levels[j], self.coefs_[0][rows], strict=True))
            for j, rows in places(self._categories, self.n_features_in_).items()
        }

    # Training

    def _train(self, X: Matrix, y: Array, weight: Array, loss: Loss, seed: Any) -> None:
        """Fit checked arrays."""
        X = X.tocsr() if is_sparse(X) else X
        if self.shuffle and (order := _order(X, y)) is not None:
            X, y, weight = X[order], y[order], weight[order]
        aside = self._aside(X, y)
        learn = slice(None) if aside is None else ~aside
        target, columns = self._units(X[learn], y[learn], weight[learn], loss)
        rng = np.random.default_rng(seed)
        sizes = (X.shape[1], *check_hidden(self.hidden), target.n_scores)
        state = self._continued(sizes) or self._first(sizes, target, rng)
        threads = n_threads(self.n_jobs)
        with progress(self.verbose, type(self).__name__) as clock, one_blas_thread():
            trainer = self._trainer(sizes, columns, X[learn], target, threads)
            held_out = None
            if aside is not None:
                others, rows = target.again(y[aside], weight[aside]), X[aside]
                held_out = lambda trainer: others.mean(trainer.scores(rows))  # noqa: E731 - read once an epoch
            visits = Visits(target.weight, bool(self.shuffle), rng, X.shape[0] * X.shape[1] * 4)
            state, history = train(trainer, visits, self._recipe(target, rng), state, held_out, clock)
            self._keep(sizes, columns, target, state)
            self._remember(history, target)
            self._judge(trainer, X[learn], target, state, sizes, history, clock)
        self._generator = None

    def _train_once(self, X: Matrix, y: Array, weight: Array, loss: Loss) -> None:
        """One pass over checked arrays, from where the network stands."""
        first = not hasattr(self, "coefs_")
        if first:
            target, columns = Target.of(loss, y, weight), self._scaling(X, weight)
        else:
            target = Target.in_units(loss, y, weight, self._unit, self._offset)
            columns = Columns(self.mean_, self.scale_)
        if getattr(self, "_generator", None) is None:
            self._generator = np.random.default_rng(self._seed())
        sizes = (X.shape[1], *check_hidden(self.hidden), target.n_scores)
        state = self._first(sizes, target, self._generator) if first else self._same_layers(sizes)
        with progress(0, type(self).__name__) as clock, one_blas_thread():
            trainer = self._trainer(sizes, columns, X, target, n_threads(self.n_jobs))
            visits = Visits(weight, bool(self.shuffle), self._generator)
            recipe = replace(self._recipe(target, self._generator), max_epochs=1)
            state, history = train(trainer, visits, recipe, state, None, clock)
        self._keep(sizes, columns, target, state)
        self._moments = (state.first, state.second, state.steps)
        before = [] if first else self.history_["loss"]
        self._remember(history, target)
        self.loss_curve_ = self.history_["loss"] = [*before, *self.history_["loss"]]
        self.n_iter_ = self.best_epoch_ = len(self.loss_curve_)
        self._certify(partial_certificate(self.n_iter_, clock))

    def _aside(self, X: Matrix, y: Array) -> Array | None:
        """Rows for early stopping."""
        if not self.early_stopping:
            return None
        aside = validation_rows(X, np.zeros(X.shape[0]), float(self.validation_fraction))
        if aside is None or not aside.any() or aside.all():
            raise ValueError(
                f"early_stopping sets rows aside, and X has too few distinct rows ({X.shape[0]} rows) for "
                f"validation_fraction={self.validation_fraction}."
            )
        return aside

    def _units(self, X: Matrix, y: Array, weight: Array, loss: Loss) -> tuple[Target, Columns]:
        """Targets and columns in the units the network learns in; a warm start keeps those it began with."""
        if self._goes_on():
            return Target.in_units(loss, y, weight, self._unit, self._offset), Columns(self.mean_, self.scale_)
        return Target.of(loss, y, weight), self._scaling(X, weight)

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
        weights = flat([*self.coefs_[:-1], last[0]], [*self.intercepts_[:-1], last[1]], self._leaks())
        return State.start(weights) if self._moments is None else State(weights, *self._moments)

    def _first(self, sizes: tuple[int, ...], target: Target, rng: np.random.Generator) -> State:
        """Weights before the first step; scores of several classes begin at the shares of the classes."""
        leak = float(self.leak) if self.activation == "prelu" else None
        weights = initial(sizes, self.init, float(self.bias_init), rng, leak)
        if target.inner.coupled:
            parts(sizes, weights)[1][-1][:] = np.clip(target.constant, -10.0, 10.0)
        return State.start(weights)

    def _recipe(self, target: Target, rng: np.random.Generator) -> Recipe:
        if self.adversarial_eps > 0 and not target.built_in:
            raise ValueError(f"adversarial_eps needs a loss with a native kernel; {target.loss!r} has none.")
        scale = target.scale
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
        )

    def _trainer(self, sizes: tuple[int, ...], columns: Columns, X: Matrix, target: Target, threads: int) -> Any:
        """The epochs on the processor, or on a GPU."""
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
        self._moments = (state.first, state.second, state.steps) if self.warm_start else None

    def _remember(self, history: History, target: Target) -> None:
        self.n_iter_, self.best_epoch_ = len(history.loss), history.best
        with np.errstate(over="ignore"):
            curves = {
                name: [float(min(value * target.factor, np.finfo(float).max)) for value in values]
                for name, values in (("loss", history.loss), ("validation_loss", history.validation))
            }
        self.history_ = {**curves, "learning_rate": history.rate}
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
        return self.leaks_ if self.activation == "prelu" else []

    def _features(self, X: Matrix, layer: int) -> Array:
        net, columns = self._network()
        width = self.coefs_[layer - 1].shape[1] if layer else self.coefs_[0].shape[0]
        return layer_output(net, columns.seen(X), layer, width, n_threads(self.n_jobs))

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
        return np.asarray(scores.astype(X.dtype, copy=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _order(X: Matrix, y: Array) -> Array | None:
    """An order by content, if that is cheap: by X, and where rows are equal by rising y, which no change of its unit disturbs."""
    entries = X.nnz if is_sparse(X) else X.size
    if entries > CONTENT_LIMIT:
        return None
    codes = row_codes(X, np.zeros(X.shape[0]))
    return np.lexsort((*np.atleast_2d(y.T), codes))
