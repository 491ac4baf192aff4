"""What all support vector machines on kernels share: the kernel by name or as an object, the rows that support, and scores.

    f(x) = Σ over support vectors of β_i k(x_i, x) + b

This file knows nothing of losses: a machine states its dual problems, and keeps what `optimization.dual.smo` finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.certificate import Certificate
from certifit.data.equal_rows import equal_rows
from certifit.data.gate import check_x
from certifit.models.kernel.model import OnKernel
from certifit.models.kernel.parameters import Similarity
from certifit.models.margin.kkt import KKT
from certifit.optimization.dual.smo import Dual, Evidence, Gram, judge, solve
from certifit.parameters import (
    N_JOBS,
    TOL,
    VERBOSE,
    Choice,
    Either,
    Fitted,
    Integer,
    Nothing,
    Parameter,
    Real,
)
from certifit.progress import Progress
from certifit.representation.kernels import (
    RBF,
    Custom,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    resolve_kernel,
)
from certifit.representation.kernels.basic import scaled_gamma
from certifit.representation.kernels.mercer import by_construction
from certifit.representation.kernels.points import Points
from certifit.threads import n_threads

__all__ = ["DistinctRows", "Machine", "Solved", "classes_of_kkt"]

PROVEN = 5000  # rows up to which a matrix or a function of the user's is tested for being a kernel
RELATIVE = 1e-10  # negative eigenvalues up to this share of the trace count as rounding


@dataclass(frozen=True)
class DistinctRows:
    """The rows of a fit: equal ones are one row with the sum of their weights, so that a weight of 2 is the row given twice."""

    rows: Any
    """All rows of positive weight."""
    kept: Array
    """Which of the rows as given these are."""
    gram: Gram
    """The kernel on the distinct rows."""
    target: Array
    weight: Array
    which: Array
    """The distinct row that each row is."""
    share: Array
    """Its share of the weight of that row."""

    def spread(self, beta: Array) -> Array:
        """Multipliers of all rows from those of the distinct ones."""
        return np.asarray(beta[..., self.which] * self.share)

    def kinds(self, kkt: Array) -> Array:
        """Classes of the rows as given from those of the distinct ones; a row of weight zero is none."""
        out = np.zeros((*kkt.shape[:-1], self.kept.shape[0]), dtype=np.int8)
        out[..., self.kept] = kkt[..., self.which]
        return out


@dataclass(frozen=True)
class Solved:
    """A dual problem, its solution, and what it proves."""

    dual: Dual
    beta: Array
    evidence: Evidence
    rounds: int

    @property
    def mass(self) -> float:
        """Σ|β| that the groups must keep."""
        return float(np.abs(self.dual.start).sum())

    def turned(self) -> Solved:
        """The problem read as a minimum over β, of ½‖Σ β_i φ(x_i)‖²: what was the primal bounds it from below."""
        length = max(-self.evidence.dual, 0.0)
        evidence = Evidence(self.evidence.intercepts, length, length - self.evidence.gap, self.evidence.gap)
        return Solved(self.dual, self.beta, evidence, self.rounds)


FIRST = ("kernel", "degree", "gamma", "coef0", "tol")
LAST = ("cache_size", "verbose", "max_iter", "max_rows", "n_jobs")
"""Names before and behind the parameters of a machine's own, as scikit-learn has them."""


