"""A point of the interior point method, and the predictor-corrector step from it (the notation is that of core.py)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.optimization.interior_point.atoms import Atoms, NormalMatrix
from certifit.optimization.interior_point.problem import Array

__all__ = ["Direction", "Equations", "Iterate"]


@dataclass
class Direction:
    """Changes of all parts of a point, and how far its primal and its dual parts may go along them."""

    dz: Array
    da: Array
    ds: Array
    dv: Array
    d_slack: float
    d_lam: float
    step_p: float
    step_d: float
    image: Array | None = None
    """Of dz, where it is kept."""


def reach(ratio: float) -> float:
    """The longest step that keeps x + αΔx ≥ 0, given the least Δx/x."""
    return 1.0 if ratio >= -1.0 else -1.0 / ratio


class Iterate:
    """z, its scores and the four positive vectors a, b = h − a, s, v."""

    def __init__(self, atoms: Atoms, matrix: NormalMatrix) -> None:
        h = atoms.height
        hard = atoms.hard
        self.atoms = atoms
        typical = 1.0
        soft = h[np.isfinite(h)]
        if soft.size:
            typical = float(soft.mean())
        # Least squares through the kinks: close in scale to the solution, and one factorization only.
        weight = np.minimum(h, 4 * typical) / max(typical, 1e-300)
        weight[hard] = 1e-3 if hard.size < h.size else 1.0
        self.z = np.zeros(atoms.size)
        ridge = 1e-8 * float(weight.mean()) if weight.size else 1.0
        if matrix.factor(weight, ridge=ridge):
            z = matrix.solve(atoms.adjoint(weight * atoms.position))
            if np.isfinite(z).all():
                self.z = z
        if atoms.radius is not None:
            d = atoms.problem.n_coef
            norm = float(np.linalg.norm(self.z[:d]))
            if norm > 0.7 * atoms.radius:
                self.z[:d] *= 0.7 * atoms.radius / norm
        self.e = atoms.forward(self.z) - atoms.position
        spread = float(np.abs(self.e[: atoms.n2]).mean()) if atoms.n2 else 1.0
        spread = max(spread, 0.1)  # a fit through all kinks would start on the boundary
        own = spread * atoms.room  # so that the products are those of the centre
        self.s = np.maximum(-self.e, 0.0) + own
        self.v = np.maximum(self.e, 0.0) + own
        with np.errstate(invalid="ignore"):
            self.a = h * (self.v / (self.s + self.v))
        if hard.size:
            self.s[hard] = np.maximum(-self.e[hard], spread)
            self.v[hard] = 0.0
            level = typical * spread
            self.a[hard] = level / self.s[hard]
        self.b = h - self.a
        self.b[hard] = 1.0
        self.lam, self.slack = 0.0, 1.0
        if atoms.radius is not None:
            w = self.z[: atoms.problem.n_coef]
            self.slack = 0.5 * atoms.radius**2 - 0.5 * float(w @ w)
            count = h.size
            mean = float(self.a @ self.s + self.b @ self.v) / max(count, 1)
            self.lam = mean / self.slack

    def lam_ball(self) -> float:
        """The price of the ball: its own multiplier, or that of Σ t ≤ radius."""
        ball = self.atoms.problem.ball
        if ball is None:
            return 0.0
        return self.lam if ball[0] == "l2" else float(self.a[-1])

    def complementarity(self) -> float:
        """The sum of all products that vanish at the solution."""
        total = float(self.a @ self.s + self.b @ self.v)
        return total + (self.lam * self.slack if self.atoms.radius is not None else 0.0)

    def move(self, way: Direction) -> None:
        """Along a direction, as far as its steps say."""
        step_p, step_d = way.step_p, way.step_d
        assert way.image is not None
        self.z += step_p * way.dz
        self.e += step_p * way.image
        self.s += step_p * way.ds
        self.v += step_p * way.dv
        self.a += step_d * way.da
        self.b -= step_d * way.da
        self.b[self.atoms.hard] = 1.0
        radius = self.atoms.radius
        if radius is not None:
            self.lam += step_d * way.d_lam
            w = self.z[: self.atoms.problem.n_coef]
            self.slack += step_p * way.d_slack
            inner = 0.5 * radius**2 - 0.5 * float(w @ w)
            if inner > 0.1 * self.slack:
                self.slack = inner  # an interior point can use its true slack


class Equations:
    """Newton's equations at a point: one matrix, and what both of its right hand sides share."""

    def __init__(self, point: Iterate, matrix: NormalMatrix) -> None:
        atoms = point.atoms
        self.point, self.matrix = point, matrix
        self.inverse_a, self.inverse_b = 1.0 / point.a, 1.0 / point.b
        self.inverse_b[atoms.hard] = 0.0
        self.slope_s, self.slope_v = point.s * self.inverse_a, point.v * self.inverse_b
        self.D = 1.0 / (self.slope_s + self.slope_v)
        self.d, self.ball = atoms.problem.n_coef, atoms.radius is not None
        self.w = point.z[: self.d]
        kappa = point.lam / point.slack if self.ball else 0.0
        self.regular = bool(matrix.factor(self.D, ridge=point.lam, kappa=kappa, w=self.w))
        self.fixed = atoms.linear + atoms.quadratic * point.z
        self.excess = 0.0
        if atoms.radius is not None:
            self.fixed[: self.d] += point.lam * self.w
            self.excess = 0.5 * float(self.w @ self.w) - 0.5 * atoms.radius**2 + point.slack

    def predicted(self, coupled: bool) -> Direction:
        """Toward complementarity zero."""
        point, d = self.point, self.d
        rhs = -self.fixed - point.atoms.adjoint(point.a + self.D * point.e)
        if self.ball:
            rhs[:d] -= self.w * (point.lam * (self.excess / point.slack - 1.0))
        dz = self.matrix.solve(rhs)
        da = point.atoms.forward(dz)
        da += point.e
        da *= self.D
        ratio_a, ratio_b = da * self.inverse_a, da * self.inverse_b
        step_p = min(reach(-1.0 - float(ratio_a.max())), reach(-1.0 + float(ratio_b.min())))
        step_d = min(reach(float(ratio_a.min())), reach(-float(ratio_b.max())))
        ds = -point.s - self.slope_s * da
        dv = self.slope_v * da - point.v
        way = Direction(dz, da, ds, dv, 0.0, 0.0, step_p, step_d)
        if self.ball:
            along = float(self.w @ dz[:d])
            way.d_slack = -self.excess - along
            way.d_lam = -point.lam + point.lam * (self.excess + along) / point.slack
        return self._held(way, coupled)

    def hope(self, way: Direction, total: float) -> float:
        """What a direction would leave of the products."""
        point, da, ds, dv, step_p, step_d = self.point, way.da, way.ds, way.dv, way.step_p, way.step_d
        cross_s, cross_v = float(da @ ds), float(da @ dv)
        left = total + step_d * float(da @ point.s - da @ point.v) + step_p * float(point.a @ ds + point.b @ dv)
        left += step_p * step_d * (cross_s - cross_v)
        if self.ball:
            d_lam, d_slack = way.d_lam, way.d_slack
            left += step_d * d_lam * point.slack + step_p * point.lam * d_slack + step_p * step_d * d_lam * d_slack
        return left

    def corrected(self, first: Direction, centre: float, coupled: bool) -> Direction:
        """Toward products of that size, with those of the changes that the prediction left out."""
        point, d, hard = self.point, self.d, self.point.atoms.hard
        own = centre * point.atoms.share
        push_s = (own - first.da * first.ds) * self.inverse_a
        push_v = (own + first.da * first.dv) * self.inverse_b
        rho = point.e + push_s
        rho -= push_v
        rhs = -self.fixed - point.atoms.adjoint(point.a + self.D * rho)
        tau = curved = 0.0
        if self.ball:
            tau = centre - point.lam * point.slack - first.d_lam * first.d_slack
            curved = self.excess + 0.5 * float(first.dz[:d] @ first.dz[:d])
            rhs[:d] -= self.w * ((tau + point.lam * curved) / point.slack) + first.d_lam * first.dz[:d]
        dz = self.matrix.solve(rhs)
        image = point.atoms.forward(dz)
        da = image + rho
        da *= self.D
        ds = push_s - point.s
        ds -= self.slope_s * da
        dv = push_v - point.v
        dv += self.slope_v * da
        ratio_a, ratio_b = da * self.inverse_a, da * self.inverse_b
        some = point.v > 0 if hard.size else True
        least_v = float(np.divide(dv, point.v, out=np.zeros_like(dv), where=some).min())
        step_p = min(reach(float((ds / point.s).min())), reach(least_v))
        step_d = min(reach(float(ratio_a.min())), reach(-float(ratio_b.max())))
        way = Direction(dz, da, ds, dv, 0.0, 0.0, step_p, step_d, image)
        if self.ball:
            along = float(self.w @ dz[:d])
            way.d_slack = -curved - along
            way.d_lam = (tau + point.lam * (curved + along)) / point.slack
        way = self._held(way, coupled)
        keep = 0.9995 if min(way.step_p, way.step_d) > 0.9 else 0.99
        way.step_p, way.step_d = min(1.0, keep * way.step_p), min(1.0, keep * way.step_d)
        return way

    def _held(self, way: Direction, coupled: bool) -> Direction:
        """With steps that keep the ball's own pair positive, and are one where primal and dual depend on each other."""
        if self.ball:
            way.step_p = min(way.step_p, reach(way.d_slack / self.point.slack))
            way.step_d = min(way.step_d, reach(way.d_lam / self.point.lam))
        if coupled:
            way.step_p = way.step_d = min(way.step_p, way.step_d)
        return way
