"""Files of every format version that was ever written still open, and say what they said."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.persistence.stored import DATA, models, said

from certifit.persistence import inspect_file, load
from certifit.persistence.container import FORMAT

FILES = sorted(DATA.glob("format*/*.cfit"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_opens_and_predicts_what_it_predicted(path: Path) -> None:
    told = json.loads(path.with_suffix(".json").read_text())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*of scikit-learn")  # which release wrote the pipeline
        model = load(path)
    X = np.array(told.pop("X"))
    assert told
    answers = said(model, X)
    assert answers.keys() == told.keys()
    for method, wanted in told.items():
        found = np.asarray(answers[method])
        if found.dtype.kind == "f":
            # The order of sums in BLAS differs from machine to machine.
            # Networks are of single precision, and its last digit depends on the processor.
            digits = 1e-5 if path.stem.startswith("neural") else 1e-12
            np.testing.assert_allclose(found, wanted, rtol=digits, atol=0.01 * digits)
        else:
            np.testing.assert_array_equal(found, wanted)
    assert f"format{inspect_file(path).format}" == path.parent.name


def test_every_family_is_kept_in_the_present_format() -> None:
    kept = {path.stem for path in FILES if path.parent.name == f"format{FORMAT}"}
    assert kept == models().keys()
