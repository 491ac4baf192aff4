"""Declared parameters: domains, constructors, docstrings, checks."""

from __future__ import annotations

import ast
import doctest
import inspect
import pickle
import subprocess
import sys
from dataclasses import KW_ONLY
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import certifit
from certifit.parameters import (
    ALPHA,
    ALPHAS,
    CLASS_WEIGHT,
    CV,
    N_JOBS,
    RANDOM_STATE,
    TOL,
    VERBOSE,
    Any_,
    Choice,
    Declared,
    Domain,
    Either,
    Fitted,
    Flag,
    Folds,
    Given,
    Integer,
    Learner,
    Named,
    Nothing,
    OfColumns,
    Parameter,
    Real,
    Reals,
    Seed,
    Stopped,
    Threads,
    check_parameters,
    parameters_of,
)
from certifit.parameters.methods import DENSE, PAIRWISE


class Shape:
    """Something a registry could hold."""


class Splitter:
    """Splits nothing, but could."""

    def split(self) -> None:
        """Nothing."""


class Model(Declared, BaseEstimator):
    """A model.

    It has a text of its own.

    Attributes
    ----------
    own_ : int
        Written by hand.

    Examples
    --------
    >>> 1 + 1
    2
    """

    alpha: float = ALPHA
    rows: int = Parameter(3, Integer(1), "How many rows; " + "a long text " * 20 + "that is wrapped.")
    name: str = Parameter("a", Choice("a", "b"), "Which.")

    coef_: float = Fitted("float", "The coefficient.")
    hidden_: float = Fitted()

    def fit(self, X: Any, y: Any = None) -> Model:
        check_parameters(self)
        return self

    def predict(self, X: Any) -> Any:
        return X


# Domain, its words in a docstring, values inside, values outside by type, values outside by value.
CASES: list[tuple[Domain, str, list[Any], list[Any], list[Any]]] = [
    (Real(), "float", [0, -1.5, np.float32(2), np.int64(3)], ["a", True, np.True_, None, [1.0]], [np.nan, np.inf]),
    (Real(0), "float ≥ 0", [0, 1e300], ["a"], [-1e-9, np.inf, -np.inf, np.nan]),
    (Real(0, open_low=True), "float > 0", [1e-300], [None], [0, 0.0, -1]),
    (Real(0, infinite=True), "float ≥ 0", [np.inf], ["inf"], [-np.inf, np.nan]),
    (Real(0, 1, open_high=True), "float in [0, 1)", [0, 0.999], [False], [1, 1.0, -0.1]),
    (Real(0, 1, open_low=True), "float in (0, 1]", [1, 0.1], [()], [0, 1.1]),
    (Integer(), "int", [-3, np.int8(2)], [1.0, True, "1", None, np.nan], []),
    (Integer(1), "int ≥ 1", [1, 10**30], [1.5], [0, -1]),
    (Integer(2, 255), "int in [2, 255]", [2, 255], [2.0], [1, 256]),
    (Reals(0), "array", [[0, 1.5], (2,), np.arange(3), range(2)], ["a", 3, None, {1: 2}, ["a"]], [[], [-1.0], [[1.0]]]),
    (Reals(0, 1, shape="list"), "list", [[0.0, 1.0]], [0.5], [[1.5], [np.nan]]),
    (Flag(), "bool", [True, False, np.True_], ["yes", 1, 0, None], []),
    (Choice("a", "b"), '{"a", "b"}', ["a", "b"], [], ["c", 1, None, True, ["a"]]),
    (Choice("a", None, 1), '{"a", None, 1}', ["a", None, 1], [], [True, 1.0, "None"]),
    (Choice("a"), '"a"', ["a"], [], ["b"]),
    (Nothing(), "None", [None], [0, False, "None"], []),
    (Seed(), "int, RandomState or None", [None, 0, 7, np.random.RandomState(0)], [], ["a", -1, 1.5, np.nan]),
    (Threads(), "int or None", [None, 1, -1, 64], ["a", 1.5, True], [0]),
    (
        Folds(),
        "int ≥ 2, splitter, list of (train, test) or None",
        [None, 2, np.int64(5), Splitter(), [([0], [1])], iter([])],
        [1.5, True, object()],
        [1, -2, "a"],
    ),
    (Learner(), "estimator", [Model()], [Model, "tree", 3, None, object()], []),
    (Learner(("transform",)), "estimator", [], [Model()], []),
    (Named("shapes.Shape", Shape, {"round": 1}), "str or Shape", ["round", Shape()], [], ["square", 3, Shape, None]),
    (Named("shapes.Shape", Shape), "Shape", [Shape()], [], ["round"]),
    (Any_("whatever"), "whatever", [None, "a", 3], [], []),
    (Given("array of −1 and 1"), "array of −1 and 1", [[1], {}, np.ones(2), range(3)], ["a", 3, None], []),
    (Either(Integer(1), Nothing()), "int ≥ 1 or None", [1, None], [1.5, "a"], [0]),
    (
        Either(Integer(1), Real(0, 1, open_low=True), Choice("sqrt"), Nothing()),
        'int ≥ 1, float in (0, 1], "sqrt" or None',
        [3, 0.5, 1.0, "sqrt", None],
        [[1], True],
        [0, 1.5, "a"],
    ),
    (Either(Flag(), Choice("auto")), 'bool or "auto"', [True, "auto"], [1, None], ["yes"]),
    (Either(Reals(0), Nothing()), "array or None", [[1.0], None], ["a", ["a"]], [[-1.0]]),
]
IDS = [repr(case[0]) for case in CASES]


