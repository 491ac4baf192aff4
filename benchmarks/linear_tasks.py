"""The linear regression tasks: data, objective, and how each library is asked to solve it.

Every solver gets the same data and is run at the loosest tolerance of its own at which it reaches the wanted relative duality
gap (``tolerances`` are tried in turn); a contender that never reaches it takes part with its tightest setting, and the table
shows the gap it reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Data = dict[str, Any]
Fit = Callable[[Data, float], tuple[np.ndarray, Any]]
TIGHTER = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
OURS = (1e-6,)


@dataclass(frozen=True)
class Task:
    """One line of the table."""

    name: str
    title: str
    make: Callable[[], Data]
    objective: Callable[[Data, np.ndarray, float], float]
    target: float
    """Wanted relative distance from the best objective found by any contender."""
    wanted_ratio: str
    contenders: dict[str, tuple[Fit, Iterable[float]]] = field(default_factory=dict)

    def goal(self, best: float) -> float:
        """The objective that counts as reached, where `best` is the least one known."""
        return best + self.target * abs(best)

    def solved_by(self, library: str, tolerances: Iterable[float]) -> Callable[[Fit], Fit]:
        """Enrol a function: how a library is asked to solve this task. The first one is ours."""

        def enrol(fit: Fit) -> Fit:
            self.contenders[library] = fit, tolerances
            return fit

        return enrol


def alpha_max(X: np.ndarray, y: np.ndarray) -> float:
    return float(np.abs(X.T @ (y - y.mean())).max() / len(y))


# --- lasso -----------------------------------------------------------------------------------------------------------


def lasso_data(n: int = 1000, d: int = 10_000, seed: int = 7, ratio: float = 20.0) -> Data:
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.normal(size=(n, d)))
    w = np.zeros(d)
    w[rng.choice(d, 100, replace=False)] = rng.normal(size=100)
    y = X @ w + 2.0 * rng.normal(size=n)
    return {"X": X, "y": y, "alpha": alpha_max(X, y) / ratio}


def lasso_objective(data: Data, w: np.ndarray, b: float) -> float:
    r = data["y"] - data["X"] @ w - b
    return 0.5 * float(r @ r) / len(r) + data["alpha"] * float(np.abs(w).sum())


LASSO = Task("lasso", "lasso, 1,000 × 10,000, λmax/20, gap 1e-6", lasso_data, lasso_objective, 1e-6, "≥ 1.5")


@LASSO.solved_by("certifit", OURS)
def certifit_lasso(data: Data, tol: float) -> tuple[np.ndarray, float]:
    from certifit import Lasso

    m = Lasso(alpha=data["alpha"], tol=tol).fit(data["X"], data["y"])
    return m.coef_, m.intercept_


@LASSO.solved_by("scikit-learn", TIGHTER)
def sklearn_lasso(data: Data, tol: float) -> tuple[np.ndarray, float]:
    from sklearn.linear_model import Lasso

    m = Lasso(alpha=data["alpha"], tol=tol, max_iter=100_000).fit(data["X"], data["y"])
    return m.coef_, float(m.intercept_)


@LASSO.solved_by("celer", TIGHTER)
def celer_lasso(data: Data, tol: float) -> tuple[np.ndarray, float]:
    from celer import Lasso

    m = Lasso(alpha=data["alpha"], tol=tol, max_iter=1000).fit(data["X"], data["y"])
    return m.coef_, float(m.intercept_)


@LASSO.solved_by("skglm", TIGHTER)
def skglm_lasso(data: Data, tol: float) -> tuple[np.ndarray, float]:
    from skglm import Lasso

    m = Lasso(alpha=data["alpha"], tol=tol, max_iter=1000).fit(data["X"], data["y"])
    return m.coef_, float(np.ravel(m.intercept_)[0])


@LASSO.solved_by("adelie", TIGHTER)
def adelie_lasso(data: Data, tol: float) -> tuple[np.ndarray, float]:
    import adelie as ad

    state = ad.grpnet(
        X=ad.matrix.dense(data["X"], method="naive", n_threads=2),
        glm=ad.glm.gaussian(y=data["y"]),
        lmda_path=np.array([data["alpha"]]),
        tol=tol,
        n_threads=2,
        progress_bar=False,
        early_exit=False,
    )
    return np.asarray(state.betas[-1].toarray()).ravel(), float(state.intercepts[-1])


# --- lasso path ------------------------------------------------------------------------------------------------------


def path_data() -> Data:
    data = lasso_data(500, 5000, seed=8, ratio=1.0)
    data["alphas"] = np.geomspace(data["alpha"], data["alpha"] / 100, 100)
    return data


def path_objective(data: Data, coefs: np.ndarray, b: Any) -> float:
    """Mean over the path of objective / null objective, so that all alphas count alike."""
    X, y = data["X"], data["y"]
    total = 0.0
    for alpha, w in zip(data["alphas"], coefs, strict=True):
        r = y - X @ w
        r = r - r.mean()
        total += 0.5 * float(r @ r) / len(y) + alpha * float(np.abs(w).sum())
    return total / len(data["alphas"])


PATH = Task("lasso_path", "lasso path, 100 alphas to λmax/100, 500 × 5,000", path_data, path_objective, 1e-6, "≥ 1.5")


@PATH.solved_by("certifit", OURS)
def certifit_path(data: Data, tol: float) -> tuple[np.ndarray, float]:
    from certifit import Lasso

    return Lasso.path(data["X"], data["y"], alphas=data["alphas"], tol=tol).coefs, 0.0


def _centered(data: Data) -> tuple[np.ndarray, np.ndarray]:
    X = np.asfortranarray(data["X"] - data["X"].mean(axis=0))
    return X, data["y"] - data["y"].mean()


@PATH.solved_by("scikit-learn", TIGHTER)
def sklearn_path(data: Data, tol: float) -> tuple[np.ndarray, float]:
    from sklearn.linear_model import lasso_path

    X, y = _centered(data)
    return lasso_path(X, y, alphas=data["alphas"], tol=tol, max_iter=100_000)[1].T, 0.0


@PATH.solved_by("celer", TIGHTER)
def celer_path(data: Data, tol: float) -> tuple[np.ndarray, float]:
    from celer import celer_path as run

    X, y = _centered(data)
    return run(X, y, "lasso", alphas=data["alphas"], tol=tol, max_iter=1000)[1].T, 0.0


# --- ridge -----------------------------------------------------------------------------------------------------------


def ridge_data() -> Data:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(100_000, 300)) + rng.normal(size=300)
    y = X @ rng.normal(size=300) + 10 * rng.normal(size=100_000)
    return {"X": X, "y": y, "alpha": 1e-2}


def ridge_objective(data: Data, w: np.ndarray, b: float) -> float:
    r = data["y"] - data["X"] @ w - b
    return 0.5 * float(r @ r) / len(r) + 0.5 * data["alpha"] * float(w @ w)


RIDGE = Task("ridge", "ridge, 100,000 × 300", ridge_data, ridge_objective, 1e-9, "≥ 1.2")


@RIDGE.solved_by("certifit", OURS)
def certifit_ridge(data: Data, tol: float) -> tuple[np.ndarray, float]:
    from certifit import Ridge

    m = Ridge(alpha=data["alpha"]).fit(data["X"], data["y"])
    return m.coef_, m.intercept_


@RIDGE.solved_by("scikit-learn", OURS)
def sklearn_ridge(data: Data, tol: float, solver: str = "auto") -> tuple[np.ndarray, float]:
    from sklearn.linear_model import Ridge

    m = Ridge(alpha=data["alpha"] * len(data["y"]), solver=solver).fit(data["X"], data["y"])
    return m.coef_, float(m.intercept_)


@RIDGE.solved_by("scikit-learn cholesky", OURS)
def sklearn_ridge_cholesky(data: Data, tol: float) -> tuple[np.ndarray, float]:
    return sklearn_ridge(data, tol, "cholesky")


@RIDGE.solved_by("scikit-learn-intelex", OURS)
def intelex_ridge(data: Data, tol: float) -> tuple[np.ndarray, float]:
    from sklearnex.linear_model import Ridge

    m = Ridge(alpha=data["alpha"] * len(data["y"])).fit(data["X"], data["y"])
    return np.ravel(m.coef_), float(np.ravel(m.intercept_)[0])


# --- least absolute deviations ---------------------------------------------------------------------------------------


def lad_data() -> Data:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(10_000, 30))
    return {"X": X, "y": X @ rng.normal(size=30) + rng.standard_t(2, size=10_000)}


def lad_objective(data: Data, w: np.ndarray, b: float) -> float:
    return float(np.abs(data["y"] - data["X"] @ w - b).mean())


LAD = Task("lad", "LAD, 10,000 × 30", lad_data, lad_objective, 1e-6, "≥ 5")


@LAD.solved_by("certifit", OURS)
def certifit_lad(data: Data, tol: float) -> tuple[np.ndarray, float]:
    from certifit import LADRegressor

    m = LADRegressor(tol=tol).fit(data["X"], data["y"])
    return m.coef_, m.intercept_


@LAD.solved_by("scikit-learn HiGHS", OURS)
def sklearn_lad(data: Data, tol: float) -> tuple[np.ndarray, float]:
    from sklearn.linear_model import QuantileRegressor

    m = QuantileRegressor(quantile=0.5, alpha=0.0, solver="highs").fit(data["X"], data["y"])
    return m.coef_, float(m.intercept_)


@LAD.solved_by("statsmodels", TIGHTER[2:])
def statsmodels_lad(data: Data, tol: float) -> tuple[np.ndarray, float]:
    import statsmodels.api as sm

    fit = sm.QuantReg(data["y"], sm.add_constant(data["X"])).fit(q=0.5, p_tol=tol, max_iter=10_000)
    return np.asarray(fit.params[1:]), float(fit.params[0])


# --- Poisson with L1 -------------------------------------------------------------------------------------------------


def poisson_data() -> Data:
    rng = np.random.default_rng(10)
    X = np.asfortranarray(rng.normal(size=(100_000, 100)))
    w = np.zeros(100)
    w[:15] = 0.2 * rng.normal(size=15)
    y = rng.poisson(np.exp(X @ w + 0.3)).astype(float)
    return {"X": X, "y": y, "alpha": float(np.abs(X.T @ (y - y.mean())).max() / len(y)) / 20}


def poisson_objective(data: Data, w: np.ndarray, b: float) -> float:
    from scipy.special import xlogy

    f, y = data["X"] @ w + b, data["y"]
    return float(np.mean(np.exp(f) - y * f - y + xlogy(y, y))) + data["alpha"] * float(np.abs(w).sum())


POISSON = Task("poisson_l1", "Poisson with L1, 100,000 × 100", poisson_data, poisson_objective, 1e-6, "≥ 2")


@POISSON.solved_by("certifit", OURS)
def certifit_poisson(data: Data, tol: float) -> tuple[np.ndarray, float]:
    from certifit import PoissonRegressor

    m = PoissonRegressor(alpha=data["alpha"], penalty="l1", tol=tol).fit(data["X"], data["y"])
    return m.coef_, m.intercept_


@POISSON.solved_by("skglm", TIGHTER)
def skglm_poisson(data: Data, tol: float) -> tuple[np.ndarray, float]:
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Poisson
    from skglm.penalties import L1
    from skglm.solvers import ProxNewton

    m = GeneralizedLinearEstimator(Poisson(), L1(data["alpha"]), ProxNewton(tol=tol, max_iter=100))
    m.fit(data["X"], data["y"])
    return np.ravel(m.coef_), float(np.ravel(m.intercept_)[0])


@POISSON.solved_by("glum", TIGHTER)
def glum_poisson(data: Data, tol: float) -> tuple[np.ndarray, float]:
    from glum import GeneralizedLinearRegressor

    m = GeneralizedLinearRegressor(family="poisson", alpha=data["alpha"], l1_ratio=1.0, gradient_tol=tol)
    m.fit(data["X"], data["y"])
    return m.coef_, float(m.intercept_)


TASKS = {task.name: task for task in (LASSO, PATH, RIDGE, LAD, POISSON)}
