"""Primal-dual predictor-corrector iterations on one-sided hinges.

    minimize  Σ_k h_k max(g_k·z − r_k, 0) + c·z + ½ zᵀQz      [+ ½‖w‖² ≤ ½ radius²]

With g·z − r = v − s and v, s ≥ 0 the optimality conditions are

    Gᵀa + c + Qz = 0,    a s = 0,    (h − a) v = 0,    0 ≤ a ≤ h

and Newton's method on them needs one matrix GᵀDG + Q with D = 1/(s/a + v/(h − a)) in each iteration.

Mehrotra (1992), On the implementation of a primal-dual interior point method; Portnoy and Koenker (1997),
The Gaussian hare and the Laplacian tortoise, for the bounded dual of quantile regression.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.optimization.interior_point.atoms import Atoms, NormalMatrix
from certifit.optimization.interior_point.problem import Array, Certified, Polyhedral, proven
from certifit.optimization.interior_point.vertex import LARGEST, vertex


@dataclass(frozen=True)
class CoreResult:
    """The best certified pair of a run."""

    certified: Certified
    iterations: int
    status: str
    message: str
    multiplier: float


def _step(ratio: float) -> float:
    """The longest step that keeps x + αΔx ≥ 0, given the least Δx/x."""
    return 1.0 if ratio >= -1.0 else -1.0 / ratio


class _Iterate:
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


def _farkas(atoms: Atoms, a: Array) -> bool:
    """Whether the multipliers of the hard atoms prove that no point satisfies them."""
    y = np.zeros_like(a)
    y[atoms.hard] = a[atoms.hard]
    total = float(y.sum())
    if not total > 0:
        return False
    y /= total
    image = atoms.adjoint(y)
    margin = -float(atoms.position[atoms.hard] @ y[atoms.hard])
    if atoms.radius is not None:
        d = atoms.problem.n_coef
        margin -= atoms.radius * float(np.linalg.norm(image[:d]))
        image[:d] = 0.0
    return margin > 1e-9 and float(np.abs(image).max(initial=0.0)) <= 1e-7 * margin


def _recedes(atoms: Atoms, direction: Array) -> bool:
    """Whether the objective decreases forever along a direction."""
    size = float(np.abs(direction).max(initial=0.0))
    if atoms.radius is not None or not 0 < size < np.inf:
        return False
    direction = direction / size
    along = atoms.forward(direction)
    if atoms.hard.size and float(along[atoms.hard].max()) > 1e-6:
        return False
    finite = np.isfinite(atoms.height)
    slope = float(atoms.height[finite] @ np.maximum(along[finite], 0.0) + atoms.linear @ direction)
    return slope < -1e-7 and float(atoms.quadratic @ (direction * direction)) <= 1e-12


def solve_core(problem: Polyhedral, tol: float, max_iter: int, relative: float = 0.0) -> CoreResult:
    """Solve a scaled problem to the absolute gap tol, or to that share of the objective."""
    atoms = Atoms(problem)
    matrix = NormalMatrix(atoms)
    result = _iterate(atoms, matrix, tol, max_iter, relative)
    if result.status == "stalled" and matrix.other_form():
        # The two forms of the matrix lose their digits in different places.
        second = _iterate(atoms, matrix, tol, max_iter, relative)
        best = _better(result.certified, second.certified)
        closed = best.violation <= FEASIBLE and best.objective - best.bound <= tol
        used = result.iterations + second.iterations
        status = "optimal" if closed else second.status
        return CoreResult(best, used, status, second.message, second.multiplier)
    return result


def _iterate(atoms: Atoms, matrix: NormalMatrix, tol: float, max_iter: int, relative: float) -> CoreResult:
    """Run from a fresh start to the gap, a proof of infeasibility, or the end of progress."""
    problem = atoms.problem
    d = problem.n_coef
    top = atoms.design.n_columns
    point = _Iterate(atoms, matrix)
    quadratic, linear = atoms.quadratic, atoms.linear
    coupled = bool(quadratic.any()) or atoms.radius is not None
    hard = atoms.hard
    pairs = 2 * atoms.count - hard.size + (1 if atoms.radius is not None else 0)

    best: Certified | None = None
    target = 2.0 * tol
    status, message = "max_iter", f"stopped after {max_iter} iterations"
    short, stalled = 0, 0
    previous = np.inf
    iteration = 0
    vertices = not coupled and relative == 0 and atoms.size <= LARGEST
    extra = 3  # iterations a linear program may spend below the tolerance to find its exact vertex

    def record() -> float:
        """Certify the current point, keep the best of both sides, return the gap."""
        nonlocal best
        best = _better(best, proven(problem, point.z[:top], atoms.theta(point.a), point.lam_ball()))
        return best.objective - best.bound if best.violation <= FEASIBLE else np.inf

    def at_vertex(strict: bool = True) -> bool:
        """Try the nearest vertex; whether it is exact to rounding."""
        nonlocal best
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            D = np.minimum(1.0 / (point.s / point.a + point.v / point.b), 1e200)
        found = vertex(atoms, point.z, point.a, D, strict=strict)
        if found is None:
            return False
        z, a = found
        price = float(a[-1]) if problem.ball is not None else 0.0
        best = _better(best, proven(problem, z[:top], atoms.theta(a), price))
        closed = best.violation <= FEASIBLE and best.objective - best.bound <= min(tol, 1e-13 * best.objective)
        return closed

    for iteration in range(1, max_iter + 1):
        a, b, s, v, e, z = point.a, point.b, point.s, point.v, point.e, point.z
        total = point.complementarity()
        infeasible = float(np.abs(e[hard] + s[hard]).max(initial=0.0)) if hard.size else 0.0
        if relative > 0:
            value = float(atoms.height @ np.maximum(e, 0.0) + linear @ z + 0.5 * (quadratic @ (z * z)))
            tol = max(tol, relative * (value + atoms.constant))
            target = 2.0 * tol
        if total <= target and infeasible <= FEASIBLE:
            # The vertex first: when it is exact, the interior point needs no repair.
            exact = vertices and at_vertex()
            if exact or record() <= tol:
                status, message = "optimal", "the duality gap is below the tolerance"
                extra -= 1
                if exact or not vertices or extra < 0:
                    iteration -= 1
                    break
            else:
                target = 0.2 * total
        if not np.isfinite(total) or total <= 1e-17 * pairs:
            status, message = "stalled", "rounding errors stopped the iterations"
            break
        if hard.size and iteration > 5 and float(a[hard].max()) > 1e3 and infeasible > FEASIBLE and _farkas(atoms, a):
            status, message = "infeasible", "the hard constraints contradict each other"
            break
        stalled = stalled + 1 if total > 0.98 * previous and infeasible <= FEASIBLE else 0
        if stalled >= 8 or short >= 4:
            status, message = "stalled", "the steps became too short"
            break
        previous = total
        mu = total / pairs

        inverse_a = 1.0 / a
        inverse_b = 1.0 / b
        inverse_b[hard] = 0.0
        slope_s = s * inverse_a
        slope_v = v * inverse_b
        D = 1.0 / (slope_s + slope_v)
        w = z[:d]
        kappa = point.lam / point.slack if atoms.radius is not None else 0.0
        if not matrix.factor(D, ridge=point.lam, kappa=kappa, w=w):
            status, message = "stalled", "the normal matrix is not positive definite"
            break
        fixed = linear + quadratic * z
        excess = 0.0
        if atoms.radius is not None:
            fixed[:d] += point.lam * w
            excess = 0.5 * float(w @ w) - 0.5 * atoms.radius**2 + point.slack

        # Predictor: aim at complementarity zero.
        rhs = -fixed - atoms.adjoint(a + D * e)
        if atoms.radius is not None:
            rhs[:d] -= w * (point.lam * (excess / point.slack - 1.0))
        dz = matrix.solve(rhs)
        da = atoms.forward(dz)
        da += e
        da *= D
        ratio_a = da * inverse_a
        ratio_b = da * inverse_b
        step_p = min(_step(-1.0 - float(ratio_a.max())), _step(-1.0 + float(ratio_b.min())))
        step_d = min(_step(float(ratio_a.min())), _step(-float(ratio_b.max())))
        ds = -s - slope_s * da
        dv = slope_v * da - v
        d_slack = d_lam = 0.0
        if atoms.radius is not None:
            along = float(w @ dz[:d])
            d_slack = -excess - along
            d_lam = -point.lam + point.lam * (excess + along) / point.slack
            step_p = min(step_p, _step(d_slack / point.slack))
            step_d = min(step_d, _step(d_lam / point.lam))
        if coupled:
            step_p = step_d = min(step_p, step_d)
        cross_s, cross_v = float(da @ ds), float(da @ dv)
        hope = total + step_d * float(da @ s - da @ v) + step_p * float(a @ ds + b @ dv)
        hope += step_p * step_d * (cross_s - cross_v)
        if atoms.radius is not None:
            hope += step_d * d_lam * point.slack + step_p * point.lam * d_slack + step_p * step_d * d_lam * d_slack
        sigma = min(max(hope / total, 0.0), 1.0) ** 3
        centre = max(sigma, 1e-8) * mu
        own = centre * atoms.share

        # Corrector: the centre, and the products the predictor left out.
        push_s = (own - da * ds) * inverse_a
        push_v = (own + da * dv) * inverse_b
        rho = e + push_s
        rho -= push_v
        rhs = -fixed - atoms.adjoint(a + D * rho)
        tau = curved = 0.0
        if atoms.radius is not None:
            tau = centre - point.lam * point.slack - d_lam * d_slack
            curved = excess + 0.5 * float(dz[:d] @ dz[:d])
            rhs[:d] -= w * ((tau + point.lam * curved) / point.slack) + d_lam * dz[:d]
        dz = matrix.solve(rhs)
        image = atoms.forward(dz)
        da = image + rho
        da *= D
        ds = push_s - s
        ds -= slope_s * da
        dv = push_v - v
        dv += slope_v * da
        np.multiply(da, inverse_a, out=ratio_a)
        np.multiply(da, inverse_b, out=ratio_b)
        least = float((ds / s).min())
        if hard.size:
            least_v = float(np.divide(dv, v, out=np.zeros_like(v), where=v > 0).min())
        else:
            least_v = float((dv / v).min())
        step_p = min(_step(least), _step(least_v))
        step_d = min(_step(float(ratio_a.min())), _step(-float(ratio_b.max())))
        if atoms.radius is not None:
            along = float(w @ dz[:d])
            d_slack = -curved - along
            d_lam = (tau + point.lam * (curved + along)) / point.slack
            step_p = min(step_p, _step(d_slack / point.slack))
            step_d = min(step_d, _step(d_lam / point.lam))
        keep = 0.9995 if min(step_p, step_d) > 0.9 else 0.99
        if coupled:
            step_p = step_d = min(step_p, step_d)
        step_p, step_d = min(1.0, keep * step_p), min(1.0, keep * step_d)
        if not (np.isfinite(step_p) and np.isfinite(step_d) and np.isfinite(dz).all()):
            status, message = "stalled", "rounding errors stopped the iterations"
            break
        short = short + 1 if max(step_p, step_d) < 1e-5 else 0

        z += step_p * dz
        e += step_p * image
        s += step_p * ds
        v += step_p * dv
        a += step_d * da
        b -= step_d * da
        b[hard] = 1.0
        if atoms.radius is not None:
            point.lam += step_d * d_lam
            w = z[:d]
            point.slack += step_p * d_slack
            inner = 0.5 * atoms.radius**2 - 0.5 * float(w @ w)
            if inner > 0.1 * point.slack:
                point.slack = inner  # an interior point can use its true slack
    if status != "optimal":
        gap = record()
        if gap > tol and vertices and status == "stalled" and best is not None:
            at_vertex(strict=False)
            gap = best.objective - best.bound if best.violation <= FEASIBLE else np.inf
        if gap <= tol:
            status, message = "optimal", "the duality gap is below the tolerance"
        elif hard.size and _farkas(atoms, point.a):
            status, message = "infeasible", "the hard constraints contradict each other"
        elif best is None or not best.bound > -np.inf:
            # The dual residual that no multiplier removes points along the ray, in the metric of the last
            # matrix.
            residual = atoms.adjoint(point.a) + linear + quadratic * point.z
            rays = [point.z, -residual, *([-matrix.solve(residual)] if matrix.ready else [])]
            if any(_recedes(atoms, ray) for ray in rays):
                status, message = "unbounded", "the objective decreases without bound"
    assert best is not None
    return CoreResult(best, iteration, status, message, point.lam_ball())


#: hard constraints may be exceeded by this much, in scaled units where the data are of order one
FEASIBLE = 1e-9


def _better(old: Certified | None, new: Certified) -> Certified:
    """The lower objective of one and the higher bound of the other: each is valid on its own."""
    if old is None:
        return new
    primal = new
    if old.violation <= FEASIBLE and (new.violation > FEASIBLE or old.objective < new.objective):
        primal = old
    dual = old if old.bound > new.bound else new
    return Certified(primal.z, dual.theta, primal.objective, dual.bound, primal.violation)
