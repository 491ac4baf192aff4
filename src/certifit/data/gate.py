"""The one gate from user input to arrays.

Every estimator passes its input through these functions; what comes out has a known dtype, shape and layout,
and is finite. Native code is entered with nothing else.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d, validate_data

import certifit._native.products as _products
import certifit._native.threads as _threads
from certifit._types import Array, Matrix, is_sparse
from certifit.data.sparse import canonical, check_sparse
from certifit.parameters import check_parameters

__all__ = [
    "check_choice",
    "check_numbers",
    "check_real",
    "check_sample_weight",
    "check_x",
    "check_xy",
    "equal_weights",
    "from_arrow",
    "is_repeated",
    "kept_rows",
    "like_input",
    "numbers_of",
    "target_array",
]

MISSING_CURE = "fill them in (certifit.TableEncoder does) or drop these rows or columns"
LEAST_WEIGHT = 1e-100  # and its inverse the largest: squares of weights stay numbers


def check_x(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    accept_sparse: bool | Sequence[str] = ("csr", "csc"),
    allow_nan: bool = False,
    dtype: Any = (np.float64, np.float32),
    min_samples: int = 1,
) -> Matrix:
    """Feature matrix as float64 or float32 (as given), finite, two-dimensional, with feature names recorded."""
    if reset:
        check_parameters(estimator)
    X = from_arrow(X)
    check_sparse(X)
    if _is_plain(X, dtype, min_samples, accept_sparse) and _plain_columns(estimator, X, reset):
        checked = canonical(X) if is_sparse(X) else X
        _check_finite(checked, allow_nan, None, type(estimator).__name__)
        return checked
    try:
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse=list(accept_sparse) if not isinstance(accept_sparse, bool) else accept_sparse,
            dtype=list(dtype) if isinstance(dtype, tuple) else dtype,
            ensure_all_finite=False,
            ensure_min_samples=min_samples,
        )
    except ValueError as error:
        if _are_texts(X):
            raise ValueError(
                f"X must be a matrix of numbers; got {len(X)} texts, the first of them {X[0][:40]!r}. Make numbers of them, for "
                "example with certifit.BagOfWords, or compare them by a kernel on strings such as certifit.kernels.Spectrum."
            ) from error
        column = _first_text_column(X)
        if column is None:
            raise
        coded = getattr(estimator, "categorical_features", "") is None
        cure = (
            f"{type(estimator).__name__} takes such columns as categories: name them in categorical_features, or encode them "
            if coded
            else "Certifit's estimators take numbers; encode the column "
        )
        raise ValueError(
            f"X has a column that is not numeric: {column}. {cure}"
            "first (for example with sklearn.preprocessing.OneHotEncoder in a ColumnTransformer). "
            f"[{error}]"
        ) from error
    if is_sparse(checked):
        checked = canonical(checked)
    _check_finite(checked, allow_nan, getattr(estimator, "feature_names_in_", None), type(estimator).__name__)
    return checked


def _is_plain(X: Any, dtype: Any, min_samples: int, accept_sparse: bool | Sequence[str]) -> bool:
    """Whether X is already what the gate would make of it; most calls of small fits bring such matrices."""
    if type(X) is not np.ndarray and not (is_sparse(X) and _is_wanted(X.format, accept_sparse)):
        return False
    if X.ndim != 2 or X.shape[0] < min_samples or not X.shape[1]:
        return False
    return X.dtype in dtype if isinstance(dtype, tuple) else X.dtype == dtype


def _is_wanted(form: str, accept_sparse: bool | Sequence[str]) -> bool:
    known = form in ("csr", "csc")
    return known and (accept_sparse if isinstance(accept_sparse, bool) else form in accept_sparse)


def _plain_columns(estimator: Any, X: Array, reset: bool) -> bool:
    """Record the columns of an array without names; False where they are not those of the fit, which is said elsewhere."""
    # Where it is looked for matters: to find no attribute takes an instance with declared parameters long.
    named = "feature_names_in_" in vars(estimator) or hasattr(type(estimator), "feature_names_in_")
    if not reset:
        return not named and getattr(estimator, "n_features_in_", None) == X.shape[1]
    if named:
        del estimator.feature_names_in_
    estimator.n_features_in_ = X.shape[1]
    return True


def check_xy(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    accept_sparse: bool | Sequence[str] = ("csr", "csc"),
    allow_nan: bool = False,
    numeric_target: bool = True,
    min_samples: int = 1,
    drop: bool = True,
    multi_output: bool = False,
    repeated: bool = False,
) -> tuple[Matrix, Array, Array]:
    """Features, target and weights of one fit; rows of weight zero are dropped, as if they had not been given.

    With ``drop=False`` they stay, for callers that number the rows as given. With ``multi_output=True`` y may have several
    columns, one for each target; a y of one column then keeps its two dimensions. With ``repeated=True`` equal weights are one
    number that is read again for every row (`is_repeated`), which takes no memory and is no array for native code.

    Returns
    -------
    X : array or sparse matrix of shape (n, d)
    y : array of shape (n,), or (n, K) with ``multi_output=True``
    weight : array of shape (n,), float64, positive (non-negative with ``drop=False``)
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: give the target values."
        )
    X = check_x(estimator, X, reset=True, accept_sparse=accept_sparse, allow_nan=allow_nan, min_samples=min_samples)
    y = target_array(y, multi_output=multi_output)
    if numeric_target:
        y = numbers_of(y)
    if y.shape[0] != X.shape[0]:
        raise ValueError(
            f"X and y must have the same number of rows: X has {X.shape[0]}, y has {y.shape[0]}. "
            "Found input variables with inconsistent numbers of samples."
        )
    if numeric_target:
        _check_range(X, y)
    if sample_weight is None and repeated:
        return X, y, equal_weights(1.0, X.shape[0])
    weight = check_sample_weight(sample_weight, X.shape[0])
    if drop and sample_weight is not None and not (kept := weight > 0).all():
        X, y, weight = X[kept], y[kept], weight[kept]
        if X.shape[0] < min_samples:
            raise ValueError(
                f"Only {X.shape[0]} rows have a positive sample_weight, {min_samples} are needed: "
                "rows of weight zero count as absent."
            )
    return X, y, weight


