"""What once failed does not fail again. Each file of the corpus is a case that a fuzzer found, shortened.

Its first line says what happened then; a second comment says by which words the case is refused now, where it is.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.fuzz.judge import failure
from tests.fuzz.run import LIMIT

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.py"))
REFUSED = "# now refused: "


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_past_failure(path: Path) -> None:
    code = path.read_text(encoding="utf-8")
    words = [line.removeprefix(REFUSED) for line in code.splitlines() if line.startswith(REFUSED)]
    start = time.process_time()
    if words:
        assert failure(code) is None
        with pytest.raises((ValueError, TypeError), match=words[0]):
            exec(compile(code, path.name, "exec"), {"__name__": "case"})
    else:
        exec(compile(code, path.name, "exec"), {"__name__": "case"})
    assert time.process_time() - start < LIMIT