@pytest.mark.parametrize(("domain", "words", "inside", "mistyped", "outside"), CASES, ids=IDS)
def test_a_domain_knows_its_values(
    domain: Domain, words: str, inside: list[Any], mistyped: list[Any], outside: list[Any]
) -> None:
    assert domain.describe() == words
    for value in inside:
        assert domain.refuses(value) is None, value
    for value in mistyped + outside:
        assert domain.refuses(value), value
    assert [value for value in mistyped if not domain.wrong_type(value)] == []
    assert [value for value in outside if domain.wrong_type(value)] == []


@pytest.mark.parametrize("domain", [case[0] for case in CASES], ids=IDS)
def test_nonsense_is_refused(domain: Domain) -> None:
    """Except what was left to `fit`; and there is some for all but the domains that leave everything to it."""
    by_fit = [repr(value) for value in getattr(domain, "wrong", ())]
    for value in domain.nonsense():
        assert domain.refuses(value) is not None or repr(value) in by_fit, value
    assert domain.nonsense() or type(domain) in (Any_, Nothing)


def test_nonsense_for_fit_survives_in_an_alternative() -> None:
    either = Either(Integer(2), Given("sequence of numbers", wrong=([2.0, 1.0],)), Nothing())
    assert [2.0, 1.0] in either.nonsense()
    assert 3 not in either.nonsense()
    assert None not in either.nonsense()
    assert {"a", 1, 1.5} <= {value for value in either.nonsense() if not isinstance(value, list)}


