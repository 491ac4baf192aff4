"""What models are made of goes into a file and comes back the same; what cannot is named."""

from __future__ import annotations

import datetime
import enum
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression as ForeignRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.preprocessing import StandardScaler as ForeignScaler

from certifit import (
    BoostedTrees,
    Certificate,
    DecisionTreeClassifier,
    GradientBoostingClassifier,
    Lasso,
    LassoCV,
    LinearModel,
    OneVsRest,
    RandomForestClassifier,
    Ridge,
    SGDRegressor,
    losses,
    penalties,
)
from certifit.models.linear.path.path import RegularizationPath
from certifit.persistence import ModelFileError, inspect_file, load, save


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("objects")


def round_trip(thing: Any, folder: Path, **options: Any) -> Any:
    return load(save(thing, folder / "thing.cfit", **options), **options)


def same(a: Any, b: Any) -> bool:
    """Equal in type and to the last bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b)
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype.kind == "O":
            return all(same(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True))
        return a.tobytes() == b.tobytes()
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        pairs = zip(a.items(), b.items(), strict=True)
        return len(a) == len(b) and all(same(k, m) and same(v, w) for (k, v), (m, w) in pairs)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=True),
    st.text(st.characters(codec=None)),
    st.binary(),
    st.datetimes(),
    st.dates(),
    st.times(),
    st.timedeltas(),
)
KEYS = st.one_of(
    st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.tuples(st.integers(), st.text())
)
ARRAYS = hnp.arrays(
    st.one_of(
        hnp.floating_dtypes(),
        hnp.integer_dtypes(),
        hnp.boolean_dtypes(),
        hnp.unicode_string_dtypes(max_len=4),
        hnp.datetime64_dtypes(),
    ),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
THINGS = st.recursive(
    st.one_of(SCALARS, ARRAYS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(KEYS, inner, max_size=4),
    ),
    max_leaves=12,
)


@given(THINGS)
def test_any_composition_comes_back(folder: Path, thing: Any) -> None:
    assert same(round_trip(thing, folder), thing)


@pytest.mark.parametrize(
    "thing",
    [
        2**5000,
        -(2**200),
        math.inf,
        -math.inf,
        -0.0,
        struct.unpack(">d", bytes.fromhex("7ff8000000000123"))[0],
        {1, 2, "x", (3, 4)},
        frozenset({1.5, None}),
        slice(1, None, 2),
        range(3, 90, 7),
        np.float32(0.1),
        np.str_("é"),
        np.str_(""),
        np.bool_(True),
        np.datetime64("2024-02-29T12:00"),
        np.dtype("float32"),
        np.dtype("O"),
        np.float64,
        int,
        datetime.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC),
        np.arange(10_000, dtype=">i4"),
        np.array(["a", None, 3, 2.5], dtype=object),
        np.zeros((0, 5)),
        np.zeros((3000,), dtype=[("a", "f8"), ("b", "i2")]),
        losses.Quantile(0.3),
        losses.Huber(2.0),
        RegularizationPath(np.ones(2), np.ones((2, 3)), np.zeros(2), np.zeros(2)),
        Certificate("none", objective=math.nan, bound=-math.inf, scale=1.0, tol=0.0),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_one_by_one(thing: Any, folder: Path) -> None:
    twin = round_trip(thing, folder)
    assert type(twin) is type(thing)
    if isinstance(thing, Certificate):
        assert str(twin) == str(thing)
    else:
        assert same(twin, thing)


@pytest.mark.parametrize("penalty", [penalties.Box(-1.0, 2.0), penalties.L1Ball(2.0), penalties.Lq(1.5)], ids=repr)
def test_penalties_and_constraints(penalty: Any, folder: Path) -> None:
    assert repr(round_trip(penalty, folder)) == repr(penalty)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(3, 4), (60, 70)])
def test_the_layout_of_arrays_is_kept(order: Any, shape: tuple[int, int], folder: Path) -> None:
    array = np.asarray(np.random.default_rng(0).normal(size=shape), order=order)
    twin = round_trip(array, folder)
    assert twin.flags.c_contiguous == array.flags.c_contiguous
    assert twin.flags.f_contiguous == array.flags.f_contiguous
    assert twin.flags.writeable
    np.testing.assert_array_equal(twin, array)
    np.testing.assert_array_equal(round_trip(array[::2, ::3], folder), array[::2, ::3])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("make", [sp.random, sp.random_array])
def test_sparse(kind: str, make: Any, folder: Path) -> None:
    size = (6, 8) if make is sp.random_array else None
    matrix = (
        make(size, density=0.3, format=kind, random_state=0)
        if size
        else make(6, 8, density=0.3, format=kind, random_state=0)
    )
    twin = round_trip(matrix, folder)
    assert type(twin) is type(matrix)
    assert twin.dtype == matrix.dtype
    assert twin.shape == matrix.shape
    np.testing.assert_array_equal(twin.toarray(), matrix.toarray())


@pytest.mark.parametrize("bits", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_generators_go_on_where_they_were(bits: str, folder: Path) -> None:
    generator = np.random.Generator(getattr(np.random, bits)(3))
    generator.normal(size=7)
    twin = round_trip(generator, folder)
    np.testing.assert_array_equal(twin.integers(2**60, size=20), generator.integers(2**60, size=20))
    np.testing.assert_array_equal(twin.spawn(2)[1].normal(size=3), generator.spawn(2)[1].normal(size=3))
    state = np.random.RandomState(5)
    state.normal(size=3)
    np.testing.assert_array_equal(round_trip(state, folder).normal(size=9), state.normal(size=9))
    seed = np.random.SeedSequence([1, 2**70])
    seed.spawn(3)
    assert round_trip(seed, folder).state == seed.state


def test_shared_objects_stay_shared_and_cycles_close(folder: Path) -> None:
    array = np.arange(3.0)
    generator = np.random.default_rng(0)
    ring: list[Any] = [array, {"again": array}, generator, (generator, array)]
    ring.append(ring)
    twin = round_trip(ring, folder)
    assert twin[4] is twin
    assert twin[0] is twin[1]["again"] is twin[3][1]
    assert twin[2] is twin[3][0]
    around: dict[str, Any] = {}
    around["pair"] = (around, [around])
    turn = round_trip(around, folder)
    assert turn["pair"][0] is turn is turn["pair"][1][0]


def test_depth_is_no_limit(folder: Path) -> None:
    chain: list[Any] = []
    for _ in range(5_000):
        chain = [chain]
    twin, depth = round_trip(chain, folder), 0
    while twin:
        twin, depth = twin[0], depth + 1
    assert depth == 5_000


class OwnLoss(losses.Squared):
    """A loss of the user."""


class OwnEstimator(RegressorMixin, BaseEstimator):
    """An estimator of the user; its hooks must not run."""

    def __init__(self, shift: float = 0.0) -> None:
        self.shift = shift

    def __setstate__(self, state: Any) -> None:
        raise AssertionError("code of a class ran while a file was opened")

    def __reduce__(self) -> Any:
        raise AssertionError("code of a class ran while a file was written")

    def fit(self, X: Any, y: Any) -> OwnEstimator:
        self.mean_ = float(np.mean(y)) + self.shift
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean_)


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: Any


class Color(enum.Enum):
    RED = 1
    BLUE = "b"


class OwnDict(dict):  # type: ignore[type-arg]
    """A built-in type with a new name."""


def own_function(x: Any) -> Any:
    return np.tanh(x)


def test_own_classes_need_trust_on_both_sides(folder: Path) -> None:
    X, y = np.arange(6.0)[:, None], np.arange(6.0)
    model = LinearModel(loss=OwnLoss(), alpha=0.1).fit(X, y)
    with pytest.raises(TypeError, match=r"LinearModel\.loss cannot be saved.*OwnLoss.*trusted=\[OwnLoss\]"):
        save(model, folder / "own.cfit")
    path = save(model, folder / "own.cfit", trusted=[OwnLoss])
    with pytest.raises(ModelFileError, match=r"not Certifit's: .*OwnLoss\. .*trusted=\[OwnLoss\]"):
        load(path)
    assert inspect_file(path).trusted == [f"{OwnLoss.__module__}.OwnLoss"]
    twin = load(path, trusted=[OwnLoss])
    assert type(twin.loss) is OwnLoss
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))


def test_own_estimators_slots_and_enumerations(folder: Path) -> None:
    model = OwnEstimator(2.0).fit(None, [1.0, 3.0])
    assert round_trip(model, folder, trusted=[OwnEstimator]).mean_ == 4.0
    point = Point(1.5, [Color.RED, Color.BLUE])
    twin = round_trip(point, folder, trusted=[Point, Color])
    assert twin == point
    assert twin.y[1] is Color.BLUE


def test_functions_are_trusted_by_name(folder: Path) -> None:
    transformer = FunctionTransformer(own_function)
    with pytest.raises(TypeError, match=r"FunctionTransformer\.func cannot be saved.*own_function"):
        save(transformer, folder / "f.cfit")
    twin = round_trip(transformer, folder, trusted=[own_function])
    assert twin.func is own_function
    with pytest.raises(TypeError, match=r"func cannot be saved.*lambda.*no code"):
        save(FunctionTransformer(lambda x: x), folder / "f.cfit")


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        ({"a": [1, 1j]}, r"dict\['a'\]\[1\] cannot be saved.*complex"),
        ([object()], r"list\[0\] cannot be saved.*builtins\.object"),
        ({Point(1, 2): 1}, "key of type .*Point"),
        (np.ma.masked_array([1.0]), "MaskedArray cannot be saved"),
        (np.array([1 + 0j, 2]).astype("O"), r"ndarray\[0\] cannot be saved"),
        (np.random, "module cannot be saved"),
        (Ridge, "cannot be saved.*instance instead of the class"),
        (Ridge(solver=math), r"Ridge\.solver cannot be saved"),
        (OneVsRest(ForeignRegression()), r"OneVsRest\.estimator cannot be saved.*LinearRegression"),
        (pd.Series([1.0]), "Series cannot be saved"),
    ],
    ids=lambda thing: type(thing).__name__ if not isinstance(thing, str) else "message",
)
def test_what_cannot_be_saved_is_named(thing: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        save(thing, tmp_path / "x.cfit")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_classes_on_built_in_types_are_refused_even_if_trusted(folder: Path) -> None:
    with pytest.raises(TypeError, match="extends a built-in type"):
        save(OwnDict(a=1), folder / "x.cfit", trusted=[OwnDict])


def test_an_instance_with_a_method_of_its_own_is_refused(folder: Path) -> None:
    model = Ridge()
    model.predict = 3
    with pytest.raises(TypeError, match="'predict' would hide what the class Ridge defines"):
        save(model, folder / "x.cfit")


def test_pipelines_of_scikit_learn(folder: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=80), "b": rng.normal(size=80), "c": rng.choice(["x", "y", "z"], size=80), "d": 1.0}
    )
    frame.loc[3, "a"] = np.nan
    target = (frame["b"] > 0).map({True: "yes", False: "no"})
    parts = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), ForeignScaler()), ["a", "b"]),
            ("words", OneHotEncoder(handle_unknown="ignore"), ["c"]),
        ],
        remainder="passthrough",
    )
    model = Pipeline([("table", parts), ("model", RandomForestClassifier(n_estimators=5, random_state=0))])
    model.fit(frame, target)
    twin = round_trip(model, folder)
    np.testing.assert_array_equal(twin.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(twin.predict(frame), model.predict(frame))
    assert twin[:-1].get_feature_names_out().tolist() == model[:-1].get_feature_names_out().tolist()


def test_models_of_text_tables_random_states_and_splitters(folder: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "c": rng.choice(["x", "y", "z"], size=200)})
    label = np.where(frame["a"] > 0, frame["c"].to_numpy(), "none")
    for model in (
        GradientBoostingClassifier(n_estimators=3, random_state=np.random.RandomState(0)),
        DecisionTreeClassifier(categorical_features=["c"]),
    ):
        model.fit(frame, label)
        twin = round_trip(model, folder)
        np.testing.assert_array_equal(twin.predict_proba(frame), model.predict_proba(frame))
    assert twin.rules() == model.rules()
    X = rng.normal(size=(60, 3))
    search = LassoCV(cv=KFold(3, shuffle=True, random_state=1)).fit(X, X[:, 0])
    assert round_trip(search, folder).cv.get_n_splits() == 3
    online = SGDRegressor(random_state=0).partial_fit(X, X[:, 0])
    twin = round_trip(online, folder)
    np.testing.assert_array_equal(
        twin.partial_fit(X, X[:, 0]).coef_, online.partial_fit(X, X[:, 0]).coef_
    )  # the state of the descent and of its generator came along


def test_a_large_ensemble_is_compact(folder: Path) -> None:
    X = np.random.default_rng(0).normal(size=(400, 4))
    model = BoostedTrees(n_estimators=60).fit(X, X[:, 0] * X[:, 1])
    path = save(model, folder / "large.cfit")
    assert path.stat().st_size < 1_000_000
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))


def test_a_bundle_of_models(folder: Path) -> None:
    bundle = {"models": [Ridge(), Lasso()], "threshold": 0.3}
    twin = round_trip(bundle, folder)
    assert repr(twin) == repr(bundle)
    assert inspect_file(folder / "thing.cfit").model == "builtins.dict"