class Machine(OnKernel):
    """Parameters, fitted attributes and predictions of all machines."""

    weights_are_counts = True  # C multiplies the sum of the losses, not their mean

    kernel: Any = Parameter(
        "rbf",
        Similarity(),
        'Name ("linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed", …), an object of `certifit.kernels`, or a '
        "function of two matrices.",
    )
    degree: int = Parameter(3, Integer(1), 'The power of kernel="poly".')
    gamma: Any = Parameter(
        "scale",
        Either(Choice("scale", "auto"), Real(0, open_low=True)),
        'Of "rbf", "poly", "sigmoid" and "laplacian": a number, "scale" for 1/(d·variance of X), "auto" for 1/d.',
    )
    coef0: float = Parameter(0.0, Real(), 'Added to the products of kernel="poly" and "sigmoid".')
    tol: float = TOL.but(1e-5)
    cache_size: float = Parameter(500.0, Real(0, open_low=True), "Memory for rows of the kernel matrix, in megabytes.")
    max_iter: int = Parameter(
        -1, Either(Choice(-1), Integer(1)), "Most blocks of rows that are solved; -1 sets no limit.", kind="int"
    )
    max_rows: int | None = Parameter(
        None,
        Either(Nothing(), Integer(2)),
        "Most distinct rows that are fitted: a sample of more is drawn by their content, each class in proportion, and the "
        "certificate is about the sample.",
    )
    n_jobs: int | None = N_JOBS
    verbose: int = VERBOSE

    support_: Array = Fitted("array of shape (n_SV,)", "Numbers of the rows that support.")
    n_support_: Array = Fitted("array of shape (n_classes,)", "How many rows support: of each class, or in all.")
    support_vectors_: Any = Fitted(
        "array or sparse matrix of shape (n_SV, n_features)", 'These rows; empty for kernel="precomputed".'
    )
    dual_coef_: Array = Fitted("array of shape (n_functions, n_SV)", "β, the multipliers with their signs.")
    intercept_: Array = Fitted("array of shape (n_functions,)", "b.")
    n_iter_: Any = Fitted("int", "Blocks that were solved.")
    fit_status_: int = Fitted("int", "0 if the fit is as exact as `tol` asks, 1 if not.")
    shape_fit_: tuple[int, ...] = Fitted("tuple of int", "Shape of X.")

    def _resolved(self) -> Kernel:
        """The kernel as an object, its parameters as given."""
        if self.kernel == "poly":
            return Polynomial(int(self.degree), self.gamma, float(self.coef0))
        if self.kernel == "sigmoid":
            return Sigmoid(self.gamma, float(self.coef0))
        if self.kernel == "rbf":
            return RBF(self.gamma)
        if self.kernel == "laplacian":
            return Laplacian(self.gamma)
        return resolve_kernel(self.kernel)

    @property
    def _on_objects(self) -> bool:
        """Whether rows are not numbers: strings, sets, …"""
        kernel = self._resolved()
        return kernel.takes in ("objects", "anything") and not isinstance(kernel, Custom)

    def _gated(self, X: Any) -> Any:
        """X for the gate: the numbers of its rows where they hold no numbers."""
        return np.arange(len(X), dtype=np.float64)[:, None] if self._on_objects else X

    def _drawn(self, gated: Matrix, target: Array, weight: Array, kept: Array) -> tuple[Matrix, Array, Array, Array]:
        """At most `max_rows` distinct rows, each class in proportion; the others as if they had not been given."""
        n, self._claim = gated.shape[0], ""
        if self.max_rows is None or n <= int(self.max_rows):
            return gated, target, weight, kept
        csr = gated.tocsr() if is_sparse(gated) else gated
        first, which = equal_rows(csr, target)  # in an order that is as good as drawn, and depends on content alone
        most = int(self.max_rows)
        if first.shape[0] <= most:
            return gated, target, weight, kept
        taken = np.zeros(first.shape[0], dtype=bool)
        classes = target[first] if isinstance(self, ClassifierMixin) else np.zeros(first.shape[0])
        for one in np.unique(classes):
            members = np.flatnonzero(classes == one)
            taken[members[: max(1, most * members.shape[0] // first.shape[0])]] = True
        inside, kept = taken[which], kept.copy()
        kept[np.flatnonzero(kept)[~inside]] = False
        self._claim = f"the best for {int(inside.sum()):,} of {n:,} rows"
        return csr[inside], target[inside], weight[inside], kept

    def _sample(self, X: Any, gated: Matrix, target: Array, weight: Array, kept: Array) -> DistinctRows:
        """The rows of positive weight, and the kernel on the distinct ones."""
        gated, target, weight, kept = self._drawn(gated, target, weight, kept)
        kernel, n = self._resolved(), gated.shape[0]
        first = which = np.arange(n)
        if self._on_objects:
            rows: Any = [X[int(i)] for i in gated[:, 0]]
            del self.n_features_in_
        elif isinstance(kernel, Precomputed):
            if gated.shape[1] != kept.shape[0]:
                raise ValueError(
                    f"X must be a square matrix of similarities with kernel='precomputed'; got {kept.shape[0]} rows and "
                    f"{gated.shape[1]} columns."
                )
            dense = gated.toarray() if is_sparse(gated) else gated
            rows = np.asarray(dense, dtype=np.float64)[:, kept]
        else:
            rows = gated.tocsr() if is_sparse(gated) else gated
            first, which = equal_rows(rows, target)
        total = np.bincount(which, weights=weight)
        distinct = rows if first is which else rows[first]
        if self.gamma == "scale" and self.kernel in ("poly", "rbf", "laplacian", "sigmoid"):
            kernel.gamma = scaled_gamma(rows, weight)  # weights count repetitions here too
        self.kernel_ = kernel.bound(distinct)  # a kernel object sees each row once, so that they do here too
        return DistinctRows(
            rows, kept, Gram(self.kernel_, distinct), target[first], total, which, weight / total[which]
        )

    def _solved(self, gram: Gram, duals: Sequence[Dual], scales: Array, clock: Progress) -> list[Solved]:
        """Each dual until its gap is at most `tol` times its scale."""
        found = solve(
            gram,
            duals,
            min(float(self.tol), np.finfo(np.float64).max)
            * scales,  # any gap at all is still no gap where the scale is 0
            megabytes=float(self.cache_size),
            max_rounds=int(self.max_iter),
            threads=n_threads(self.n_jobs),
            each=lambda done: clock.update(done, len(duals), float("nan")),
        )
        return [
            Solved(dual, beta, judge(dual, beta, scores), rounds)
            for dual, (beta, scores, rounds, _) in zip(duals, found, strict=True)
        ]

    def _energy(self, gram: Gram, dual: Dual) -> float:
        """βᵀKβ at the start."""
        ((beta, scores, *_),) = solve(
            gram, [dual], np.zeros(1), megabytes=float(self.cache_size), max_rounds=0, threads=n_threads(self.n_jobs)
        )
        return max(float(beta.sum(axis=0) @ scores), 0.0)

    def _proof(self, gram: Gram) -> str:
        """Why nothing can be claimed: the kernel is no inner product, or nobody knows. Empty if it is one."""
        kernel = self.kernel_
        if by_construction(kernel):
            return ""
        if gram.n > PROVEN:
            return f"Whether {kernel} is an inner product is tested up to {PROVEN} rows only."
        K = gram.rows(np.arange(gram.n))
        size = float(np.abs(K).max(initial=0.0)) or 1.0
        if not np.isfinite(K).all():
            raise ValueError("the kernel matrix contains NaN or infinity.")
        if float(np.abs(K - K.T).max(initial=0.0)) > 1e-9 * size:
            return "The kernel matrix is not symmetric (see certifit.is_mercer), so the dual bounds nothing."
        shift = RELATIVE * max(float(np.trace(K)), size)
        try:
            scipy.linalg.cholesky(0.5 * (K + K.T) + shift * np.eye(gram.n), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return "The kernel matrix has negative eigenvalues (see certifit.is_mercer), so the dual bounds nothing."
        return ""

    def _certificate(
        self, solved: Solved, unit: float, scale: float, clock: Progress, doubt: str, note: str = ""
    ) -> Certificate:
        """The evidence in units of the mean loss; none where the kernel is no inner product."""
        objective, gap = solved.evidence.primal / unit, solved.evidence.gap / unit
        if doubt:
            return Certificate.absent(
                objective, doubt, scale=scale / unit, iterations=solved.rounds, seconds=clock.seconds
            )
        return Certificate(
            "duality gap",
            objective=objective,
            bound=objective - gap,
            scale=scale / unit,
            tol=float(self.tol),
            iterations=solved.rounds,
            seconds=clock.seconds,
            note=note,
            claim=self._claim,
        )

    def _keep_support(self, sample: DistinctRows, support: Array) -> None:
        """The supporting rows, numbered as the user numbers them."""
        self.support_ = np.flatnonzero(sample.kept)[support].astype(np.int32)
        if isinstance(self.kernel_, Precomputed):
            self.support_vectors_ = np.empty((0, 0))
        elif self._on_objects:
            self.support_vectors_ = [sample.rows[i] for i in support]
        else:
            self.support_vectors_ = sample.rows[support]
        columns = () if self._on_objects else (int(self.n_features_in_),)
        self.shape_fit_ = (int(sample.kept.shape[0]), *columns)

    def _keep_one(self, sample: DistinctRows, solved: Solved, certificate: Certificate) -> None:
        """What a machine with one function leaves behind; the intercept is its own."""
        beta = sample.spread(solved.beta.sum(axis=0))
        support = np.flatnonzero(beta)
        self.dual_coef_ = beta[None, support]
        self.n_support_ = np.array([support.size], dtype=np.int32)
        self.n_iter_ = max(solved.rounds, 1)
        self._kkt = sample.kinds(classes_of_kkt(solved.dual, solved.beta))
        self._keep_support(sample, support)
        self.fit_status_ = int(not certificate.certified and certificate.kind != "none")
        self._certify(certificate)

    def _scores(self, X: Any) -> tuple[Any, Array]:
        """X as checked, and Σ_i β_i k(x_i, x) of its rows for every function, shape (n, n_functions)."""
        check_is_fitted(self, "support_")
        coef = self._functions()
        rows: Any = list(X) if self._on_objects else check_x(self, X, reset=False, accept_sparse=("csr",))
        n = len(rows) if self._on_objects else rows.shape[0]
        if isinstance(self.kernel_, Precomputed):
            part = rows[:, self.support_]
            return rows, np.asarray((part.toarray() if is_sparse(part) else part) @ coef.T, dtype=np.float64)
        out = np.zeros((n, coef.shape[0]))
        if coef.shape[1]:  # far from zero, distances are those of rows about a center, as in the fit
            for part, similar in Points.of(self.kernel_, self.support_vectors_).similarities(rows):
                out[part] = similar @ coef.T
        return rows, out

    @property
    def coef_(self) -> Array:
        """w = Σ β_i x_i of the linear kernel, shape (n_functions, n_features)."""
        if not isinstance(self._resolved(), Linear):
            raise AttributeError("coef_ is there with kernel='linear' only.")
        check_is_fitted(self, "support_")
        return np.asarray(self._functions() @ self.support_vectors_)

    def _functions(self) -> Array:
        """β of every function, shape (n_functions, n_SV)."""
        return self.dual_coef_

    @property
    def kkt_(self) -> Array:
        """Class of each row, for each function: "none" (β = 0), "free" (between its limits), "bound" (at one)."""
        check_is_fitted(self, "support_")
        return np.asarray(KKT[self._kkt])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        return tags


def classes_of_kkt(dual: Dual, beta: Array) -> Array:
    """A number into `KKT` for each row of the problem: the variable that is furthest from zero decides."""
    bound = ((beta <= dual.low) & (dual.low < 0)) | ((beta >= dual.high) & (dual.high > 0))
    kinds = np.where(beta == 0, 0, np.where(bound, 2, 1))
    return np.asarray(kinds.max(axis=0), dtype=np.int8)