@pytest.mark.parametrize("common", [ALPHA, ALPHAS, CLASS_WEIGHT, CV, N_JOBS, RANDOM_STATE, TOL, VERBOSE])
def test_common_defaults_are_inside(common: Any) -> None:
    assert common.domain.refuses(common.default) is None


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"alpha": -1}, ValueError, "alpha must be a number in [0, inf); got -1."),
        ({"alpha": "1"}, TypeError, "alpha must be a number in [0, inf); got '1' of type str."),
        ({"rows": 0}, ValueError, "rows must be an integer in [1, inf); got 0."),
        ({"name": "c"}, ValueError, "name must be one of 'a', 'b'; got 'c'."),
    ],
)
def test_an_error_names_argument_wish_and_find(parameters: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        Model(**parameters).fit(None)
    assert str(caught.value) == message


def test_an_error_points_into_a_sequence() -> None:
    class Path(Declared, BaseEstimator):
        alphas: Any = ALPHAS

    with pytest.raises(
        ValueError, match=r"alphas must be a sequence of numbers in \[0, inf\).*got -2.0 at position 1\."
    ):
        check_parameters(Path([1.0, -2.0]))
    with pytest.raises(TypeError, match=r"alphas must be .*got 'a' at position 0\."):
        check_parameters(Path(["a"]))


def test_the_constructor_is_one_that_scikit_learn_reads() -> None:
    defaults = {name: parameter.default for name, parameter in inspect.signature(Model).parameters.items()}
    assert defaults == {"alpha": 1.0, "rows": 3, "name": "a"}
    assert Model.__init__.__annotations__ == {"alpha": "float", "rows": "int", "name": "str", "return": None}
    model = Model(0.5, name="b")
    assert model.get_params() == {"alpha": 0.5, "rows": 3, "name": "b"}
    assert repr(model) == "Model(alpha=0.5, name='b')"
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).alpha == 0.5
    assert model.set_params(rows=4).rows == 4
    assert Model.__init__.__qualname__ == "Model.__init__"
    with pytest.raises(TypeError, match="no_such"):
        Model(no_such=1)  # type: ignore[call-arg]


def test_the_class_itself_has_no_parameter_and_no_fitted_attribute() -> None:
    """What an instance lacks must be missing, not found on the class: files and `check_is_fitted` rely on it."""
    for name in ("alpha", "rows", "coef_", "hidden_"):
        assert not hasattr(Model, name)
    assert vars(Model()) == {"alpha": 1.0, "rows": 3, "name": "a"}


def test_defaults_are_passed_on_as_they_are() -> None:
    default = np.arange(3)

    class Holder(Declared, BaseEstimator):
        values: Any = Parameter(default, Any_("array"), "Values.")

    assert Holder().values is default


def names(cls: type) -> list[str]:
    return list(inspect.signature(cls).parameters)


def test_parameters_of_bases_come_first_and_are_replaced_in_place() -> None:
    class Child(Model):
        """A child."""

        extra: bool = Parameter(False, Flag(), "More.")
        rows: int = Parameter(5, Integer(2), "At least two.")

    assert names(Child) == ["alpha", "rows", "name", "extra"]
    assert Child().rows == 5
    with pytest.raises(ValueError, match=r"rows must be an integer in \[2, inf\)"):
        Child(rows=1).fit(None)
    assert Model().rows == 3
    assert "At least two." in (Child.__doc__ or "")
    assert "The coefficient." in (Child.__doc__ or "")  # of the base


def test_two_bases_that_declare() -> None:
    class Left(Declared):
        left: int = Parameter(1, Integer(), "Left.")

    class Right(Declared):
        right: int = Parameter(2, Integer(), "Right.")

    class Both(Left, Right, BaseEstimator):
        """Both."""

    assert names(Both) == ["right", "left"]  # as dataclasses have it: the last base first
    assert Both(left=7).get_params() == {"left": 7, "right": 2}


def test_parameters_by_name_only() -> None:
    class Base(Declared, BaseEstimator):
        first: int = Parameter(1, Integer(), "First.")
        _: KW_ONLY
        second: int = Parameter(2, Integer(), "Second.")

    class Child(Base):
        third: int = Parameter(3, Integer(), "Third.")

    kinds = {name: parameter.kind for name, parameter in inspect.signature(Child).parameters.items()}
    assert list(kinds) == ["first", "third", "second"]
    assert kinds["second"] is inspect.Parameter.KEYWORD_ONLY
    assert Child(5, 6, second=7).get_params() == {"first": 5, "second": 7, "third": 6}
    with pytest.raises(TypeError, match="positional"):
        Base(1, 2)  # type: ignore[misc]


def test_another_order_may_leave_some_out() -> None:
    class Fewer(Model):
        """Fewer."""

        extra: int = Parameter(0, Integer(), "More.")
        __order__ = ("extra", "alpha")

    assert names(Fewer) == ["extra", "alpha"]
    assert set(parameters_of(Fewer)) == {"extra", "alpha"}
    Fewer().fit(None)  # what was left out is not asked for
    assert "rows :" not in (Fewer.__doc__ or "")


