"""A first look: fit, read the certificate, choose alpha, write a loss of your own.

make demo
"""

from __future__ import annotations

import numpy as np

from certifit import Lasso, LassoCV, LinearModel, LinearRegression
from certifit.losses import Loss


class LogCosh(Loss):
    """ln cosh(f − y): squares near zero, absolute values far away, smooth everywhere."""

    def value(self, y, f):
        r = np.abs(f - y)
        return r + np.log1p(np.exp(-2 * r)) - np.log(2)

    def derivative(self, y, f):
        return np.tanh(f - y)

    def second_derivative(self, y, f):
        return 1 - np.tanh(f - y) ** 2


def main() -> None:
    """Four fits, and what they prove."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2000))
    y = X[:, :5] @ [3.0, -2.0, 1.5, 1.0, -1.0] + rng.normal(size=500)

    print("A lasso, 500 rows and 2,000 features. Only the first five matter.\n")
    model = Lasso(alpha=0.2).fit(X, y)
    print(f"  {model.certificate_}")
    print(f"  features it uses: {np.flatnonzero(model.coef_).tolist()}\n")

    print("Alpha chosen by cross-validation, 100 alphas × 5 folds:\n")
    chosen = LassoCV().fit(X, y)
    print(f"  alpha = {chosen.alpha_:.4f}, {np.count_nonzero(chosen.coef_)} features")
    print(f"  {chosen.certificate_}\n")

    print("A loss written in three lines of NumPy, with an L1 penalty; certified like the built-in ones:\n")
    own = LinearModel(loss=LogCosh(), penalty="l1", alpha=0.1).fit(X, y)
    print(f"  {own.certificate_}\n")

    print("Least squares on the five features, with standard errors:\n")
    print(LinearRegression().fit(X[:, :5], y).summary())


if __name__ == "__main__":
    main()