def _check_range(X: Matrix, y: Array) -> None:
    """Predictions have the type of X: targets beyond its range could not be predicted."""
    if X.dtype != np.float32 or y.dtype.kind != "f":
        return
    largest = float(np.abs(y).max(initial=0.0))
    if largest > float(np.finfo(np.float32).max):
        raise ValueError(
            f"y reaches {largest:.3g}, beyond the range of float32, which is the type of X and so of the predictions: give X as "
            "float64, or scale y."
        )


def kept_rows(sample_weight: Any, n: int) -> Array:
    """Which rows, as the user numbers them, have a positive weight; n of them do."""
    if sample_weight is None or isinstance(sample_weight, numbers.Real):
        return np.ones(n, dtype=bool)
    return np.asarray(np.asarray(from_arrow(sample_weight), dtype=np.float64) > 0)


def equal_weights(weight: float, n: int) -> Array:
    """One number for n rows.

    Examples
    --------
    >>> from certifit.data.gate import equal_weights
    >>> weights = equal_weights(0.5, 4)
    >>> weights.sum(), is_repeated(weights)
    (np.float64(2.0), True)
    """
    return np.broadcast_to(np.float64(weight), (n,))


def is_repeated(weight: Any) -> bool:
    """Whether all weights are one number at one place."""
    return isinstance(weight, np.ndarray) and weight.ndim == 1 and weight.strides == (0,)


def check_sample_weight(sample_weight: Any, n: int) -> Array:
    """Weights as a float64 vector: finite, non-negative, at least one positive."""
    if sample_weight is None:
        return np.ones(n)
    if isinstance(sample_weight, numbers.Real):
        weight = np.full(n, float(sample_weight))
    else:
        try:
            weight = np.asarray(from_arrow(sample_weight), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"sample_weight must be numbers, one for each row of X; got {sample_weight!r}.") from error
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar: sample_weight has shape {weight.shape}.")
    if weight.shape[0] != n:
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected ({n},): one weight for each row of X.")
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinity: every weight must be a finite number >= 0.")
    if (weight < 0).any():
        raise ValueError(
            f"Negative values in data passed to sample_weight (smallest: {weight.min():g}): weights count "
            "repetitions and must be >= 0. Remove these rows or set their weight to 0."
        )
    if not (weight > 0).any():
        raise ValueError("sample_weight is zero everywhere: at least one row must have a positive weight.")
    with np.errstate(over="ignore"):
        if not np.isfinite(weight.sum()):
            raise ValueError(
                "sample_weight adds up to more than a double can hold: divide all weights by the largest of them."
            )
    return _within_reach(weight)


def _within_reach(weight: Array) -> Array:
    """Weights whose squares and inverses are numbers: nobody has 1e100 copies of a row, so only ratios count there."""
    largest = float(weight.max())
    nearest = min(max(largest, LEAST_WEIGHT), 1.0 / LEAST_WEIGHT)
    if nearest == largest:
        return weight
    with np.errstate(under="ignore"):
        return weight * 2.0 ** np.round(np.log2(nearest) - np.log2(largest))


def check_real(
    name: str,
    value: Any,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    open_low: bool = False,
    open_high: bool = False,
    integer: bool = False,
) -> Any:
    """A number inside an interval, or an error that names the argument."""
    kind: Any = numbers.Integral if integer else numbers.Real
    left, right = "(" if open_low else "[", ")" if open_high else "]"
    wanted = f"{'an integer' if integer else 'a number'} in {left}{low:g}, {high:g}{right}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {wanted}; got {value!r} of type {type(value).__name__}.")
    inside = (value > low if open_low else value >= low) and (value < high if open_high else value <= high)
    if not inside:  # NaN fails every comparison and lands here
        raise ValueError(f"{name} must be {wanted}; got {value!r}.")
    return value