def test_parameters_that_come_last() -> None:
    class Watched(Stopped, BaseEstimator):
        """Fitted while somebody looks."""

        alpha: float = ALPHA
        n_jobs: int | None = N_JOBS.but(2)

    assert list(parameters_of(Watched)) == ["alpha", "tol", "max_iter", "n_jobs", "verbose"]
    assert Watched(0.5, tol=0.1).get_params() == {"alpha": 0.5, "tol": 0.1, "max_iter": 1000, "n_jobs": 2, "verbose": 0}


def test_a_class_says_once_what_its_rows_are() -> None:
    assert DENSE in str(inspect.getdoc(certifit.LDA.outlier_probability))
    assert PAIRWISE in str(inspect.getdoc(certifit.KMedoids.fit))
    assert PAIRWISE not in str(inspect.getdoc(certifit.KMedoids.predict))


def test_a_constructor_of_its_own_stays() -> None:
    class Own(Declared, BaseEstimator):
        alpha: float = ALPHA

        def __init__(self) -> None:
            self.alpha = 3.0

    assert Own().alpha == 3.0
    assert names(Own) == []


def test_but_changes_what_is_said_and_nothing_else() -> None:
    assert ALPHA.but(0.5).default == 0.5
    assert ALPHA.but(0.5).text == ALPHA.text
    assert ALPHA.but(None).default is None
    assert ALPHA.but(text="Other.").default == 1.0
    assert ALPHA.but(text="Other.").text == "Other."
    assert VERBOSE.but(1).heading() == "int, default=1"
    assert VERBOSE.but(domain=Flag()).heading() == "bool, default=0"
    assert ALPHA.default == 1.0


def test_the_docstring_has_its_sections_in_order() -> None:
    doc = inspect.getdoc(Model) or ""
    titles = ["A model.", "It has a text of its own.", "Parameters\n-----", "Attributes\n-----", "Examples\n-----"]
    places = [doc.index(title) for title in titles]
    assert places == sorted(places)
    assert "alpha : float ≥ 0, default=1.0\n    Strength of the penalty.\nrows : int ≥ 1, default=3\n" in doc
    assert 'name : {"a", "b"}, default="a"\n    Which.\n' in doc
    assert "own_ : int\n    Written by hand.\ncoef_ : float\n    The coefficient.\n" in doc
    assert "hidden_" not in doc
    assert max(map(len, doc.splitlines())) <= 120
    assert doc.count("Parameters\n") == doc.count("Attributes\n") == 1


def test_a_section_written_by_hand_stays() -> None:
    class ByHand(Declared, BaseEstimator):
        """By hand.

        Parameters
        ----------
        alpha : float
            As I say.
        """

        alpha: float = ALPHA

    assert "As I say." in (ByHand.__doc__ or "")
    assert ALPHA.text not in (ByHand.__doc__ or "")


def test_a_class_without_text_gets_none() -> None:
    class Silent(Declared, BaseEstimator):
        alpha: float = ALPHA

    assert Silent.__doc__ is None
    assert names(Silent) == ["alpha"]


def test_examples_are_still_found() -> None:
    found = doctest.DocTestFinder().find(Model, "Model")
    assert [example.source for test in found for example in test.examples] == ["1 + 1\n"]


def test_columns_are_declared_once() -> None:
    class Transformer(OfColumns, BaseEstimator):
        """A transformer."""

    assert "n_features_in_ : int" in (Transformer.__doc__ or "")
    assert names(Transformer) == []
    assert not hasattr(Transformer(), "n_features_in_")


class Renamed(Declared, BaseEstimator):
    """A model of two parameters, one of which had another name."""

    most: int = Parameter(3, Integer(1), "Most of them.", was="maximum")
    least: int = Parameter(1, Integer(0), "Least of them.")


