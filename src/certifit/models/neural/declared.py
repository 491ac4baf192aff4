"""The parameters and fitted attributes of every network."""

from __future__ import annotations

from typing import Any

from certifit._types import Array
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.models.neural.layers import ACTIVATIONS, INITS
from certifit.models.neural.parameters import (
    BATCH_SIZE,
    BETA,
    CATEGORIES,
    CLIP,
    EARLY_STOPPING,
    HIDDEN,
    PATIENCE,
    SHARE,
    VISITS_OF_AN_EPOCH,
)
from certifit.models.neural.training import SCHEDULES
from certifit.parameters import (
    ALPHA,
    LEARNING_RATE,
    MAX_EPOCHS,
    SHUFFLE,
    TOL,
    VALIDATION_FRACTION,
    WARM_START,
    Declared,
    Fitted,
    Flag,
    OneOf,
    Parameter,
    Real,
)

__all__ = ["NetworkParameters"]


class NetworkParameters(Declared, CertifiedEstimator, takes={"fit.sample_weight": VISITS_OF_AN_EPOCH}):
    """What a network is told, and what is told of it."""

    hidden: Any = HIDDEN
    activation: str = OneOf(
        ACTIVATIONS,
        'What a hidden unit makes of its input; a unit of "prelu" learns its own slope below zero (He et al. 2015).',
    )
    leak: float = Parameter(
        0.01, Real(0, 1), 'Slope below zero of ``activation="leaky_relu"``; that of "prelu" before the first step.'
    )
    alpha: float = ALPHA.but(1e-4, "Strength of the penalty ½‖W‖² of all weights (weight decay); biases are free.")
    optimizer: str = OneOf(
        ("adam", "adamw", "sgd", "nesterov", "lbfgs"),
        '"sgd" is with `momentum`; "adamw" shrinks the weights beside the step instead of in the gradient; "lbfgs" takes no '
        "batches but minimizes the whole objective in double precision, until no slope is greater than `tol`: for data of "
        "which that is cheap.",
    )
    learning_rate: float = LEARNING_RATE.but(1e-3, "Step size of the first epoch.")
    schedule: str = OneOf(
        SCHEDULES,
        "Step size of later epochs: the same, divided by √t, down to zero along half a cosine by `max_iter`, cut to a fifth "
        'wherever training would stop otherwise, or, for "invscaling", divided by (1 + rows visited) to the power `power_t`. '
        "A pass of `partial_fit` is an epoch.",
    )
    momentum: float = BETA.but(0.9, 'Share of the last step in the next, of "sgd" and "nesterov".')
    beta1: float = BETA
    beta2: float = BETA.but(0.999, "Memory of Adam's mean of the squared gradients.")
    epsilon: float = Parameter(1e-8, Real(0, open_low=True), "Added to Adam's root mean square.")
    batch_size: int = BATCH_SIZE
    max_iter: int = MAX_EPOCHS.but(200)
    shuffle: bool = SHUFFLE
    init: str = OneOf(
        INITS,
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
    device: str = OneOf(
        ("cpu", "cuda"),
        'Where to train: "cuda" is a GPU, through PyTorch; the model is the same up to rounding, except for what dropout draws.',
    )

    dtype: str = OneOf(
        ("float32", "float64"),
        "Precision of the hidden layers: single is trained in native code, double in NumPy, several times slower. "
        '``optimizer="lbfgs"`` is always double.',
    )
    power_t: float = Parameter(0.5, Real(0), 'The power of ``schedule="invscaling"``.')
    standardize_target: bool = Parameter(
        True,
        Flag(),
        "Whether the network learns the difference of y from its best constant, in units of the spread of y where the loss has "
        "a meaning in any unit.",
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
        "dict of lists",
        "``loss``, ``validation_loss`` and ``learning_rate`` of each epoch, and ``validation_score`` where `scoring` is one.",
    )
    loss_curve_: list[float] = Fitted("list of float", "Mean loss of each epoch, every row as it was met.")
    certificate_: Certificate = Fitted(
        "Certificate", "Objective and stationarity; after `polish`, the proof for the output layer on its features."
    )
    n_features_in_: int = Fitted("int", "Number of columns.")

    _moments: Any = Fitted()
    """The optimizer's running means and its steps, where training may go on."""
    _stepped_by: str = Fitted()
    """The optimizer that they are of."""
    _categories: Any = Fitted()
    """The columns of categories, and the categories seen in training."""
    _generator: Any = Fitted()
    """What `partial_fit` draws from."""
    _double: bool = Fitted()
    """Whether the hidden layers are of double precision."""
    _visited: int = Fitted()
    """Rows visited in training."""
    _settled: bool = Fitted()
    """Whether training ended by itself."""
    _ran_away: bool = Fitted()
    """Whether training ended because a step was too large."""
