"""Many classes by two-class classifiers: one against the rest, one against one, error-correcting output codes.

All three are codes (Allwein et al. 2000): a matrix M with a row for each class and a column for each two-class problem, in
which classes with +1 are set against those with −1 and classes with 0 stay out.

    one against rest:  M = 2I − 1        one against one:  a column for each pair        output code:  chosen or drawn

Any classifier serves, ours or another's, that has `decision_function` or `predict_proba`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from certifit._types import Array, Matrix, is_sparse
from certifit.base import CertifiedEstimator, CopiesMixin, HighestScoreMixin
from certifit.certificate import Certificate
from certifit.data.gate import check_x, check_xy
from certifit.data.targets import several_classes
from certifit.parameters import (
    N_JOBS,
    RANDOM_STATE,
    Choice,
    Declared,
    Either,
    Fitted,
    Given,
    Learner,
    Nothing,
    Parameter,
    Real,
    check_parameters,
)
from certifit.threads import n_threads

__all__ = ["OneVsOne", "OneVsRest", "OutputCode"]

EXHAUSTIVE_LIMIT = 12  # classes; 13 would need 4095 columns
DRAWS = 100  # random codes that are compared

ESTIMATOR = Parameter(
    None,
    Either(Learner(("decision_function", "predict_proba"), "LogisticRegression()"), Nothing()),
    "Cloned for each two-class problem; None is `LogisticRegression()`. It needs `decision_function` or `predict_proba`.",
)
JOBS = N_JOBS.but(text="Threads over the two-class problems. The model does not depend on it.")


class OfClassifier:
    """Fits copies of a classifier: of a logistic regression, where none is given."""

    estimator: Any

    def _inner(self) -> Any:
        """The classifier that is cloned."""
        if self.estimator is not None:
            return self.estimator
        from certifit.models.logistic.model import LogisticRegression

        return LogisticRegression()


class _CodeClassifier(Declared, OfClassifier, HighestScoreMixin, CopiesMixin, ClassifierMixin, CertifiedEstimator):
    """Fits one classifier for each column of a code; a subclass says which code, and how scores are decoded."""

    classes_: Array = Fitted("array of shape (K,)", "The labels.")
    code_: Array = Fitted("array of shape (K, n_problems)", "The code matrix: −1, 0 and +1.")
    estimators_: list[Any] = Fitted("list", "The fitted classifiers, one for each column of the code.")
    certificate_: Certificate = Fitted("Certificate", "The sum of the certificates of the parts, where they have one.")
    n_features_in_: int = Fitted("int", "Number of columns.")

    def _code(self, n_classes: int) -> Array:
        raise TypeError(f"{type(self).__name__} must say which code it uses.")

    def _decode(self, scores: Array) -> Array:
        """Scores of the classes, shape (n, K), from those of the two-class problems, shape (n, n_problems)."""
        raise TypeError(f"{type(self).__name__} must say how it decodes.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit one classifier for each two-class problem.

        Parameters
        ----------
        sample_weight : array of shape (n_samples,), optional
            Passed on to the classifiers; rows of weight zero are dropped.
        """
        check_parameters(self)
        started, base = time.perf_counter(), self._inner()
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, numeric_target=False, **self._accepted())
        classes, codes = several_classes(self, y)
        if sample_weight is not None and not has_fit_parameter(base, "sample_weight"):
            raise ValueError(f"sample_weight was given, but {type(base).__name__}.fit takes no sample_weight.")
        self.classes_ = classes
        # With two classes every code comes down to one problem: the second class against the first.
        code = self._code(classes.shape[0])
        self.code_ = np.array([[-1], [1]]) if classes.shape[0] == 2 else code
        X = X.tocsr() if is_sparse(X) else X
        given = None if sample_weight is None else weight
        jobs = [(base, X, self.code_[:, j][codes], given) for j in range(self.code_.shape[1])]
        self.estimators_ = side_by_side(_fit_one, jobs, self.n_jobs)
        # The parts have said themselves where they stopped short: once is enough.
        self.certificate_ = combined(self.estimators_, time.perf_counter() - started)
        return self

    def _accepted(self) -> dict[str, Any]:
        tags = get_tags(self._inner()).input_tags
        return {"accept_sparse": ("csr", "csc") if tags.sparse else False, "allow_nan": bool(tags.allow_nan)}

    def _problem_scores(self, X: Any) -> Array:
        check_is_fitted(self, "estimators_")
        X = check_x(self, X, reset=False, **self._accepted())
        return np.column_stack([_score(part, X) for part in self.estimators_])

    def decision_function(self, X: Any) -> Array:
        """Scores: shape (n,) for two classes (positive: the second class), (n, K) for more."""
        scores = self._problem_scores(X)
        return scores[:, 0] if self.classes_.shape[0] == 2 else self._decode(scores)


