"""Support vector classification on any kernel.

SVC        minimize over f, b    Σ s_i · max(0, 1 − y_i(f(x_i) + b)) + ½‖f‖²/C
NuSVC      the two classes as soft convex hulls in feature space, and the plane between them

    minimize over β    ½‖Σ β_i φ(x_i)‖²      0 ≤ y_i β_i ≤ s_i,   Σ of each class = ± ν·Σs/2

whose optimum, divided by the half width r of the street it finds, is the one of SVC with C = 1/r: ν is at least the share of
margin errors, and at most the share of support vectors. More than two classes: one function for each pair, and votes.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import kept_rows, like_input
from certifit.data.targets import check_labels
from certifit.models.kernel.machine import DistinctRows, Machine, Solved, classes_of_kkt
from certifit.models.reductions.calibrated import CalibratedClassifier
from certifit.optimization.dual.smo import Dual, Gram
from certifit.parameters import CLASS_WEIGHT, CV, Fitted, Flag, OneOf, Parameter, Real, check_parameters
from certifit.parameters.common import WARM_START
from certifit.progress import Progress, progress
from certifit.representation.kernels import Precomputed

__all__ = ["SVC", "NuSVC"]

SHAPE = OneOf(
    ("ovr", "ovo"),
    'What `decision_function` gives for more than two classes: votes and confidence of the classes ("ovr"), or the functions of '
    "the pairs.",
)
TIES = Parameter(
    False,
    Flag(),
    "Whether `predict` breaks ties of votes by confidence; otherwise the first class in the order of labels wins.",
)


class PairMachine(ClassifierMixin, Machine):
    """One function for each pair of classes; a subclass states the dual of a pair, and reads its solution."""

    probability: bool = Parameter(
        False,
        Flag(),
        "Whether to learn probabilities for `predict_proba`, from scores of rows left out by further fits; `predict` still goes "
        "by votes.",
    )
    cv: Any = CV.but(text="Folds of `probability`. " + CV.text)
    decision_function_shape: str = SHAPE
    break_ties: bool = TIES

    classes_: Array = Fitted("array of shape (K,)", "The labels.")
    dual_coef_: Array = Fitted(
        "array of shape (K − 1, n_SV)",
        "β of each supporting row in its functions against the other classes, in their order.",
    )
    intercept_: Array = Fitted("array of shape (K·(K − 1)/2,)", "b of each function.")
    certificates_: list[Certificate] = Fitted("list of Certificate", "One for each pair.")
    certificate_: Certificate = Fitted("Certificate", "That of the worst pair.")

    def _pair(self, rows: Array, sides: Array, weight: Array) -> Dual:
        raise TypeError(f"{type(self).__name__} must state the dual of a pair.")

    def _read(
        self, solved: Solved, gram: Gram, scale: float, clock: Progress, doubt: str
    ) -> tuple[Array, float, Certificate]:
        """β and b of the function, and its certificate."""
        raise TypeError(f"{type(self).__name__} must read its solution.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        With ``kernel="precomputed"`` X is the square matrix of similarities; where a kernel takes no numbers, a sequence of
        what it takes.
        """
        check_parameters(self)
        gated, codes, weight, self.classes_ = check_labels(
            self, self._gated(X), y, sample_weight, getattr(self, "class_weight", None)
        )
        kept = kept_rows(sample_weight, codes.shape[0])
        with progress(self.verbose, type(self).__name__) as clock:
            sample = self._sample(X, gated, codes, weight, kept)
            gram, codes, weight = sample.gram, sample.target, sample.weight
            members = [np.flatnonzero(codes == k) for k in range(self.classes_.shape[0])]
            duals = []
            for i, j in itertools.combinations(range(len(members)), 2):
                both = np.concatenate([members[i], members[j]])
                # Two classes: the second is +1. More: the first of a pair is, as in LIBSVM.
                sides = np.repeat([-1.0, 1.0] if len(members) == 2 else [1.0, -1.0], [members[i].size, members[j].size])
                duals.append(self._pair(both, sides, weight[both]))
            duals = self._continued(duals)
            scales = self._scales(gram, duals)
            found = self._solved(gram, duals, scales, clock)
            doubt = self._proof(gram)
            read = [self._read(one, gram, float(scale), clock, doubt) for one, scale in zip(found, scales, strict=True)]
        self._keep(sample, found, [(beta, b) for beta, b, _ in read], members)
        self.certificates_ = [certificate for *_, certificate in read]
        self.fit_status_ = int(not all(c.certified or c.kind == "none" for c in self.certificates_))
        self._certify(Certificate.worst(self.certificates_, f"The worst of {len(read)} pairs of classes."))
        self._calibrator = self._calibrated(X, y, sample_weight) if self.probability else None
        return self

    def _calibrated(self, X: Any, y: Any, sample_weight: Any) -> CalibratedClassifier:
        """The map from scores to probabilities, learned on rows that the fits behind it did not see."""
        if self._on_objects or isinstance(self.kernel_, Precomputed):
            raise ValueError(
                "probability=True needs rows of numbers: they are dealt into folds. Use a kernel on numbers, or "
                "CalibratedClassifier(model, cv='prefit') on rows of their own."
            )
        inner = clone(self).set_params(probability=False, decision_function_shape="ovr")
        method = "sigmoid" if self.classes_.shape[0] == 2 else "matrix"
        return CalibratedClassifier(inner, method=method, cv=self.cv).fit(X, y, sample_weight=sample_weight)

    @available_if(lambda self: bool(self.probability))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities; there with ``probability=True``."""
        check_is_fitted(self, "support_")
        if self._calibrator is None:
            raise NotFittedError(f"{type(self).__name__} was fitted with probability=False: fit it again.")
        return self._calibrator.predict_proba(X)

    def _continued(self, duals: list[Dual]) -> list[Dual]:
        """The duals, begun where the last fit ended if this one goes on from it."""
        return duals

    def _scales(self, gram: Gram, duals: list[Dual]) -> Array:
        """The objective of the best constant, for each pair."""
        raise TypeError(f"{type(self).__name__} must say what its gap is measured by.")

    def _keep(
        self, sample: DistinctRows, found: list[Solved], read: list[tuple[Array, float]], members: list[Array]
    ) -> None:
        """Coefficients as scikit-learn lays them out: rows sorted by class, one line for each other class."""
        K, n = len(members), sample.target.shape[0]
        lines, kkt = np.zeros((K - 1, n)), np.zeros((len(found), n), dtype=np.int8)
        for (i, j), one, (beta, _), kinds in zip(itertools.combinations(range(K), 2), found, read, kkt, strict=True):
            mine = members[i].size
            lines[j - 1, members[i]], lines[i, members[j]] = beta[:mine], beta[mine:]
            kinds[one.dual.rows] = classes_of_kkt(one.dual, one.beta)
        full, codes = sample.spread(lines), sample.target[sample.which]
        support = np.flatnonzero((full != 0).any(axis=0))
        support = support[np.argsort(codes[support], kind="stable")]
        self.n_support_ = np.bincount(codes[support], minlength=K).astype(np.int32)
        self.dual_coef_ = full[:, support]
        self.intercept_ = np.array([b for _, b in read])
        self.n_iter_ = np.array([max(one.rounds, 1) for one in found], dtype=np.int32)
        self._kkt = sample.kinds(kkt[0] if len(found) == 1 else kkt)
        self._keep_support(sample, support)

    def _functions(self) -> Array:
        K = self.classes_.shape[0]
        if K == 2:
            return self.dual_coef_
        ends = np.concatenate([[0], np.cumsum(self.n_support_)])
        out = np.zeros((K * (K - 1) // 2, int(ends[-1])))
        for line, (i, j) in zip(out, itertools.combinations(range(K), 2), strict=True):
            first, second = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
            line[first], line[second] = self.dual_coef_[j - 1, first], self.dual_coef_[i, second]
        return out

    def _pairs(self, X: Any) -> tuple[Any, Array]:
        rows, scores = self._scores(X)
        scores += self.intercept_
        return rows, scores

    def decision_function(self, X: Any) -> Array:
        """Scores of the classes, or of the pairs.

        Returns
        -------
        array of shape (n_samples,) for two classes (positive: the second), (n_samples, K) for more, or
        (n_samples, K·(K − 1)/2) with ``decision_function_shape="ovo"`` (positive: the first of the pair)
        """
        rows, scores = self._pairs(X)
        K = self.classes_.shape[0]
        if K == 2:
            return like_input(rows, scores[:, 0])
        if self.decision_function_shape == "ovo":
            return like_input(rows, scores)
        votes, confidence = _votes(scores, K)
        # Squeezed into (−1/3, 1/3): confidence decides between equal votes only.
        return like_input(rows, votes + confidence / (3.0 * (np.abs(confidence) + 1.0)))

    def predict(self, X: Any) -> Array:
        """The class with most votes."""
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'.")
        _, scores = self._pairs(X)
        K = self.classes_.shape[0]
        if K == 2:
            return np.asarray(self.classes_[(scores[:, 0] > 0).astype(np.intp)])
        votes, confidence = _votes(scores, K)
        if self.break_ties:
            votes = votes + confidence / (3.0 * (np.abs(confidence) + 1.0))
        return np.asarray(self.classes_[votes.argmax(axis=1)])


class SVC(PairMachine):
    """Support vector classification on a kernel: minimizes ``mean hinge loss + alpha·½‖f‖²`` with ``alpha = 1/(C·n)``.

    The intercept is not penalized. The fit stops when the duality gap is within `tol`, relative to the objective of the best
    constant, and the certificate says what it reached. A kernel that is no inner product gives a fit, and no certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import SVC
    >>> X = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    >>> model = SVC(kernel="rbf", gamma=1.0, C=10.0).fit(X, ["same", "other", "other", "same"])
    >>> model.predict([[-0.8, -1.0], [0.9, -1.2]])
    array(['same', 'other'], dtype='<U5')
    >>> model.n_support_, model.kkt_, bool(model.certificate_)
    (array([2, 2], dtype=int32), array(['free', 'free', 'free', 'free'], dtype='<U5'), True)
    """

    C: float = Parameter(1.0, Real(0, open_low=True), "Weight of the losses against the penalty ½‖f‖².")
    class_weight: Any = CLASS_WEIGHT
    warm_start: bool = WARM_START.but(
        text="Whether `fit` goes on from the multipliers of the last fit, scaled into the limits of this one: along rising C "
        "on the same rows it then takes fewer steps."
    )

    walks_along = "C"  # settings that differ in it alone are fitted one from the other by `Search`

    __order__ = (
        "C",
        "kernel",
        "degree",
        "gamma",
        "coef0",
        "probability",
        "cv",
        "tol",
        "cache_size",
        "class_weight",
        "verbose",
        "max_iter",
        "decision_function_shape",
        "break_ties",
        "max_rows",
        "warm_start",
        "n_jobs",
    )

    def _pair(self, rows: Array, sides: Array, weight: Array) -> Dual:
        limit, target = float(self.C) * weight, sides[None]
        low, high = np.where(sides > 0, 0.0, -limit)[None], np.where(sides > 0, limit, 0.0)[None]
        return Dual(rows, target, target, low, high, np.zeros_like(target))

    def _continued(self, duals: list[Dual]) -> list[Dual]:
        last: list[tuple[Array, float]] = getattr(self, "_last", None) or []
        known = [beta.shape[0] for beta, _ in last]
        if not self.warm_start or known != [dual.rows.shape[0] for dual in duals]:
            return duals
        return [_scaled_into(dual, beta, best) for dual, (beta, best) in zip(duals, last, strict=True)]

    def _keep(
        self, sample: DistinctRows, found: list[Solved], read: list[tuple[Array, float]], members: list[Array]
    ) -> None:
        super()._keep(sample, found, read, members)
        self._last = [(one.beta[0], _best_scale(one)) for one in found] if self.warm_start else None

    def _scales(self, gram: Gram, duals: list[Dual]) -> Array:
        return np.array([2.0 * min(float(dual.high.sum()), -float(dual.low.sum())) for dual in duals])

    def _read(
        self, solved: Solved, gram: Gram, scale: float, clock: Progress, doubt: str
    ) -> tuple[Array, float, Certificate]:
        unit = float((solved.dual.high - solved.dual.low).sum())  # C·Σs: the objective is mean loss + ½‖f‖²/(C·Σs)
        certificate = self._certificate(solved, unit, scale, clock, doubt)
        return solved.beta[0], float(solved.evidence.intercepts[0]), certificate


def _best_scale(solved: Solved) -> float:
    """The t for which tβ has the largest dual value Σ|tβ| − ½t²βᵀKβ."""
    gained = float(np.abs(solved.beta).sum())
    energy = 2.0 * (gained - solved.evidence.dual)
    return gained / energy if energy > 0 else 1.0


def _scaled_into(dual: Dual, beta: Array, best: float) -> Dual:
    """The dual begun at tβ, t as near to the best as its limits allow; at zero where a row has changed sides."""
    limit = np.where(beta > 0, dual.high[0], -dual.low[0])
    held = beta != 0
    start = min(best, float((limit[held] / np.abs(beta[held])).min(initial=best))) * beta
    up, down = float(start[start > 0].sum()), -float(start[start < 0].sum())
    if up > 0 and down > 0:  # the sum is kept by every step: it must be zero to rounding
        start = np.where(start > 0, start * min(1.0, down / up), start * min(1.0, up / down))
    else:
        start = np.zeros_like(start)
    return replace(dual, start=np.clip(start, dual.low[0], dual.high[0])[None])


class NuSVC(PairMachine):
    """Support vector classification by a share: at most `nu` of the rows err, at least `nu` of them support.

    Minimizes the distance ½‖Σ β_i φ(x_i)‖² of the soft convex hulls of two classes, in which no row may weigh more than
    2/(nu·n). The function is scaled so that the margin is ±1; it is that of `SVC` with some C.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import NuSVC
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=200)
    >>> X = rng.normal(size=(200, 2)) + 2.0 * y[:, None]
    >>> model = NuSVC(nu=0.3).fit(X, y)
    >>> bool((y != model.predict(X)).mean() <= 0.3 <= model.n_support_.sum() / 200)
    True
    """

    nu: float = Parameter(
        0.5,
        Real(0, 1, open_low=True),
        "Upper limit of the share of margin errors, lower limit of that of support vectors; where the smaller class of a pair "
        "has less than half of it, as much as that class has.",
    )

    # No class_weight: both classes have half of nu, whatever their rows weigh.
    __order__ = ("nu", *(name for name in SVC.__order__ if name not in ("C", "class_weight", "warm_start")))

    def _pair(self, rows: Array, sides: Array, weight: Array) -> Dual:
        plus, minus = sides > 0, sides < 0
        # The smaller class cannot have more than all of its weight; then its hull is its mean alone.
        share = min(0.5 * float(self.nu) * float(weight.sum()), float(weight[plus].sum()), float(weight[minus].sum()))
        low, high = np.zeros((2, rows.shape[0])), np.zeros((2, rows.shape[0]))
        high[0, plus], low[1, minus] = weight[plus], -weight[minus]
        start = np.zeros_like(low)
        start[0, plus] = np.minimum(share * weight[plus] / weight[plus].sum(), weight[plus])
        start[1, minus] = -np.minimum(share * weight[minus] / weight[minus].sum(), weight[minus])
        zero = np.zeros_like(low)
        return Dual(rows, zero, zero, low, high, start)

    def _scales(self, gram: Gram, duals: list[Dual]) -> Array:
        return np.array([0.5 * self._energy(gram, dual) for dual in duals])

    def _read(
        self, solved: Solved, gram: Gram, scale: float, clock: Progress, doubt: str
    ) -> tuple[Array, float, Certificate]:
        total = float((solved.dual.high - solved.dual.low).sum())
        nu = solved.mass / total
        lowered = f"nu is {nu:.4g} here, all that the smaller class has." if nu < float(self.nu) * (1 - 1e-9) else ""
        certificate = self._certificate(solved.turned(), solved.mass**2, scale, clock, doubt, lowered)
        # The classes have scores above −b₀ and below −b₁: b is minus their middle, half their distance that of the street.
        b0, b1 = (float(b) for b in solved.evidence.intercepts)
        half = 0.5 * (b1 - b0)
        beta = solved.beta.sum(axis=0)
        rounding = 64.0 * float(np.finfo(np.float64).eps) * gram.largest()
        if certificate.objective <= rounding or not half > 1e-12 * max(abs(b0), abs(b1)):
            half = 1.0
            certificate = certificate.withdrawn(
                "The hulls of the classes meet: there is no street to scale by. A larger nu makes them smaller."
            )
        return beta / half, 0.5 * (b0 + b1) / half, certificate


def _votes(scores: Array, K: int) -> tuple[Array, Array]:
    """How often each class wins, and by how much in all."""
    votes, confidence = np.zeros((scores.shape[0], K)), np.zeros((scores.shape[0], K))
    for column, (i, j) in zip(scores.T, itertools.combinations(range(K), 2), strict=True):
        votes[:, i] += column > 0
        votes[:, j] += column <= 0
        confidence[:, i] += column
        confidence[:, j] -= column
    return votes, confidence
