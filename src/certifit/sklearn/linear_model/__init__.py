"""``sklearn.linear_model``, as far as Certifit has it."""

from __future__ import annotations

from certifit.sklearn.linear_model.bayes import ARDRegression, BayesianRidge
from certifit.sklearn.linear_model.choice import ElasticNetCV, LassoCV, RidgeCV
from certifit.sklearn.linear_model.general import GammaRegressor, HuberRegressor, PoissonRegressor, QuantileRegressor
from certifit.sklearn.linear_model.logistic import LogisticRegression
from certifit.sklearn.linear_model.logistic_cv import LogisticRegressionCV
from certifit.sklearn.linear_model.perceptron import Perceptron
from certifit.sklearn.linear_model.squares import ElasticNet, Lasso, LinearRegression, Ridge, enet_path, lasso_path
from certifit.sklearn.linear_model.stochastic import SGDClassifier, SGDRegressor
from certifit.sklearn.linear_model.tasks import (
    MultiTaskElasticNet,
    MultiTaskElasticNetCV,
    MultiTaskLasso,
    MultiTaskLassoCV,
)

__all__ = [
    "ARDRegression",
    "BayesianRidge",
    "ElasticNet",
    "ElasticNetCV",
    "GammaRegressor",
    "HuberRegressor",
    "Lasso",
    "LassoCV",
    "LinearRegression",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "Perceptron",
    "PoissonRegressor",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "SGDClassifier",
    "SGDRegressor",
    "enet_path",
    "lasso_path",
]
