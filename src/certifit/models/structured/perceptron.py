"""Structured perceptron: after a mistake, towards the right labelling and away from the predicted one.

    ŷ = argmax_y score(x_i, y);      if ŷ ≠ y_i:   w ← w + ψ(x_i, y_i) − ψ(x_i, ŷ)

The average of w over all visits predicts better than the last w (Collins 2002). When some weights separate all
sequences, the number of mistakes is bounded as for Rosenblatt's perceptron, and a pass without a mistake ends the fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

import certifit._native.chain as native
from certifit._types import Array
from certifit.certificate import Certificate
from certifit.models.structured.base import FeatureModel, SequenceData
from certifit.optimization.chain.shape import ChainShape, native_sequences
from certifit.optimization.stochastic.descent import Visits
from certifit.parameters import MAX_EPOCHS, RANDOM_STATE, SHUFFLE, Fitted, Flag, Parameter
from certifit.progress import progress
from certifit.threads import n_threads

__all__ = ["StructuredPerceptron"]


class StructuredPerceptron(FeatureModel):
    """Averaged structured perceptron on chains of labels.

    Weights count visits. If the kept weights make no mistake on the training data, they are their own proof; otherwise
    nothing is claimed.

    Examples
    --------
    >>> from certifit import StructuredPerceptron
    >>> X, y = [["the", "dog", "barks"], ["dogs", "bark"]], [["D", "N", "V"], ["N", "V"]]
    >>> model = StructuredPerceptron(random_state=0).fit(X, y)
    >>> model.mistakes_, model.certificate_.kind
    (array([2., 2., 0.]), 'witness')
    """

    averaged: bool = Parameter(True, Flag(), "Whether to keep the average of the weights over all visits.")
    max_iter: int = MAX_EPOCHS.but(20, text="Most passes over the sequences.")
    shuffle: bool = SHUFFLE.but(text="Whether each pass visits the sequences in a new random order.")
    random_state: Any = RANDOM_STATE.but(0, text="Draws the order of the sequences.")

    n_iter_: int = Fitted("int", "Passes over the sequences.")
    mistakes_: Array = Fitted("array of shape (n_iter_,)", "Wrong positions in each pass, while it learned.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, lengths: Any = None) -> StructuredPerceptron:
        """Fit the model.

        Parameters
        ----------
        sample_weight : array of shape (n_sequences,), optional
            How often each sequence is visited in a pass; 0 drops it.
        """
        self._check()
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        data = self._fit_data(X, y, sample_weight, lengths)
        shape = ChainShape(
            self.classes_.shape[0], data.positions.n_features, data.positions.n_markov, self.allowed_, self._free()
        )
        w, late, visited = np.zeros(shape.size), np.zeros(shape.size), 1.0
        visits = Visits(data.weight, bool(self.shuffle), rng)
        sequences, wrong = native_sequences(data.positions), []
        with progress(int(self.verbose), "StructuredPerceptron") as clock:
            for epoch in range(int(self.max_iter)):
                positions, _, visited = native.perceptron(
                    sequences, shape.native, data.y, visits.next(), w, late, shape.fixed, visited
                )
                wrong.append(positions)
                clock.update(epoch + 1, int(self.max_iter), positions / data.positions.n_positions)
                if positions == 0.0:
                    break
            seconds = clock.seconds
        self._keep(shape, w - late / visited if self.averaged else w)
        self.n_iter_, self.mistakes_ = len(wrong), np.array(wrong)
        self._certify(self._certificate(data, shape, seconds))
        return self

    def _certificate(self, data: SequenceData, shape: ChainShape, seconds: float) -> Certificate:
        """The share of wrong training positions: none is a witness that the sequences can be separated."""
        path, best = np.empty(data.positions.n_positions, dtype=np.int32), np.empty(data.positions.n_sequences)
        kept, w = self._scores()
        native.infer(
            native_sequences(data.positions), kept.native, w, path=path, best=best, threads=n_threads(self.n_jobs)
        )
        mass = data.position_weight / data.position_weight.sum()
        error = float(mass @ (path != data.y))
        constant = 1.0 - float(np.bincount(data.y, weights=mass, minlength=shape.labels).max())
        if error > 0.0:
            note = f"{100 * error:.2g} % of the training positions are wrong; no separating weights were found."
            return Certificate.absent(error, note, scale=constant, iterations=self.n_iter_, seconds=seconds)
        note = "The weights separate the training sequences."
        return Certificate.exact(0.0, note, kind="witness", iterations=self.n_iter_, seconds=seconds)
