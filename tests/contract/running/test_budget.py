"""The contract grows with the estimators, so each must be cheap: about 150 fits a class are made by default."""

from __future__ import annotations

import time

from tests.contract.data import fit, make, output, unbothered
from tests.contract.discovery import Case, parametrize

MOST = 0.12  # seconds of processor time; most fits take a tenth of it


@parametrize()
def test_a_fit_of_the_contract_is_cheap(case: Case) -> None:
    """Where it is not: smaller sizes in SMALL of discovery.py, or in the variants of the class."""
    X, y = make(case)
    seconds = []
    while len(seconds) < 3 and (not seconds or min(seconds) >= MOST):
        started = time.process_time()
        with unbothered():
            output(fit(case.precise(random_state=0), X, y), X)
        seconds.append(time.process_time() - started)
    assert min(seconds) < MOST
