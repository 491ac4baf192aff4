"""The fuzzers notice what they are there for, and draw the same cases from the same seed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.contract.discovery import ESTIMATORS
from tests.fuzz import run
from tests.fuzz.judge import failure
from tests.fuzz.run import KINDS, Bench, case, shortened
from tests.fuzz.sweep import order, triples

MODEL = """import numpy as np
import certifit as cf
from tests.fuzz.judge import check_fit, check_table
model = cf.Ridge().fit(np.eye(3), np.arange(3.0))
"""


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench(limit=2.0)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("import os; os.abort()", "the process ends: SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", "the process ends: SIGSEGV"),
        ("import os; os._exit(3)", "the process ends: exit code 3"),
        ("while True: pass", "does not end within 2 s"),
        ("model.coef_[0] = np.nan\ncheck_fit(model, np.eye(3))", "AssertionError in judge.py:_check_numbers: predict"),
        ("model.coef_ = None\nmodel.predict(np.eye(3))", "AttributeError in "),
        ("model.coef_ = np.ones(7)\nmodel.predict(np.eye(3))", "ValueError in "),
        ("cf.Ridge().predict(np.eye(3))", None),
        ("model.fit('text', 3)", None),
        ("1 / 0", None),
    ],
)
def test_failures_are_told_from_refusals(lines: str, said: str | None, bench: Bench) -> None:
    found = bench.judge(MODEL + lines + "\n")
    assert found is None if said is None else found is not None and found.startswith(said), found


@pytest.mark.parametrize("busy", [False, True])
def test_who_waits_for_ever_is_told_from_who_is_kept_waiting(busy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "WAITING", 0.05)
    ticks = itertools.count()
    if busy:  # as if the child computed all the time, though the machine lets it do little
        monkeypatch.setattr(Bench, "_processor_time", lambda _: float(next(ticks)))
    bench = Bench(limit=2.0)
    found = bench.judge(f"import time\ntime.sleep({1 if busy else 60})\n")
    bench.close()
    assert found == (None if busy else "does not end within 2 s\n")


def test_a_child_that_others_end_between_cases_is_replaced(bench: Bench) -> None:
    assert bench.judge("x = 1\n") is None
    assert bench._child is not None
    bench._child.kill()
    bench._child.join()
    assert bench.judge("x = 1\n") is None


def test_a_certificate_of_nothing_is_a_failure() -> None:
    broken = "from types import SimpleNamespace\n"
    broken += (
        "model.certificate_ = SimpleNamespace(certified=True, objective=np.nan, gap=0.0)\ncheck_fit(model, np.eye(3))\n"
    )
    found = failure(MODEL + broken)
    assert found is not None
    assert "certified with objective nan" in found


def test_cases_are_shortened_to_what_fails() -> None:
    code = MODEL + "a = 1\nmodel.coef_[1] = np.inf\nb = 2\ncheck_fit(model, np.eye(3))\nc = 3\n"
    found = failure(code)
    assert found is not None
    short = shortened(code, found, failure)
    assert short.splitlines()[3:] == [MODEL.splitlines()[3], "model.coef_[1] = np.inf", "check_fit(model, np.eye(3))"]


@pytest.mark.parametrize("kind", KINDS)
def test_cases_come_from_the_seed_alone(kind: str) -> None:
    cases = [[case(kind, seed, k) for k in range(20)] for seed in (1, 1, 2)]
    assert cases[0] == cases[1] != cases[2]
    for code in cases[0]:
        compile(code, "case", "exec")


def test_the_sweep_meets_every_triple_once() -> None:
    """One walk of all numbers is every setting with every pair; the next walk has another order."""
    all_of = triples()
    assert len(set(all_of)) == len(all_of)
    assert {triple.case.cls for triple in all_of} == set(ESTIMATORS)
    orders = [[order(seed, number) for number in range(len(all_of))] for seed in (1, 2)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(len(all_of)))


@pytest.mark.parametrize("sort", ["rows", "kind", "target", "weights", "argument"])
def test_the_sweep_writes_what_its_triples_say(sort: str) -> None:
    seed, met = 5, 0
    for number in range(300):
        triple = triples()[order(seed, number)]
        lines = case("sweep", seed, number).splitlines()
        assert any(line.startswith(f"model = cf.{triple.case.cls.__name__}(") for line in lines)
        if sort != "argument":  # of parameters that only the data could choose there is no line
            assert set(triple.of(sort)) <= set(lines)
        else:
            named = {line.split("(")[1].split("=")[0] for line in lines if line.startswith("model.set_params(")}
            assert named <= {*triple.of(sort), "random_state", "time_limit"}
        met += bool(triple.of(sort))
    assert met > 30


def test_tall_cases_are_tall_or_wide() -> None:
    found = set()
    for number in range(200):
        lines = case("tall", 1, number).splitlines()
        n = next(int(line.removeprefix("n = ")) for line in lines if line.startswith("n = "))
        d = next(int(line.split("(n, ")[1].rstrip(")")) for line in lines if line.startswith("X = rng.normal"))
        found.add(n > d)
        assert n >= 500 or d >= 500
        assert n * d <= 300_000
    assert found == {True, False}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["fits", "sweep"])
def test_most_fits_reach_their_end(kind: str) -> None:
    """A fuzzer that only meets refusals tests the gate alone."""
    ended = 0
    for k in range(30):
        space = {"__name__": "case"}
        code = case(kind, 3, k) + "ended = True\n"
        try:
            exec(compile(code, "case", "exec"), space)
        except Exception:  # what was refused, or failed, is counted out
            continue
        ended += bool(space.get("ended"))
    assert ended > 8