def test_the_old_name_of_a_parameter_is_understood() -> None:
    with pytest.warns(FutureWarning, match="Renamed: the parameter maximum is called most now"):
        model = Renamed(maximum=7)
    assert model.get_params() == {"most": 7, "least": 1}
    assert model.maximum == 7
    with pytest.warns(FutureWarning, match="maximum is called most"):
        model.set_params(maximum=8, least=2)
    assert (model.most, model.least) == (8, 2)
    with pytest.raises(TypeError, match="old and the new name"):
        Renamed(most=1, maximum=2)
    with pytest.raises(TypeError, match="no_such"):
        Renamed(no_such=1)
    with pytest.raises(AttributeError, match="no_such"):
        model.no_such  # noqa: B018 - the look is the test
    assert str(inspect.signature(Renamed)) == "(most: 'int' = 3, least: 'int' = 1) -> None"


def test_a_file_of_an_earlier_release_has_the_old_name() -> None:
    model = Renamed.__new__(Renamed)
    vars(model).update(maximum=5, least=0)
    assert model.most == 5
    assert clone(model).get_params() == {"most": 5, "least": 0}


def test_a_file_older_than_a_parameter_has_its_default() -> None:
    model = Renamed.__new__(Renamed)
    vars(model).update(least=0)
    assert model.most == 3
    assert "most" not in vars(model)


@pytest.mark.parametrize(
    ("cls", "old", "new", "value"),
    [
        ("GradientBoostingRegressor", "max_leaves", "max_leaf_nodes", 4),
        ("GradientBoostingRegressor", "monotone", "monotone_constraints", [1, 0]),
        ("GradientBoostingRegressor", "categorical", "categorical_features", [1]),
        ("DecisionTreeRegressor", "max_leaves", "max_leaf_nodes", 4),
        ("RandomForestClassifier", "max_leaves", "max_leaf_nodes", 4),
        ("SGDRegressor", "max_epochs", "max_iter", 4),
        ("MLPClassifier", "max_epochs", "max_iter", 4),
        ("Perceptron", "max_epochs", "max_iter", 4),
    ],
)
def test_names_of_the_ecosystem(cls: str, old: str, new: str, value: Any) -> None:
    with pytest.warns(FutureWarning, match=f"{old} is called {new} now"):
        model = getattr(certifit, cls)(**{old: value})
    assert model.get_params()[new] == value
    assert old not in model.get_params()


# scikit-learn is untyped, and of classes on an untyped base mypy checks the arguments that it knows and lets others pass.
TYPED = """
from certifit import DecisionTreeClassifier, Ridge, RidgeCV, SGDClassifier
from certifit.representation.table.binning import Binner

Ridge(0.5, fit_intercept=False, tol=1e-4)
DecisionTreeClassifier("gini", max_depth=3)
SGDClassifier("hinge", class_weight="balanced")
Binner(31, [0])
Ridge(tol="small")  # wrong
DecisionTreeClassifier(max_depth="deep")  # wrong
RidgeCV().alpha_.no_such  # wrong
Binner("many")  # wrong
Binner(no_such=1)  # wrong
Binner(edges_=[])  # wrong
"""


@pytest.mark.exhaustive
def test_a_type_checker_sees_the_constructors(tmp_path: Path) -> None:
    file = tmp_path / "typed.py"
    file.write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--cache-dir", str(tmp_path), str(file)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=600).stdout
    found = {int(line.split(":")[1]) for line in told.splitlines() if "typed.py" in line and "error" in line}
    assert found == {i for i, line in enumerate(TYPED.splitlines(), 1) if line.endswith("# wrong")}, told


def test_the_package_itself_uses_the_new_names() -> None:
    public = {name: getattr(certifit, name) for name in certifit.__all__}
    old = {name: vars(one)["__old_names__"] for name, one in public.items() if vars(one).get("__old_names__")}
    assert "max_epochs" in old["Perceptron"]
    found = [
        (path.name, node.lineno, keyword.arg)
        for path in Path(certifit.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg in old.get(ast.unparse(node.func).rpartition(".")[2], ())
    ]
    assert found == []
