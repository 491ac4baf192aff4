"""What all models of sequences share: the gate, the parameters of the input, and decoding.

score(y) = Σ_t w·φ(x, t, y_t) + Σ_t A(y_{t−1}, y_t) + Σ_t v·θ(x, t, y_{t−1}, y_t) + start(y_1) + end(y_T)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import certifit._native.chain as native
from certifit._types import Array, is_sparse
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.gate import check_real, check_sample_weight
from certifit.models.structured.labels import (
    allowed_transitions,
    check_allowed,
    encode_sequences,
    flatten_labels,
    tree_of,
)
from certifit.optimization.chain.shape import ChainShape, native_sequences
from certifit.parameters.common import N_JOBS, VERBOSE
from certifit.parameters.declared import Declared, Fitted, Parameter, check_parameters
from certifit.parameters.domains import Any_, Either, Flag, Integer, Nothing
from certifit.parameters.methods import weights
from certifit.representation.sequences.encoder import MOST_FEATURES, SequenceEncoder, sequence_parts
from certifit.representation.sequences.positions import Positions
from certifit.threads import n_threads

__all__ = ["FeatureModel", "SequenceData", "SequenceModel"]


class SequenceData:
    """Validated sequences with codes of labels and weights that sum to one; sequences of weight zero are gone."""

    def __init__(self, positions: Positions, y: Array, weight: Array) -> None:
        self.positions, self.y, self.weight = positions, y, weight
        self.p = weight / weight.sum()

    @property
    def position_weight(self) -> Array:
        """The weight of every position."""
        return np.repeat(self.p, self.positions.lengths)


class SequenceModel(Declared, CertifiedEstimator):
    """Decoding and scoring by the scores that a subclass puts together."""

    takes_sequences = True
    """scikit-learn's contract is about rows of a table; these models have one of their own."""

    forbidden: Any = Parameter(
        None,
        Any_('list of pairs, "bio" or None', ("no such name", [("a",)], 3)),
        'Pairs (label, next label) that must not occur; None in a pair is the boundary of the sequence. "bio" forbids '
        "I-x after anything but B-x or I-x.",
    )
    required: Any = Parameter(
        None,
        Any_("dict or None", ("a", [1], 3)),
        "Label → the labels that may follow it, all others being forbidden; None as a label is the boundary.",
    )
    n_jobs: int | None = N_JOBS
    verbose: int = VERBOSE

    classes_: Array = Fitted("array of shape (n_labels,)", "The labels, sorted.")

    # What a subclass has to say: the sequences as positions, the shape and the parameters of the scores.
    def _positions(self, X: Any, lengths: Any = None, parents: Any = None) -> Positions:
        raise TypeError(f"{type(self).__name__} must say how sequences become positions.")

    def _scores(self) -> tuple[ChainShape, Array]:
        raise TypeError(f"{type(self).__name__} must say what its scores are.")

    def _check(self) -> int:
        """The parameters, before data is read; the number of threads."""
        check_parameters(self)
        return n_threads(self.n_jobs)

    def _labelled(self, positions: Positions, y: Any, sample_weight: Any, flat: bool) -> SequenceData:
        """Labels, weights and rules of a fit; keeps `classes_` and `allowed_`."""
        weight = check_sample_weight(sample_weight, positions.n_sequences)
        labels = flatten_labels(y, positions.offset, flat)
        kept = weight > 0
        if not kept.all():
            labels = labels[np.repeat(kept, positions.lengths)]
            positions, weight = positions.take(np.flatnonzero(kept)), weight[kept]
        self.classes_ = np.unique(labels)
        if self.classes_.shape[0] < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 labels, but y has one label only: {self.classes_.tolist()[0]!r}. "
                "(Sequences of weight zero do not count.)"
            )
        self.allowed_ = allowed_transitions(self.forbidden, self.required, self.classes_)
        codes = encode_sequences(labels, self.classes_)
        check_allowed(codes, positions.parents(), positions.offset, self.allowed_, self.classes_)
        return SequenceData(positions, codes, weight)

    def _given(self, positions: Positions, shape: ChainShape, w: Array) -> tuple[Any, Any]:
        """The kernel's view of new sequences."""
        if positions.dense is None:
            return native_sequences(positions), shape
        return native_sequences(positions, np.ascontiguousarray(positions.dense @ shape.dense_weights(w))), shape

    def _infer(self, positions: Positions, **wanted: Any) -> None:
        shape, w = self._scores()
        sequences, shape = self._given(positions, shape, w)
        native.infer(sequences, shape.native, w, **wanted, threads=n_threads(self.n_jobs))
        if positions.parent is not None:  # the rules leave a labelling to chains of every length, but not to every tree
            for total in (wanted[name] for name in ("log_z", "best") if name in wanted):
                if np.isneginf(total).any():
                    at = int(np.flatnonzero(np.isneginf(total))[0])
                    raise ValueError(
                        f"parents[{at}] is a tree whose labels forbidden and required all exclude: allow more transitions."
                    )

    def _read(self, X: Any, lengths: Any, parents: Any) -> tuple[Positions, bool]:
        check_is_fitted(self)
        return self._positions(X, lengths, parents), lengths is not None

    def _as_labels(self, positions: Positions, codes: Array, flat: bool) -> Any:
        labels = self.classes_[codes]
        return labels if flat else [one.tolist() for one in positions.each(labels)]

    def _viterbi(self, positions: Positions) -> tuple[Array, Array]:
        path, best = np.empty(positions.n_positions, dtype=np.int32), np.empty(positions.n_sequences)
        self._infer(positions, path=path, best=best)
        return path, best

    def _predict(self, X: Any, lengths: Any, parents: Any) -> Any:
        positions, flat = self._read(X, lengths, parents)
        return self._as_labels(positions, self._viterbi(positions)[0], flat)

    def _accuracy(self, X: Any, y: Any, sample_weight: Any, lengths: Any, parents: Any) -> float:
        positions, flat = self._read(X, lengths, parents)
        labels = flatten_labels(y, positions.offset, flat)
        weight = np.repeat(check_sample_weight(sample_weight, positions.n_sequences), positions.lengths)
        right = self.classes_[self._viterbi(positions)[0]] == labels
        return float(weight @ right / weight.sum())

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The best labelling of each sequence (Viterbi).

        Parameters
        ----------
        X : list of sequences, or a matrix with `lengths`
            As in `fit`.
        lengths : array of int, optional
            Lengths of the sequences in one matrix.

        Returns
        -------
        list of lists of labels, or an array with `lengths`
        """
        return self._predict(X, lengths, None)

    def predict_best(self, X: Any, n: int = 5, lengths: Any = None) -> list[list[tuple[list[Any], float]]]:
        """The n best labellings of each sequence, with their scores, best first.

        Parameters
        ----------
        X, lengths
            As in `predict`.
        n : int, default=5
            How many; fewer are given where fewer exist.

        Returns
        -------
        list of lists of pairs (labels, score)
        """
        count = int(check_real("n", n, low=1, integer=True))
        positions, _ = self._read(X, lengths, None)
        shape, w = self._scores()
        sequences, shape = self._given(positions, shape, w)
        out = []
        for i, length in enumerate(positions.lengths.tolist()):
            paths, scores = np.empty((count, length), dtype=np.int32), np.empty(count)
            found = native.best_paths(sequences, shape.native, w, i, paths, scores)
            out.append([(self.classes_[paths[k]].tolist(), float(scores[k])) for k in range(found)])
        return out

    def score(self, X: Any, y: Any, sample_weight: Any = None, lengths: Any = None) -> float:
        """Share of the positions whose label is predicted right.

        Parameters
        ----------
        X, y, lengths
            As in `fit`.
        sample_weight : array of shape (n_sequences,), optional
            How often each sequence counts.
        """
        return self._accuracy(X, y, sample_weight, lengths, None)


class ProbabilisticMixin(Declared, takes={"X": "X, lengths\n    As in `predict`."}):
    """Probabilities of labels and of whole labellings."""

    def _marginals(self: Any, positions: Positions) -> tuple[Array, Array]:
        log_z = np.empty(positions.n_sequences)
        marginals = np.empty((positions.n_positions, self.classes_.shape[0]))
        self._infer(positions, log_z=log_z, marginals=marginals)
        return log_z, marginals

    def _log_likelihood(self: Any, X: Any, y: Any, lengths: Any, parents: Any) -> Array:
        positions, flat = self._read(X, lengths, parents)
        codes = encode_sequences(flatten_labels(y, positions.offset, flat), self.classes_)
        log_z, score = np.empty(positions.n_sequences), np.empty(positions.n_sequences)
        self._infer(positions, log_z=log_z, y=codes, score=score)
        return np.minimum(score - log_z, 0.0)

    def _predict_marginals(self: Any, X: Any, lengths: Any, parents: Any) -> Any:
        positions, flat = self._read(X, lengths, parents)
        marginals = self._marginals(positions)[1]
        return marginals if flat else positions.each(marginals)

    def _predict_posterior(self: Any, X: Any, lengths: Any, parents: Any) -> Any:
        positions, flat = self._read(X, lengths, parents)
        return self._as_labels(positions, self._marginals(positions)[1].argmax(axis=1), flat)

    def predict_marginals(self, X: Any, lengths: Any = None) -> Any:
        """Probability of each label at each position, given the whole sequence.

        Returns
        -------
        list of arrays of shape (length, n_labels), or one array with `lengths`
        """
        return self._predict_marginals(X, lengths, None)

    def predict_posterior(self, X: Any, lengths: Any = None) -> Any:
        """The most probable label of each position by itself: errs least often, but may join labels that never meet.

        Returns
        -------
        list of lists of labels, or an array with `lengths`
        """
        return self._predict_posterior(X, lengths, None)

    def log_likelihood(self, X: Any, y: Any, lengths: Any = None) -> Array:
        """Logarithm of the probability of the given labels of each sequence.

        Parameters
        ----------
        X, y, lengths
            As in `fit`.

        Returns
        -------
        array of shape (n_sequences,)
        """
        return self._log_likelihood(X, y, lengths, None)


SEQUENCES = "X, y, lengths\n    Sequences and their labels, as in `LinearChainCRF.fit`."
TWICE = weights("A weight of 2 counts a sequence twice, a weight of 0 drops it.", "n_sequences")


class FeatureModel(SequenceModel, takes={"fit.X": SEQUENCES, "fit.sample_weight": TWICE}):
    """Models that are linear in features of the input."""

    features: Any = Parameter(
        None,
        Any_("list of templates, callable or None", (3, ["w"], ["w[0].nothing"], [3])),
        'For tokens that are text: templates such as "w[-1]", "w[0]|w[1]", "w[0].suffix(3)", or a function (tokens, position) → '
        "features; None takes word, affixes, shape and neighbors.",
    )
    markov: Any = Parameter(
        None,
        Any_("list, callable or None", (3, ["w"])),
        "Features of pairs of neighboring labels: templates or a function for text, names of features for mappings and lists, "
        "columns for ids and matrices. Each has a weight for every pair.",
    )
    hashing: int | None = Parameter(
        None,
        Either(Nothing(), Integer(1, MOST_FEATURES)),
        "Number of buckets for features with names, instead of a vocabulary.",
    )
    min_count: int = Parameter(1, Integer(1), "Features with names that occur less often are left out.")
    bias: bool = Parameter(
        True, Flag(), "Whether every position has a feature that is always 1; its weights are penalized too."
    )
    boundaries: bool = Parameter(
        True, Flag(), "Whether the first and the last label of a sequence have scores of their own."
    )

    encoder_: SequenceEncoder = Fitted("SequenceEncoder", "What turns sequences into features.")
    n_features_: int = Fitted("int", "Features of a position.")
    coef_: Any = Fitted("array or sparse array of shape (n_features, n_labels)", "Weights of the features.")
    markov_coef_: Any = Fitted(
        "array or sparse array of shape (n_markov_features, n_labels²), or None",
        "Weights of pairs of labels; the pair (i, j) is column i·n_labels + j.",
    )
    transition_: Array = Fitted(
        "array of shape (n_labels, n_labels)", "Score of label j after label i; −∞ where it is forbidden."
    )
    start_: Array = Fitted("array of shape (n_labels,)", "Scores of the first label.")
    end_: Array = Fitted("array of shape (n_labels,)", "Scores of the last label.")

    def _check(self) -> int:
        threads = super()._check()
        if (
            self.features is not None
            and not callable(self.features)
            and (isinstance(self.features, str) or not _listed(self.features))
        ):
            raise ValueError(f"features must be a list of templates, a function or None; got {self.features!r}.")
        if (
            self.markov is not None
            and not callable(self.markov)
            and (isinstance(self.markov, str) or not _listed(self.markov))
        ):
            raise ValueError(f"markov must be a list, a function or None; got {self.markov!r}.")
        return threads

    def _fit_positions(self, X: Any, lengths: Any, parents: Any) -> Positions:
        """Encode the sequences of a fit; keeps the encoder."""
        self.encoder_ = SequenceEncoder(self.features, self.markov, self.hashing, self.min_count, self.bias)
        return self._with_tree(self.encoder_.fit(X, lengths), parents)

    def _positions(self, X: Any, lengths: Any = None, parents: Any = None) -> Positions:
        return self._with_tree(self.encoder_.transform(X, lengths), parents)

    @staticmethod
    def _with_tree(positions: Positions, parents: Any) -> Positions:
        if parents is None:
            return positions
        parent, order = tree_of(parents, positions.offset)
        return Positions(positions.offset, positions.unary, positions.markov, parent, order)

    def _fit_data(self, X: Any, y: Any, sample_weight: Any, lengths: Any, parents: Any = None) -> SequenceData:
        """What a fit needs. The features are those of the sequences that have weight."""
        weight = None
        if sample_weight is not None:
            sequences, offset = sequence_parts(X, lengths)
            weight = check_sample_weight(sample_weight, offset.shape[0] - 1)
            kept = np.flatnonzero(weight > 0)
            if kept.shape[0] < weight.shape[0] and lengths is None:  # a dropped sequence adds no feature
                labels = flatten_labels(y, offset, False)
                y = [labels[offset[i] : offset[i + 1]] for i in kept]
                if parents is not None:
                    tree_of(parents := list(parents), offset)
                    parents = [parents[i] for i in kept]
                X, weight = [sequences[i] for i in kept], weight[kept]
            elif lengths is None:
                X = sequences
        positions = self._fit_positions(X, lengths, parents)
        return self._labelled(positions, y, weight, lengths is not None)

    def _free(self) -> Array:
        """Which transitions and boundaries are learned: those that are allowed."""
        K = self.classes_.shape[0]
        ends = np.full(K, bool(self.boundaries))
        return np.concatenate([self.allowed_[:K, :K].ravel(), ends & self.allowed_[K, :K], ends & self.allowed_[:K, K]])

    def _keep(self, shape: ChainShape, w: Array) -> None:
        """Fitted attributes from the parameter vector."""
        K = shape.labels
        _, _, transition, start, end = shape.split(w)
        self.coef_ = shape.weights(w).copy()
        self.markov_coef_ = shape.markov_weights(w).copy() if shape.markov else None
        self.transition_ = np.where(self.allowed_[:K, :K], transition, -np.inf)
        self.start_ = np.where(self.allowed_[K, :K], start, -np.inf)
        self.end_ = np.where(self.allowed_[:K, K], end, -np.inf)
        self.n_features_ = shape.features

    def _keep_proven(
        self, shape: ChainShape, found: Any, kind: str, unit: float, iterations: int, seconds: float
    ) -> None:
        """Keep what a solver found and its proof."""
        self._keep(shape, found.w)
        proof = {"objective": found.objective, "bound": found.bound, "scale": unit, "tol": float(self.tol)}
        self._certify(Certificate(kind, **proof, iterations=iterations, seconds=seconds))

    def _scores(self) -> tuple[ChainShape, Array]:
        """The parameter vector back from the fitted attributes."""
        from certifit.optimization.chain.shape import Pairs

        K = self.classes_.shape[0]

        def part(table: Any) -> tuple[Pairs | None, Array]:
            if table is None:
                return None, np.empty(0)
            if is_sparse(table):
                return Pairs(table.indptr.astype(np.int64), table.indices.astype(np.int32)), table.data
            return None, np.asarray(table).ravel()

        pairs, weights = part(self.coef_)
        markov_pairs, markov = part(self.markov_coef_)
        ends = [np.where(np.isfinite(x), x, 0.0).ravel() for x in (self.transition_, self.start_, self.end_)]
        n_markov = 0 if self.markov_coef_ is None else int(self.markov_coef_.shape[0])
        free = np.ones(K * K + 2 * K, dtype=bool)
        shape = ChainShape(K, int(self.coef_.shape[0]), n_markov, self.allowed_, free, pairs, markov_pairs)
        return shape, np.concatenate([weights, markov, *ends])

    def transitions(self) -> dict[tuple[Any, Any], float]:
        """The score of each label after another; None is the boundary, −∞ means forbidden.

        Returns
        -------
        dict of (label, next label) to float
        """
        check_is_fitted(self)
        names = self.classes_.tolist()
        found: dict[tuple[Any, Any], float] = {
            (a, b): float(self.transition_[i, j]) for i, a in enumerate(names) for j, b in enumerate(names)
        }
        if self.boundaries:
            found |= {(None, b): float(self.start_[j]) for j, b in enumerate(names)}
            found |= {(a, None): float(self.end_[i]) for i, a in enumerate(names)}
        return found

    def top_features(self, label: Any, n: int = 10) -> list[tuple[str, float]]:
        """The features with the largest weights for (or against) a label.

        Parameters
        ----------
        label : object
            One of `classes_`.
        n : int, default=10
            How many.

        Returns
        -------
        list of pairs (name, weight), the largest in absolute value first
        """
        check_is_fitted(self)
        names = self.classes_.tolist()
        if label not in names:
            raise ValueError(f"label must be one of {names!r}; got {label!r}.")
        count = int(check_real("n", n, low=1, integer=True))
        k = names.index(label)
        weights = self.coef_[:, [k]].toarray().ravel() if is_sparse(self.coef_) else self.coef_[:, k]
        order = np.argsort(-np.abs(weights), kind="stable")[:count]
        return [(self.encoder_.name(int(f)), float(weights[f])) for f in order if weights[f] != 0.0]


def _listed(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset, np.ndarray))
