"""Conditional random fields: the probability of a whole labelling given the input.

    P(y | x) = exp(score(x, y)) / Z(x)
    minimize over w    (1/Σs_i) Σ s_i (log Z(x_i) − score(x_i, y_i))  +  alpha · penalty(w)

w holds all weights: of features, transitions and boundaries. All are penalized, so that the objective is strongly
convex in the L2 part. Sequences of length one without boundaries are softmax regression.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.models.structured.base import FeatureModel, ProbabilisticMixin, SequenceData
from certifit.models.structured.labels import (
    allowed_transitions,
    check_allowed,
    clean_labels,
    encode_sequences,
    flatten_labels,
)
from certifit.optimization.chain.descent import descend, first_pass
from certifit.optimization.chain.likelihood import DualBound, Likelihood, constant_loss
from certifit.optimization.chain.quasi_newton import minimize
from certifit.optimization.chain.shape import ChainShape, native_sequences, observed_pairs
from certifit.parameters import L1_RATIO, MAX_ITER, TOL, WARM_START, Fitted, OneOf, Parameter, Real
from certifit.progress import progress
from certifit.representation.sequences.positions import Positions, SparseRows
from certifit.threads import one_blas_thread

__all__ = ["LinearChainCRF", "TreeCRF"]


class BaseCRF(ProbabilisticMixin, FeatureModel):
    """Parameters and fitting that chains and trees share."""

    alpha: float = Parameter(0.001, Real(0, open_low=True), "Strength of the penalty.")
    penalty: str = OneOf(("l2", "l1", "elasticnet"), "Penalty of all weights.")
    l1_ratio: float = L1_RATIO
    states: str = OneOf(
        ("observed", "all"),
        "Whether a feature has weights for the labels it was seen with, or for all labels. Dense matrices always have all.",
    )
    tol: float = TOL
    max_iter: int = MAX_ITER
    warm_start: bool = WARM_START

    n_iter_: int = Fitted("int", "Iterations of the solver.")

    def _strengths(self) -> tuple[float, float]:
        """Strengths of ‖w‖₁ and ½‖w‖²."""
        share = {"l2": 0.0, "l1": 1.0}.get(self.penalty, float(self.l1_ratio))
        return float(self.alpha) * share, float(self.alpha) * (1.0 - share)

    def _shape(self, data: SequenceData) -> ChainShape:
        """Which weights there are."""
        positions, K = data.positions, self.classes_.shape[0]
        pairs = markov_pairs = None
        if self.states == "observed":
            if isinstance(positions.unary, SparseRows):
                pairs = observed_pairs(positions.unary, data.y, K)
            if positions.markov is not None:
                parent = positions.parents()
                begin = np.repeat(positions.offset[:-1], positions.lengths)
                before = data.y[np.maximum(begin + parent, 0)]
                markov_pairs = observed_pairs(positions.markov, before * K + data.y, K * K, keep=parent >= 0)
        return ChainShape(K, positions.n_features, positions.n_markov, self.allowed_, self._free(), pairs, markov_pairs)

    def _fit(self, X: Any, y: Any, sample_weight: Any, lengths: Any, parents: Any) -> Any:
        threads = self._check()
        l1, l2 = self._strengths()
        data = self._fit_data(X, y, sample_weight, lengths, parents)
        shape = self._shape(data)
        with progress(int(self.verbose), type(self).__name__) as clock, one_blas_thread():
            likelihood = Likelihood(data.positions, data.y, data.p, shape, threads)
            dual = DualBound(data.p, l1, l2)
            unit = constant_loss(data.y, data.position_weight, shape.labels)
            start = self._last(shape)
            if start is None:
                start = first_pass(likelihood, l2, unit) if l1 == 0.0 else np.zeros(shape.size)
            found = minimize(
                likelihood,
                start,
                l1=l1,
                l2=l2,
                curvature=likelihood.curvature() + l2,
                units=likelihood.units(l2),
                bound=lambda w, f, g: dual.add(w, f, g, likelihood.losses),
                unit=unit,
                tol=float(self.tol),
                max_iter=int(self.max_iter),
                clock=clock,
            )
            seconds = clock.seconds
        self.n_iter_ = max(1, found.iterations)
        if "learning_rate" in self.get_params():
            self.t_ = 0.0
        self._keep_proven(
            shape, found, "strong convexity" if l1 == 0.0 else "duality gap", unit, found.iterations, seconds
        )
        return self

    def _last(self, shape: ChainShape) -> Array | None:
        """The parameters of the last fit for a warm start, if it had the same weights."""
        if self.warm_start and hasattr(self, "coef_"):
            last, w = self._scores()
            if (
                last.size == shape.size
                and _same(last.pairs, shape.pairs)
                and _same(last.markov_pairs, shape.markov_pairs)
            ):
                return w
        return None


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return bool(np.array_equal(a.first, b.first) and np.array_equal(a.code, b.code))


class LinearChainCRF(BaseCRF):
    """Linear-chain conditional random field: the labels of a sequence, each depending on its neighbors.

    Minimizes ``mean negative log-likelihood of the sequences + alpha·penalty(w)`` by a limited-memory quasi-Newton
    method, orthant-wise with an L1 part. ``alpha = 2·c2/n`` and ``alpha = c1/n`` give CRFsuite's objective on n
    sequences.

    The certificate compares the fit with a dual bound: the entropy of the model's own distribution, mixed with the best
    one seen before (or, with an L1 part, with the observed labels). Its unit is the model that gives every position the
    shares of the labels.

    Examples
    --------
    >>> from certifit import LinearChainCRF
    >>> X = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["dogs", "bark"], ["the", "cat", "barks"]]
    >>> y = [["D", "N", "V"], ["D", "N", "V"], ["N", "V"], ["D", "N", "V"]]
    >>> model = LinearChainCRF(alpha=0.01).fit(X, y)
    >>> model.predict([["a", "dog", "sleeps"]]), model.certificate_.certified
    ([['D', 'N', 'V']], True)
    >>> model.predict_best([["dogs", "sleep"]], n=2)[0][0][0]
    ['N', 'V']
    >>> model.top_features("D", n=1)[0][0]
    'w[1]=cat'
    """

    learning_rate: float = Parameter(0.1, Real(0, open_low=True), "First step of `partial_fit`.")

    t_: float = Fitted("float", "Sequences that `partial_fit` has visited.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, lengths: Any = None) -> LinearChainCRF:
        """Fit the model.

        Parameters
        ----------
        X : list of sequences
            Tokens of text, mappings or lists of features, ids, or rows of numbers; or one dense or sparse matrix of all
            positions with `lengths`.
        y : list of lists of labels
            One label for each position; one array with `lengths`.
        sample_weight : array of shape (n_sequences,), optional
            A weight of 2 counts a sequence twice, a weight of 0 drops it.
        lengths : array of int, optional
            Lengths of the sequences in one matrix.
        """
        fitted: LinearChainCRF = self._fit(X, y, sample_weight, lengths, None)
        return fitted

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, lengths: Any = None
    ) -> LinearChainCRF:
        """One pass of stochastic gradient descent over the sequences, in their order.

        The first call decides which features there are, so that features with names that come later need ``hashing``.
        Steps are 1/(alpha·(t0 + t)), beginning with `learning_rate`. Only for ``penalty="l2"``; nothing is certified.

        Parameters
        ----------
        X, y, lengths
            As in `fit`.
        classes : list of labels
            All labels that will ever come; needed by the first call.
        sample_weight : array of int of shape (n_sequences,), optional
            How often each sequence is visited.
        """
        threads = self._check()
        if self.penalty != "l2":
            raise ValueError(f"partial_fit is for penalty='l2'; got penalty={self.penalty!r}.")
        first = not hasattr(self, "coef_")
        if first and classes is None:
            raise ValueError("classes must list all labels in the first call of partial_fit.")
        positions = self._fit_positions(X, lengths, None) if first else self._positions(X, lengths)
        labels = flatten_labels(y, positions.offset, lengths is not None)
        if first:
            self._begin(classes)
        codes = encode_sequences(labels, self.classes_)
        check_allowed(codes, positions.parents(), positions.offset, self.allowed_, self.classes_)
        shape, w = self._descent_start(positions, first)
        visits = _visits(sample_weight, positions.n_sequences)
        _, self.t_ = descend(
            native_sequences(positions),
            shape,
            codes,
            visits,
            w,
            alpha=float(self.alpha),
            rate=float(self.learning_rate),
            t=float(self.t_),
        )
        self._keep(shape, w)
        self._evaluated(positions, codes, shape, w, threads)
        return self

    def _begin(self, classes: Any) -> None:
        """Labels and rules of the first pass."""
        if not isinstance(classes, Iterable):
            raise TypeError(f"classes must be a list of labels; got {classes!r}.")
        self.classes_ = np.unique(clean_labels(list(classes), "classes"))
        if self.classes_.shape[0] < 2:
            raise ValueError(f"classes must list at least 2 labels; got {classes!r}.")
        self.allowed_ = allowed_transitions(self.forbidden, self.required, self.classes_)
        self.t_ = 0.0

    def _descent_start(self, positions: Positions, first: bool) -> tuple[ChainShape, Array]:
        """Every label has a weight, since later sequences may bring it; a model that `fit` left is widened."""
        shape = ChainShape(
            self.classes_.shape[0], positions.n_features, positions.n_markov, self.allowed_, self._free()
        )
        w = np.zeros(shape.size)
        if not first:
            unary, markov, transition, start, end = shape.split(w)
            dense, values = self._scores()
            unary[:] = dense.dense_weights(values).ravel()
            if self.markov_coef_ is not None:
                pairs = dense.markov_weights(values)
                markov[:] = (pairs if isinstance(pairs, np.ndarray) else pairs.toarray()).ravel()
            for part, kept in zip((transition, start, end), (self.transition_, self.start_, self.end_), strict=True):
                part[:] = np.where(np.isfinite(kept), kept, 0.0)
        return shape, w

    def _evaluated(self, positions: Positions, codes: Array, shape: ChainShape, w: Array, threads: int) -> None:
        """The objective on the last batch; no claim about the optimum."""
        p = np.full(positions.n_sequences, 1.0 / positions.n_sequences)
        with one_blas_thread():
            loss, _ = Likelihood(positions, codes, p, shape, threads)(w)
        objective = loss + 0.5 * float(self.alpha) * float(w @ w)
        unit = constant_loss(codes, np.repeat(p, positions.lengths), shape.labels)
        self._certify(
            Certificate.absent(
                objective,
                "One pass of stochastic steps; the objective is that of the last batch.",
                scale=max(unit, 1e-15),
            )
        )


class TreeCRF(
    BaseCRF, takes={"X": "X, parents\n    As in `fit`.", "predict_best.X": "X, n, lengths\n    As of chains."}
):
    """Conditional random field on trees of labels: each label depends on that of its parent.

    The chain is the tree in which the parent of a position is the one before it. Inference is exact, by messages from
    the leaves to the root and back. Roots have start scores, leaves end scores; the Markov features of a position go
    with (label of its parent, its own). Objective, penalties and certificate are those of `LinearChainCRF`.

    Examples
    --------
    >>> from certifit import TreeCRF
    >>> X = [["barks", "dog", "the"], ["sleeps", "cat", "a", "old"]]
    >>> y = [["V", "N", "D"], ["V", "N", "D", "A"]]
    >>> parents = [[-1, 0, 1], [-1, 0, 1, 1]]
    >>> model = TreeCRF(alpha=0.01).fit(X, y, parents=parents)
    >>> model.predict([["sleeps", "dog", "the", "old"]], parents=[[-1, 0, 1, 1]]), model.certificate_.certified
    ([['V', 'N', 'D', 'A']], True)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, parents: Any) -> TreeCRF:
        """Fit the model.

        Parameters
        ----------
        X, y, sample_weight
            As in `LinearChainCRF.fit`.
        parents : list of lists of int
            For each position the position of its parent in the same sequence, −1 for a root. None is the chain: the parent of a
            position is the one before it.
        """
        fitted: TreeCRF = self._fit(X, y, sample_weight, None, parents)
        return fitted

    def predict(self, X: Any, *, parents: Any) -> Any:  # type: ignore[override]
        """The best labelling of each tree (max-product).

        Returns
        -------
        list of lists of labels
        """
        return self._predict(X, None, parents)

    def predict_marginals(self, X: Any, *, parents: Any) -> Any:  # type: ignore[override]
        """Probability of each label at each position, given the whole tree (sum-product).

        Returns
        -------
        list of arrays of shape (length, n_labels)
        """
        return self._predict_marginals(X, None, parents)

    def predict_posterior(self, X: Any, *, parents: Any) -> Any:  # type: ignore[override]
        """The most probable label of each position by itself.

        Returns
        -------
        list of lists of labels
        """
        return self._predict_posterior(X, None, parents)

    def predict_best(self, X: Any, n: int = 5, lengths: Any = None) -> Any:
        """Not for trees: the n best labellings are found on chains."""
        raise ValueError("predict_best is for chains: use LinearChainCRF, or predict for the best labelling of a tree.")

    def log_likelihood(self, X: Any, y: Any, *, parents: Any) -> Array:  # type: ignore[override]
        """Logarithm of the probability of the given labels of each tree.

        Parameters
        ----------
        X, y, parents
            As in `fit`.

        Returns
        -------
        array of shape (n_sequences,)
        """
        return self._log_likelihood(X, y, None, parents)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, parents: Any) -> float:  # type: ignore[override]
        """Share of the positions whose label is predicted right.

        Parameters
        ----------
        X, y, sample_weight, parents
            As in `fit`.
        """
        return self._accuracy(X, y, sample_weight, None, parents)


MOST_VISITS = 10**9  # they are listed one by one


def _visits(sample_weight: Any, n: int) -> Array:
    """The sequences of a pass, each as often as its weight says."""
    if sample_weight is None:
        return np.arange(n, dtype=np.uint32)
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        weight = np.empty(0)
    if (
        weight.shape != (n,)
        or not ((weight >= 0) & (weight == np.rint(weight))).all()
        or not weight.sum() <= MOST_VISITS
    ):
        raise ValueError(
            f"sample_weight of partial_fit counts visits: whole numbers ≥ 0, one for each sequence, {MOST_VISITS} in all at "
            f"most; got {sample_weight!r:.60}."
        )
    return np.repeat(np.arange(n), weight.astype(np.int64)).astype(np.uint32)
