"""One-sided hinges: the atoms of a polyhedral problem, and the matrix of a Newton step on them.

    Σ_i ℓ_i(x_i·w + b) + Σ_j [l1_j|w_j| + box_j(w_j)] + ball(w) = Σ_k h_k max(g_k·z − r_k, 0) + linear part

A kink with slopes −low and high is one atom of height low + high and a linear term; a tube is two atoms;
|w_j| is an atom on the row e_j; a box or a hard constraint is an atom of infinite height. The matrix GᵀDG +
Q is factored in its d×d or its n×n form (Woodbury), whichever is smaller.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from certifit._types import is_sparse
from certifit.optimization.interior_point.problem import Array, Polyhedral

LIGHT = 1e-6  # height, beside the mean, below which there is no more room around a kink


class Atoms:
    """The one-sided hinges of a problem and the products with their rows G.

    Order of the atoms: one for each sample; a second one for the samples with two kinks; the rows of `extra`,
    which act on the coefficients (L1, box) or on auxiliary variables (L1 ball).
    """

    def __init__(self, problem: Polyhedral) -> None:
        self.problem = problem
        self.design = problem.design
        n, d = self.design.n_rows, problem.n_coef
        left, right, low, high = problem.lower, problem.upper, problem.low, problem.high
        above = (high > 0) & np.isfinite(right)
        below = (low > 0) & np.isfinite(left)
        both = above & below
        kink = both & (left == right) & np.isfinite(np.minimum(low, high))
        mirrored = kink & np.isinf(low)
        negative = (below & ~above) | mirrored
        self.sign = np.where(negative, -1.0, 1.0) if negative.any() else None
        self.base = np.where(mirrored, high, np.where(kink, -low, 0.0)) if kink.any() else None
        self.second = np.flatnonzero(both & ~kink)
        height = np.where(kink, low + high, np.where(negative, low, high))
        kink_at = np.where(negative, -left, right)

        top = self.design.n_columns
        linear = problem.linear + (0.0 if self.base is None else self.design.adjoint(self.base))
        rows: list[tuple[Any, Any, Any, Any]] = []  # columns, values, height, position
        linear[:d] += np.where(problem.box_lower >= 0, problem.l1, np.where(problem.box_upper <= 0, -problem.l1, 0.0))
        signless = (problem.l1 > 0) & (problem.box_lower < 0) & (problem.box_upper > 0)
        free = np.flatnonzero(signless)
        linear[free] -= problem.l1[free]
        rows.append((free, np.ones(free.size), 2 * problem.l1[free], np.zeros(free.size)))
        for bound, side in ((problem.box_upper, 1.0), (problem.box_lower, -1.0)):
            held = np.flatnonzero(np.isfinite(bound))
            rows.append((held, np.full(held.size, side), np.full(held.size, np.inf), side * bound[held]))
        column, value, tall, at = (np.concatenate([row[i] for row in rows]) for i in range(4))
        self.extra_column, self.extra_value = column.astype(np.intp), value
        self.extra: Any = None
        self.size = top
        if problem.ball is not None and problem.ball[0] == "l1":
            # |w_j| ≤ t_j, Σ t_j ≤ radius; the t follow the coefficients and the intercept
            self.size = top + d
            eye, none = sp.eye_array(d, format="csr"), sp.csr_array((d, top - d))
            single = sp.csr_array((value, (np.arange(column.size), column)), shape=(column.size, self.size))
            total = np.r_[np.zeros(top), np.ones(d)][None, :]
            self.extra = sp.csr_array(
                sp.vstack([single, sp.hstack([eye, none, -eye]), sp.hstack([-eye, none, -eye]), sp.csr_array(total)])
            )
            self.extra_t = sp.csr_array(self.extra.T)
            tall = np.concatenate([tall, np.full(2 * d + 1, np.inf)])
            at = np.concatenate([at, np.zeros(2 * d), [problem.ball[1]]])
        self.constant = 0.0 if self.base is None else -float(self.base @ np.where(kink, right, 0.0))
        self.radius = problem.ball[1] if problem.ball is not None and problem.ball[0] == "l2" else None
        pad = np.zeros(self.size - top)
        self.linear = np.concatenate([linear, pad])
        self.quadratic = np.concatenate([problem.l2, np.zeros(self.size - d)])
        self.height = np.concatenate([height, low[self.second], tall])
        self.position = np.concatenate([kink_at, -left[self.second], at])
        self.hard = np.flatnonzero(np.isinf(self.height))
        self.share, self.room = _shares(self.height)
        self.n, self.n2, self.count = n, n + self.second.size, self.height.size

    def forward(self, z: Array) -> Array:
        """G z"""
        score = self.design.forward(z[: self.design.n_columns])
        first = score if self.sign is None else score * self.sign
        if self.count == self.n:
            return first
        out = np.empty(self.count)
        out[: self.n] = first
        np.negative(score[self.second], out=out[self.n : self.n2])
        out[self.n2 :] = z[self.extra_column] * self.extra_value if self.extra is None else self.extra @ z
        return out

    def fold(self, a: Array) -> Array:
        """The signed sum of the atoms of each sample."""
        out = a[: self.n] if self.sign is None else a[: self.n] * self.sign
        if self.second.size:
            out = out.copy()
            out[self.second] -= a[self.n : self.n2]
        return out

    def adjoint(self, a: Array) -> Array:
        """Gᵀ a"""
        out = np.zeros(self.size)
        out[: self.design.n_columns] = self.design.adjoint(self.fold(a))
        tail = a[self.n2 :]
        if self.extra is not None:
            out += self.extra_t @ tail
        elif tail.size:
            out += np.bincount(self.extra_column, tail * self.extra_value, self.size)
        return out

    def theta(self, a: Array) -> Array:
        """The dual variable of each sample."""
        folded = self.fold(a)
        return folded.copy() if self.base is None else folded + self.base

    def split(self, theta: Array) -> Array:
        """Atoms of the samples that fold back to theta."""
        shifted = theta if self.base is None else theta - self.base
        a = np.zeros(self.count)
        a[: self.n] = shifted if self.sign is None else shifted * self.sign
        a[self.n : self.n2] = np.maximum(-a[self.second], 0.0)
        a[: self.n] = np.maximum(a[: self.n], 0.0)
        return a

    def rows(self, index: NDArray[np.intp]) -> Array:
        """The chosen rows of G, dense."""
        out = np.zeros((index.size, self.size))
        first, second, extra = index < self.n, (index >= self.n) & (index < self.n2), index >= self.n2
        sample = np.concatenate([index[first], self.second[index[second] - self.n]])
        sign = np.ones(index.size)
        sign[second] = -1.0
        if self.sign is not None:
            sign[first] = self.sign[index[first]]
        place = np.concatenate([np.flatnonzero(first), np.flatnonzero(second)])
        out[place, : self.design.n_columns] = self.design.rows(sample) * sign[place, None]
        tail = index[extra] - self.n2
        if self.extra is not None:
            out[extra] = self.extra[tail].toarray()
        else:
            out[np.flatnonzero(extra), self.extra_column[tail]] = self.extra_value[tail]
        return out

    def row_weight(self, D: Array) -> Array:
        """The diagonal of D summed over the atoms of each sample."""
        if not self.second.size:
            return D[: self.n]
        out = D[: self.n].copy()
        out[self.second] += D[self.n : self.n2]
        return out


def _shares(height: Array) -> tuple[Array, Array]:
    """Of each atom: the size of its products on the central path, and the room around its kink that goes with it, both
    beside those of an atom of the mean height.

    Equal products would keep a row of next to no weight, whose multipliers have next to no room, where it stops the steps of
    all; products in proportion to the heights, as repeated rows have them, let every light row stop the steps that
    heavy ones ask for. Their geometric mean does neither.
    """
    soft = np.isfinite(height)
    mean = float(height[soft].mean()) if soft.any() else 1.0
    size = height / (mean or 1.0)
    room = 1.0 / np.sqrt(np.maximum(np.where(soft, size, 1.0), LIGHT))
    share = np.where(soft, size, 1.0) * room
    level = float(share[soft].mean()) or 1.0 if soft.any() else 1.0
    return np.where(soft, share / level, 1.0), np.where(soft, room / level, 1.0)


class NormalMatrix:
    """Factors GᵀDG + Q + ridge·I + κ wwᵀ, in the smaller of two equivalent forms."""

    def __init__(self, atoms: Atoms) -> None:
        self.atoms = atoms
        design = atoms.design
        d = atoms.problem.n_coef
        held = atoms.quadratic[:d] > 0
        if atoms.extra is None:
            held[atoms.extra_column] = True
        # The n×n form costs n²d against nd²; it wants a diagonal on every coefficient.
        wide = atoms.extra is None and 0 < design.n_rows < 0.8 * d
        self.small = wide and (bool(held.all()) or d > 2000)
        self.choice = wide and d <= 2000
        self.ready = False

    def other_form(self) -> bool:
        """Switch to the other form of the system; False where only one is affordable."""
        if self.choice:
            self.small = not self.small
        return self.choice

    def factor(self, D: Array, ridge: float = 0.0, kappa: float = 0.0, w: Array | None = None) -> bool:
        """Prepare `solve`; False when no regularization makes the matrix positive definite."""
        self.ready = self._factor(D, ridge, kappa, w)
        return self.ready

    def _factor(self, D: Array, ridge: float, kappa: float, w: Array | None) -> bool:
        atoms = self.atoms
        d = atoms.problem.n_coef
        diagonal = atoms.quadratic.copy()
        diagonal[:d] += ridge
        if atoms.extra is None and atoms.n2 < atoms.count:
            diagonal += np.bincount(atoms.extra_column, D[atoms.n2 :], atoms.size)
        weight = atoms.row_weight(D)
        self.rank_one = None
        self.matrix: Any = None  # the last ones make room
        self.cholesky: Array | None = None
        if self.small:
            if not self._factor_small(weight, diagonal):
                return False
            if kappa > 0 and w is not None:
                long = np.concatenate([w, np.zeros(atoms.size - d)])
                image = self._solve_small(long)
                self.rank_one = (long, image, 1.0 / kappa + float(long @ image))
            return True
        matrix = atoms.design.gram(weight)
        if is_sparse(matrix):
            return self._factor_sparse(matrix, D, diagonal, kappa, w)
        top = atoms.design.n_columns
        if atoms.extra is not None:
            full = (atoms.extra_t.multiply(D[None, atoms.n2 :]).tocsr() @ atoms.extra).toarray()
            full[:top, :top] += matrix
            matrix = full
        np.einsum("ii->i", matrix)[:] += diagonal
        if kappa > 0 and w is not None:
            matrix[:d, :d] += kappa * np.outer(w, w)
        self.matrix = matrix
        self.scale, self.cholesky = _jacobi_cholesky(matrix)
        self.sparse_solve: Any = None
        return self.cholesky is not None

    def _factor_sparse(self, matrix: Any, D: Array, diagonal: Array, kappa: float, w: Array | None) -> bool:
        atoms = self.atoms
        top = atoms.design.n_columns
        if atoms.extra is not None:
            grown = sp.csc_array((atoms.size, atoms.size))
            grown = sp.block_diag([matrix, sp.csc_array((atoms.size - top, atoms.size - top))], format="csc")
            matrix = grown + sp.csc_array(atoms.extra_t.multiply(D[None, atoms.n2 :]).tocsr() @ atoms.extra)
        peak = matrix.diagonal() + diagonal
        shift = 1e-13 * np.where(peak > 0, peak, 1.0)
        matrix = sp.csc_array(matrix + sp.diags_array(diagonal + shift))
        try:
            lu = sp.linalg.splu(matrix, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        except RuntimeError:
            return False
        self.matrix, self.cholesky, self.sparse_solve = matrix, None, lu.solve
        if kappa > 0 and w is not None:
            long = np.concatenate([w, np.zeros(atoms.size - w.size)])
            image = lu.solve(long)
            self.rank_one = (long, image, 1.0 / kappa + float(long @ image))
        return True

    def _factor_small(self, weight: Array, diagonal: Array) -> bool:
        atoms = self.atoms
        d = atoms.problem.n_coef
        n = atoms.n
        scores = atoms.design
        # An unpenalized coefficient gets a proximal term: its direction is exact, only its length is damped.
        floor = 1e-8 * min(1.0, float(np.sum(weight)) / n)
        self.inverse = 1.0 / np.where(diagonal[:d] > 0, diagonal[:d], floor)
        wide = np.zeros(atoms.size)
        wide[:d] = self.inverse
        matrix = scores.outer(wide)
        self.inverse_weight = 1.0 / np.maximum(weight, 1e-300)
        np.einsum("ii->i", matrix)[:] += self.inverse_weight
        if atoms.problem.intercept:
            # Σ t is prescribed, so a multiple of 11ᵀ may be added: K alone can be singular, the pair is not.
            self.lift = float(np.trace(matrix)) / n**2
            matrix += self.lift
        self.scale, self.cholesky = _jacobi_cholesky(matrix)
        if self.cholesky is None:
            return False
        if atoms.problem.intercept:
            self.ones = self._inner(np.ones(n))
        return True

    def _inner(self, rhs: Array) -> Array:
        out, _ = dpotrs(self.cholesky, rhs * self.scale, lower=1)
        return np.asarray(out * self.scale)

    def _blocks(self, rhs: Array, residual: Array) -> tuple[Array, Array]:
        # K t = residual + X M r_w + 1 Δb, 1·t = r_b, Δw = M (r_w − Xᵀt), with K = D⁻¹ + X M Xᵀ, M the
        # inverse diagonal
        atoms = self.atoms
        d = atoms.problem.n_coef
        step = np.zeros(atoms.size)
        step[:d] = self.inverse * rhs[:d]
        t = self._inner(residual + atoms.design.forward(step))
        if atoms.problem.intercept:
            shift = (rhs[d] - float(t.sum())) / float(self.ones.sum())
            t += shift * self.ones
            step[d] = shift - self.lift * rhs[d]
        step[:d] -= self.inverse * atoms.design.adjoint(t)[:d]
        return step, t

    def _solve_small(self, rhs: Array) -> Array:
        # The Schur complement loses digits that the sparse system [diag Xᵀ; −X D⁻¹] still has: refine on
        # that one.
        atoms = self.atoms
        d = atoms.problem.n_coef
        step, t = self._blocks(rhs, np.zeros(atoms.n))
        for _ in range(2):
            left = rhs - atoms.design.adjoint(t)
            left[:d] -= step[:d] / self.inverse
            more, dt = self._blocks(left, atoms.design.forward(step) - t * self.inverse_weight)
            step += more
            t += dt
        return step

    def solve(self, rhs: Array) -> Array:
        """The Newton step, refined once against the unregularized matrix."""
        if self.small:
            step = self._solve_small(rhs)
        elif self.sparse_solve is not None:
            step = self.sparse_solve(rhs)
        else:
            step = self._cholesky_solve(rhs)
            step += self._cholesky_solve(rhs - self.matrix @ step)
            return step
        if self.rank_one is not None:
            long, image, denominator = self.rank_one
            step = step - image * (float(long @ step) / denominator)
        return step

    def _cholesky_solve(self, rhs: Array) -> Array:
        out, _ = dpotrs(self.cholesky, rhs * self.scale, lower=1)
        return np.asarray(out * self.scale)


def _jacobi_cholesky(matrix: Array) -> tuple[Array, Array | None]:
    """Cholesky factor of the matrix scaled to unit diagonal, with the least regularization that works."""
    diagonal = np.diag(matrix)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    for shift in (1e-14, 1e-12, 1e-10, 1e-8, 1e-6):
        scaled = np.multiply(matrix, scale, order="F")  # as LAPACK wants it, which leaves the factor in its place
        scaled *= scale[:, None]
        if not np.isfinite(scaled).all():
            return scale, None
        np.einsum("ii->i", scaled)[:] = np.where(diagonal > 0, 1.0 + shift * max(1.0, 0.1 * scale.size), 1.0)
        factor, info = dpotrf(scaled, lower=1, overwrite_a=1, clean=0)
        if info == 0:
            return scale, factor
    return scale, None
