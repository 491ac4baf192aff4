"""Growers of histogram trees, on data of a few bins."""

from __future__ import annotations

import numpy as np

from certifit._native import boosting

OPTIONS = {
    "l2": 0.0,
    "min_samples_leaf": 1.0,
    "min_curvature": 0.0,
    "min_gain": 0.0,
    "max_leaves": 31,
    "max_depth": 1000,
    "category_smoothing": 0.0,
    "category_l2": 0.0,
    "category_support": 0.0,
}
NO_SETS = np.empty((0, 0), dtype=np.uint8)


def layout(bins):
    """Column-major bins → groups of up to eight columns side by side."""
    n, d = bins.shape
    groups = -(-d // 8)
    size = -(-d // groups)
    j = np.arange(d)
    column = ((j // size) * size * n + j % size).astype(np.int64)
    data = np.zeros(groups * size * n + 8, dtype=np.uint8)
    for k in range(d):
        data[column[k] : column[k] + n * size : size] = bins[:, k]
    return data, column, size


def make(bins, n_bins, weight=None, categorical=None, threads=1, monotone=None, sets=None, **options):
    n, d = bins.shape
    data, column, size = layout(bins)
    flags = np.zeros(d, dtype=np.uint8)
    flags[[] if categorical is None else categorical] = 1
    table = boosting.Table(data, n, size, column, np.asarray(n_bins, dtype=np.int64), flags, size)
    grower = boosting.Grower(table, np.ones(n) if weight is None else np.asarray(weight, dtype=float), threads)
    grower.set_options(**{**OPTIONS, **options})
    order = np.empty(0, dtype=np.int8) if monotone is None else np.asarray(monotone, dtype=np.int8)
    grower.set_constraints(order, NO_SETS if sets is None else np.asarray(sets, dtype=np.uint8))
    return grower


def small(seed, n=60, d=4, levels=6):
    rng = np.random.default_rng(seed)
    n_bins = np.full(d, levels)
    bins = rng.integers(0, levels + 1, size=(n, d)).astype(np.uint8)  # the last is "missing"
    bins[:, 0] = np.minimum(bins[:, 0], levels - 1)  # a column without missing values
    g = rng.normal(size=n)
    h = rng.uniform(0.5, 2.0, size=n)
    return bins, n_bins, g, h, rng


def grower_table(bins):
    data, column, size = layout(bins)
    n_bins = np.full(bins.shape[1], 20, dtype=np.int64)
    return boosting.Table(data, bins.shape[0], size, column, n_bins, np.zeros(bins.shape[1], dtype=np.uint8), size)
