"""Hidden Markov model with known states: the generative baseline of sequence labelling.

    P(x, y) = P(y_1 | start) Π_t P(y_t | y_{t−1}) P(x_t | y_t) · P(end | y_T)

Every factor is a smoothed count: (count + smoothing) / (total + smoothing · outcomes), the mode of the posterior under
a Dirichlet prior. So counting minimizes the objective of the certificate exactly,

    Σ_i p_i (−log P(x_i, y_i)) − (1/Σ s) Σ_factors a · log P,

with the pseudo-counts a of the prior: the smoothing, and for unseen symbols also the counts of the rare ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.models.structured.base import ProbabilisticMixin, SequenceData, SequenceModel
from certifit.optimization.chain.shape import ChainShape
from certifit.parameters import Fitted, Parameter, Real
from certifit.progress import Progress
from certifit.representation.sequences.encoder import sequence_parts
from certifit.representation.sequences.positions import Positions, SparseRows

__all__ = ["HMM"]


class HMM(ProbabilisticMixin, SequenceModel):
    """Hidden Markov model fitted to labelled sequences, by counting.

    Tokens are symbols: text or whole numbers. A symbol that was not seen has the probability of symbols that were seen
    once, label by label, since new words are like rare words. Weights are counts.

    Examples
    --------
    >>> from certifit import HMM
    >>> X = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["dogs", "bark"], ["the", "cat", "barks"]]
    >>> y = [["D", "N", "V"], ["D", "N", "V"], ["N", "V"], ["D", "N", "V"]]
    >>> model = HMM().fit(X, y)
    >>> model.predict([["a", "mouse", "sleeps"]]), model.certificate_.certified
    ([['D', 'N', 'V']], True)
    """

    weights_are_counts = True

    smoothing: float = Parameter(0.1, Real(0, open_low=True), "Added to every count.")

    symbols_: list[Any] = Fitted("list", "The symbols that were seen.")
    emission_: Array = Fitted(
        "array of shape (n_symbols + 1, n_labels)", "log P(symbol | label); the last row is that of unseen symbols."
    )
    transition_: Array = Fitted("array of shape (n_labels, n_labels)", "log P(next label j | label i).")
    start_: Array = Fitted("array of shape (n_labels,)", "log P(first label).")
    end_: Array = Fitted("array of shape (n_labels,)", "log P(end | label).")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, lengths: Any = None) -> HMM:
        """Count.

        Parameters
        ----------
        X : list of sequences of symbols
            Text or whole numbers; or one array of whole numbers with `lengths`.
        y, lengths
            Labels, as in `LinearChainCRF.fit`.
        sample_weight : array of shape (n_sequences,), optional
            A weight of 2 counts a sequence twice, a weight of 0 drops it.
        """
        self._check()
        clock = Progress()
        self.symbols_ = []
        tokens, offset = _symbols(X, lengths)
        index: dict[Any, int] = {}
        codes = np.fromiter((index.setdefault(token, len(index)) for token in tokens), np.int64, len(tokens))
        data = self._labelled(_one_symbol(codes, offset, len(index)), y, sample_weight, lengths is not None)
        held = np.unique(data.positions.sparse.feature)  # symbols of sequences with weight
        symbols = list(index)
        self.symbols_ = [symbols[k] for k in held.tolist()]
        prior = self._count(data, np.searchsorted(held, data.positions.sparse.feature), held.shape[0])
        self._certify(self._certificate(data, prior, clock.seconds))
        return self

    def _count(self, data: SequenceData, symbol: Array, n_symbols: int) -> float:
        """The shares of the counts; minus the logarithm of the prior there, for each sequence."""
        K, s = self.classes_.shape[0], float(self.smoothing)
        weight = np.repeat(data.weight, data.positions.lengths)
        parent, begin = data.positions.parents(), np.repeat(data.positions.offset[:-1], data.positions.lengths)
        inner = parent >= 0
        last = np.zeros(parent.shape[0], dtype=bool)
        last[data.positions.offset[1:] - 1] = True
        steps = np.zeros((K + 1, K + 1))  # row and column K: the boundary
        np.add.at(steps, (np.where(inner, data.y[np.maximum(begin + parent, 0)], K), data.y), weight)
        np.add.at(steps, (data.y[last], np.full(int(last.sum()), K)), weight[last])
        steps = np.where(self.allowed_, steps + s, 0.0)
        steps[K, K] = 0.0
        with np.errstate(divide="ignore"):
            logs = np.log(steps / steps.sum(axis=1, keepdims=True))
        self.transition_, self.start_, self.end_ = logs[:K, :K].copy(), logs[K, :K].copy(), logs[:K, K].copy()
        counts = np.zeros((n_symbols, K))
        np.add.at(counts, (symbol, data.y), weight)
        total = counts.sum(axis=1)
        rare = counts[total <= max(1.0, float(total.min()))].sum(axis=0)
        table = np.vstack([counts, rare]) + s
        self.emission_ = np.log(table / table.sum(axis=0))
        known = s * (logs[np.isfinite(logs)].sum() + self.emission_.sum()) + rare @ self.emission_[-1]
        return -float(known) / float(data.weight.sum())

    def _certificate(self, data: SequenceData, prior: float, seconds: float) -> Certificate:
        """Counting minimizes the objective exactly."""
        score = np.empty(data.positions.n_sequences)
        positions = self._numbered(data.positions)
        self._infer(positions, y=data.y, score=score)
        objective = float(-(data.p @ score)) + prior
        return Certificate.exact(objective, "", seconds=seconds)

    def _numbered(self, positions: Positions) -> Positions:
        """Positions of a fit with the numbers of the symbols that were kept."""
        held = np.unique(positions.sparse.feature)
        return _one_symbol(np.searchsorted(held, positions.sparse.feature), positions.offset, len(self.symbols_) + 1)

    def _positions(self, X: Any, lengths: Any = None, parents: Any = None) -> Positions:
        tokens, offset = _symbols(X, lengths)
        if tokens and isinstance(tokens[0], str) != isinstance(self.symbols_[0], str):
            kinds = ("text", "whole numbers") if isinstance(tokens[0], str) else ("whole numbers", "text")
            raise ValueError(f"X holds symbols that are {kinds[0]}, but the model was fitted on {kinds[1]}.")
        index, unseen = {symbol: k for k, symbol in enumerate(self.symbols_)}, len(self.symbols_)
        codes = np.fromiter((index.get(token, unseen) for token in tokens), np.int64, len(tokens))
        return _one_symbol(codes, offset, unseen + 1)

    def _scores(self) -> tuple[ChainShape, Array]:
        K = self.classes_.shape[0]
        parts = [np.where(np.isfinite(x), x, 0.0).ravel() for x in (self.transition_, self.start_, self.end_)]
        shape = ChainShape(K, self.emission_.shape[0], 0, self.allowed_, np.ones(K * K + 2 * K, dtype=bool))
        return shape, np.concatenate([self.emission_.ravel(), *parts])

    def log_evidence(self, X: Any, lengths: Any = None) -> Array:
        """log P(x) of each sequence: the probability of the symbols, whatever their labels.

        Returns
        -------
        array of shape (n_sequences,)
        """
        check_is_fitted(self)
        positions = self._positions(X, lengths)
        log_z = np.empty(positions.n_sequences)
        self._infer(positions, log_z=log_z)
        return log_z


def _symbols(X: Any, lengths: Any) -> tuple[list[Any], Array]:
    """All symbols, and where the sequences begin."""
    sequences, offset = sequence_parts(X, lengths)
    tokens = [
        token
        for sequence in sequences
        for token in (sequence.tolist() if isinstance(sequence, np.ndarray) else sequence)
    ]
    for token in tokens:
        if isinstance(token, bool) or not isinstance(token, (str, int, np.integer)):
            raise TypeError(
                f"X must hold symbols, text or whole numbers; got {token!r:.60} of type {type(token).__name__}."
            )
    return tokens, offset


def _one_symbol(codes: Array, offset: Array, width: int) -> Positions:
    rows = SparseRows(np.arange(codes.shape[0] + 1, dtype=np.int64), codes.astype(np.int32), None, width)
    return Positions(offset, rows)