def _has_probabilities(self: Any) -> bool:
    if hasattr(self, "estimators_"):
        return all(hasattr(part, "predict_proba") for part in self.estimators_)
    return hasattr(self._inner(), "predict_proba")


class OneVsRest(_CodeClassifier):
    """One classifier for each class against all others; the highest score wins.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import OneVsRest, SGDClassifier
    >>> y = np.repeat(["a", "b", "c"], 50)
    >>> X = np.column_stack([y == "a", y == "b"]) + 0.1 * np.random.default_rng(0).normal(size=(150, 2))
    >>> model = OneVsRest(SGDClassifier(alpha=0.01, random_state=0)).fit(X, y)
    >>> model.score(X, y), len(model.estimators_), model.certificate_.certified
    (1.0, 3, True)
    """

    estimator: Any = ESTIMATOR
    n_jobs: int | None = JOBS

    def _code(self, n_classes: int) -> Array:
        return 2 * np.eye(n_classes, dtype=np.intp) - 1

    def _decode(self, scores: Array) -> Array:
        return scores

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the parts, normalized to sum to one."""
        check_is_fitted(self, "estimators_")
        X = check_x(self, X, reset=False, **self._accepted())
        each = np.column_stack([part.predict_proba(X)[:, 1] for part in self.estimators_])
        if self.classes_.shape[0] == 2:
            return np.column_stack([1.0 - each[:, 0], each[:, 0]])
        total = each.sum(axis=1, keepdims=True)
        return np.where(total > 0, each / np.where(total > 0, total, 1.0), 1.0 / each.shape[1]).astype(each.dtype)


class OneVsOne(_CodeClassifier):
    """One classifier for each pair of classes; the class with most votes wins, and confidence breaks ties.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LogisticRegression, OneVsOne
    >>> x = np.arange(12.0)  # on a line the classes in the middle have others on both sides, and every two can be parted
    >>> model = OneVsOne(LogisticRegression(alpha=1e-3)).fit(x[:, None], x // 3)
    >>> model.score(x[:, None], x // 3), len(model.estimators_)
    (1.0, 6)
    """

    estimator: Any = ESTIMATOR
    n_jobs: int | None = JOBS

    def _code(self, n_classes: int) -> Array:
        pairs = list(itertools.combinations(range(n_classes), 2))
        code = np.zeros((n_classes, len(pairs)), dtype=np.intp)
        for column, (i, j) in enumerate(pairs):
            code[i, column], code[j, column] = -1, 1
        return code

    def _decode(self, scores: Array) -> Array:
        votes = np.where(scores > 0, 1.0, -1.0) @ self.code_.T
        confidence = scores @ self.code_.T
        # Squeezed into (−1/3, 1/3): a vote changes the sum by 2, so confidence decides between equal votes only.
        return (votes + confidence / (3.0 * (np.abs(confidence) + 1.0))).astype(scores.dtype, copy=False)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities that agree best with those of the pairs (Wu, Lin and Weng 2004).

        They minimize Σ over pairs of (r_ji·p_i − r_ij·p_j)² with r_ij the probability of i against j.
        """
        check_is_fitted(self, "estimators_")
        X = check_x(self, X, reset=False, **self._accepted())
        upper = np.column_stack([np.asarray(part.predict_proba(X))[:, 1] for part in self.estimators_])
        dtype, K = upper.dtype, self.classes_.shape[0]
        upper = np.clip(upper.astype(np.float64), 1e-7, 1.0 - 1e-7)
        if K == 2:
            return np.column_stack([1.0 - upper[:, 0], upper[:, 0]]).astype(dtype)
        r = np.zeros((upper.shape[0], K, K))
        for column in range(self.code_.shape[1]):
            i, j = int(np.argmin(self.code_[:, column])), int(np.argmax(self.code_[:, column]))
            r[:, j, i], r[:, i, j] = upper[:, column], 1.0 - upper[:, column]
        system = np.zeros((upper.shape[0], K + 1, K + 1))
        system[:, :K, :K] = -r * r.transpose(0, 2, 1)
        each = np.arange(K)
        system[:, each, each] = (r**2).sum(axis=1)
        system[:, :K, K] = system[:, K, :K] = 1.0
        right = np.zeros((upper.shape[0], K + 1, 1))
        right[:, K] = 1.0
        found = np.maximum(np.linalg.solve(system, right)[:, :K, 0], 0.0)
        return np.asarray(found / found.sum(axis=1, keepdims=True)).astype(dtype)


class OutputCode(_CodeClassifier):
    """Error-correcting output codes: each class has a code word, each bit is a two-class problem.

    Words that differ in d bits stay apart until (d − 1)//2 of the classifiers err. The least d is in `min_distance_`.

    Attributes
    ----------
    min_distance_ : float
        Least Hamming distance of two words; a zero counts one half.
    n_correctable_ : int
        Classifiers that may err without a change of the decision.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import OutputCode, SGDClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(4, size=200)
    >>> X = np.eye(4)[y] + 0.1 * rng.normal(size=(200, 4))
    >>> model = OutputCode(SGDClassifier(alpha=0.01, random_state=0), code="exhaustive").fit(X, y)
    >>> model.code_.shape, model.min_distance_, model.n_correctable_
    ((4, 7), 4.0, 1)
    """

    estimator: Any = ESTIMATOR
    code: Any = Parameter(
        "random",
        Either(
            Choice("random", "exhaustive"),
            Given("array of shape (K, n_problems)", wrong=([[1.0, 1.0]], [[2.0], [-1.0]])),
        ),
        f"Drawn (the best of {DRAWS} draws), all 2^(K−1) − 1 ways to split the classes (K ≤ {EXHAUSTIVE_LIMIT}), or a matrix of "
        "−1, 0 and +1 with rows in the order of the sorted classes; 0 leaves a class out of a problem. Without a −1 it is "
        "a matrix of bits, and 0 is the other side.",
    )
    code_size: float = Parameter(2.0, Real(0, open_low=True), "Problems of a random code for each class.")
    decoding: str = Parameter(
        "loss",
        Choice("hamming", "loss"),
        "The nearest word to the decisions, or the word with the least logistic loss ln(1 + e^(−M·score)) of the scores.",
    )
    n_jobs: int | None = JOBS
    random_state: Any = RANDOM_STATE.but(text="Draws the random code.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OutputCode:
        """Fit one classifier for each column of the code.

        Parameters
        ----------
        sample_weight : array of shape (n_samples,), optional
            Passed on to the classifiers; rows of weight zero are dropped.
        """
        super().fit(X, y, sample_weight)
        self.min_distance_ = min_hamming_distance(self.code_)
        self.n_correctable_ = int(max(np.ceil(self.min_distance_) - 1, 0) // 2)
        return self

    def _code(self, n_classes: int) -> Array:
        if not isinstance(self.code, str):
            return _checked_code(np.asarray(self.code), n_classes)
        if self.code == "exhaustive":
            return exhaustive_code(n_classes)
        return _random_code(n_classes, self.code_size, check_random_state(self.random_state))

    def _decode(self, scores: Array) -> Array:
        code = self.code_.astype(scores.dtype)
        if self.decoding == "hamming":
            bits = np.where(scores > 0, 1.0, -1.0).astype(scores.dtype)
            return -0.5 * (code.shape[1] - bits @ code.T)
        # A score of 0 is what a problem without the class would say, so zeros of the code cost ln 2 each.
        loss = [np.logaddexp(0.0, -scores * word).sum(axis=1) for word in code]
        return -np.column_stack(loss).astype(scores.dtype)


def exhaustive_code(n_classes: int) -> Array:
    """All splits of the classes into two groups, each once: the first class is always +1."""
    if n_classes > EXHAUSTIVE_LIMIT:
        raise ValueError(
            f"code='exhaustive' takes at most {EXHAUSTIVE_LIMIT} classes of y ({2 ** (EXHAUSTIVE_LIMIT - 1) - 1} problems); "
            f"got {n_classes}. Use code='random'."
        )
    columns = 2 ** (n_classes - 1) - 1
    code = np.ones((n_classes, columns), dtype=np.intp)
    for k in range(1, n_classes):
        code[k] = np.where((np.arange(columns) >> (n_classes - 1 - k)) & 1, 1, -1)
    return code


def min_hamming_distance(code: Array) -> float:
    """Least Hamming distance of two rows; a zero counts one half."""
    distances = 0.5 * (code.shape[1] - code @ code.T)
    return float(distances[np.triu_indices(code.shape[0], 1)].min())


def _random_code(n_classes: int, code_size: float, rng: np.random.RandomState) -> Array:
    """The draw with the greatest least distance; columns are splits of the classes, distinct while there are enough."""
    possible = 2 ** (n_classes - 1) - 1
    wanted = max(int(np.ceil(code_size * n_classes)), int(np.ceil(np.log2(n_classes))), 1)
    if wanted >= possible and n_classes <= EXHAUSTIVE_LIMIT:
        return exhaustive_code(n_classes)
    best, least = None, -1.0
    for _ in range(DRAWS):
        seen: dict[bytes, Array] = {}
        while len(seen) < wanted:
            column = np.where(rng.uniform(size=n_classes) < 0.5, -1, 1).astype(np.intp)
            column *= column[0]  # a split and its complement are the same problem
            if not (column == column[0]).all():
                seen.setdefault(column.tobytes(), column)
        code = np.column_stack(list(seen.values()))
        distance = min_hamming_distance(code)
        if distance > least:
            best, least = code, distance
    assert best is not None
    if least <= 0:
        raise ValueError(
            f"code_size={code_size:g} gives {wanted} problems, too few to tell {n_classes} classes of y apart."
        )
    return best


def _checked_code(code: Array, n_classes: int) -> Array:
    if code.ndim != 2 or code.shape[0] != n_classes or code.shape[1] == 0:
        raise ValueError(
            f"code must have shape ({n_classes}, n_problems), a row for each class of y; got {code.shape}."
        )
    if code.dtype.kind not in "fiub" or not np.isin(code, (-1, 0, 1)).all():
        raise ValueError(f"code must hold −1, 0 and +1 only; got {code.tolist()!r}.")
    code = code.astype(np.intp)
    if not (code == -1).any():  # bits, as textbooks write them: 0 is the other side
        code = 2 * code - 1
    lonely = ~((code == 1).any(axis=0) & (code == -1).any(axis=0))
    if lonely.any():
        raise ValueError(
            f"code must set classes against each other: column {int(np.argmax(lonely))} has one side only."
        )
    if np.unique(code, axis=0).shape[0] < n_classes:
        raise ValueError("code must give every class its own word: two rows are equal.")
    return code


def side_by_side(fit: Callable[..., Any], jobs: list[tuple[Any, ...]], n_jobs: int | None) -> list[Any]:
    """The results of independent fits, in their order, by so many threads."""
    threads = 1 if n_jobs is None else min(n_threads(n_jobs), len(jobs))
    if threads == 1:
        return [fit(*job) for job in jobs]
    return list(Parallel(n_jobs=threads, prefer="threads")(delayed(fit)(*job) for job in jobs))


def _fit_one(base: Any, X: Matrix, side: Array, weight: Array | None) -> Any:
    """A classifier of +1 against −1 on the rows whose class takes part."""
    rows = side != 0
    if not rows.all():
        X, side = X[rows], side[rows]
        weight = None if weight is None else weight[rows]
    target = (side > 0).astype(np.intp)
    part = clone(base)
    return part.fit(X, target) if weight is None else part.fit(X, target, sample_weight=weight)


def _score(part: Any, X: Matrix) -> Array:
    """Positive for +1: the classifier's score, or its probability above one half."""
    if hasattr(part, "decision_function"):
        return np.asarray(part.decision_function(X)).ravel()
    return np.asarray(part.predict_proba(X))[:, 1] - 0.5


def combined(parts: list[Any], seconds: float) -> Certificate:
    """The parts minimize independent objectives, so the certificate of their sum is the sum of theirs."""
    certificates = [getattr(part, "certificate_", None) for part in parts]
    known = [c for c in certificates if c is not None]
    if not known or len(known) < len(parts):
        return Certificate.absent(0.0, "The parts carry no certificate.", seconds=seconds)
    return Certificate.total(known, seconds=seconds)
