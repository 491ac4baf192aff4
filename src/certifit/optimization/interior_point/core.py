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
from certifit.optimization.interior_point.iterate import Equations, Iterate
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


def _advance(point: Iterate, matrix: NormalMatrix, total: float, pairs: int, coupled: bool) -> tuple[float, str]:
    """One predictor-corrector step of the point: how long it was; or why there is none."""
    equations = Equations(point, matrix)
    if not equations.regular:
        return 0.0, "the normal matrix is not positive definite"
    first = equations.predicted(coupled)
    sigma = min(max(equations.hope(first, total) / total, 0.0), 1.0) ** 3
    way = equations.corrected(first, max(sigma, 1e-8) * (total / pairs), coupled)
    if not (np.isfinite(way.step_p) and np.isfinite(way.step_d) and np.isfinite(way.dz).all()):
        return 0.0, "rounding errors stopped the iterations"
    point.move(way)
    return max(way.step_p, way.step_d), ""


def _iterate(atoms: Atoms, matrix: NormalMatrix, tol: float, max_iter: int, relative: float) -> CoreResult:
    """Run from a fresh start to the gap, a proof of infeasibility, or the end of progress."""
    problem = atoms.problem
    top = atoms.design.n_columns
    point = Iterate(atoms, matrix)
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
        a, e, z = point.a, point.e, point.z
        total = point.complementarity()
        infeasible = float(np.abs(e[hard] + point.s[hard]).max(initial=0.0)) if hard.size else 0.0
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
        length, why = _advance(point, matrix, total, pairs, coupled)
        if why:
            status, message = "stalled", why
            break
        short = short + 1 if length < 1e-5 else 0
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