def check_numbers(name: str, value: Any) -> Array:
    """Numbers of any shape in double precision, or an error that names the argument."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers; got {value!r:.60}.") from error


def like_input(X: Any, values: Array) -> Array:
    """Predictions in single precision for rows in single precision, unless they are too large for it."""
    if getattr(X, "dtype", None) != np.float32:
        return values
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return values if np.isinf(single).any() else single


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """One of the listed values, or an error that lists them."""
    if not any(value is c or value == c for c in choices):
        listed = ", ".join(repr(c) for c in choices)
        raise ValueError(f"{name} must be one of {listed}; got {value!r}.")
    return value


def from_arrow(X: Any) -> Any:
    """Arrow tables become a frame that scikit-learn understands, Arrow columns an array."""
    if type(X).__module__.split(".")[0] != "pyarrow":
        return X
    if not hasattr(X, "column_names"):
        return X.to_numpy()
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    try:
        return frame.to_polars()
    except ModuleNotFoundError:  # either kind of frame keeps the names of the columns
        return frame.to_pandas()


def target_array(y: Any, *, multi_output: bool = False) -> Array:
    """The target as an array of one dimension or, with ``multi_output=True``, of a column for each target if it is given so."""
    y = np.asarray(from_arrow(y)) if multi_output else from_arrow(y)
    if type(y) is np.ndarray and y.ndim == 1:
        return np.ascontiguousarray(y)
    return y if multi_output and y.ndim == 2 and y.shape[1] else column_or_1d(y, warn=True)


def numbers_of(y: Array) -> Array:
    """The target of a regression: finite numbers in double precision."""
    if y.dtype.kind not in "fiub":
        try:
            y = y.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"y must be numeric for a regression; got values such as {y[:1]!r} of dtype {y.dtype}."
            ) from error
    cast = y.astype(np.float64, copy=False)  # vectors are cheap: only the matrix keeps single precision
    if not _surely_finite(cast) and not np.isfinite(cast).all():
        bad = int(np.argwhere(~np.isfinite(cast))[0, 0])
        what = "NaN" if np.isnan(y[bad]).any() else "infinity"
        raise ValueError(
            f"Input y contains {what} (first at row {bad}): the target of a fit must be known. Drop these rows."
        )
    return np.asarray(cast)


def _check_finite(X: Matrix, allow_nan: bool, names: Any, estimator: str) -> None:
    values = X.data if is_sparse(X) else X
    if values.dtype.kind != "f":
        return
    if _surely_finite(values):
        return
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if not bad.any():
        return
    if is_sparse(X):
        columns = X.tocsc()
        counts = np.diff(np.concatenate([[0], np.cumsum(~np.isfinite(columns.data))])[columns.indptr])
    else:
        counts = bad.sum(axis=0)
    column = int(np.flatnonzero(counts)[0])
    label = repr(str(names[column])) if names is not None else str(column)
    others = int((counts > 0).sum()) - 1
    further = f" (and {others} more)" if others else ""
    if np.isinf(values).any():
        raise ValueError(
            f"Input X contains infinity or a value too large for {values.dtype}: column {label}{further}. "
            f"Replace infinite values before fitting {estimator}."
        )
    gaps = f"{int(counts[column])} missing value{'s' if counts[column] > 1 else ''}"
    raise ValueError(
        f"Input X contains NaN: {gaps} in column {label}{further}. {estimator} does not accept missing values: {MISSING_CURE}."
    )


def _surely_finite(values: Array) -> bool:
    """A finite sum of squares proves finite entries and costs one pass; only a suspicious one is looked at closely."""
    if values.flags.forc and values.dtype in (np.float64, np.float32):
        # Not by BLAS: its threads keep the processors busy for a while after the product.
        return math.isfinite(_products.energy(values.ravel(order="K"), _threads.max_threads()))
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(values.sum(dtype=np.float64))


def _are_texts(X: Any) -> bool:
    """Whether X is a list of texts, not a table."""
    listed = isinstance(X, (list, tuple)) or (isinstance(X, np.ndarray) and X.ndim == 1)
    return listed and len(X) > 0 and all(isinstance(one, str) for one in X)


def _first_text_column(X: Any) -> str | None:
    """Name of the first column whose values are not numbers, if X is a frame or an object array."""
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        for name in X.columns:
            values = np.asarray(X[name])
            if values.dtype.kind in "OUSM" and not _is_numeric(values):
                return repr(str(name))
        return None
    values = np.asarray(X) if not is_sparse(X) else np.empty(0)
    if values.ndim == 2 and values.dtype.kind in "OUS":
        for j in range(values.shape[1]):
            if not _is_numeric(values[:, j]):
                return str(j)
    return None


def _is_numeric(values: Array) -> bool:
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True
