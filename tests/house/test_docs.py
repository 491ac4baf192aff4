"""The examples of the documentation are run, so that they stay true."""

from __future__ import annotations

import doctest
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sklearn

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md") if (ROOT / name).exists()),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCE = re.compile(r"^(?P<indent> *)```python[^\n]*\n(?P<code>.*?)^(?P=indent)```\s*$", re.DOTALL | re.MULTILINE)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page: Path) -> Iterator[tuple[int, str]]:
    """First line and text of each Python block of a page."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        indent = len(found["indent"])
        code = "".join(line[indent:] for line in found["code"].splitlines(keepends=True))
        yield text.count("\n", 0, found.start()) + 2, code


def test_the_readme_is_among_the_pages() -> None:
    assert ROOT / "README.md" in PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples(page: Path, tmp_path: Path) -> None:
    """Blocks of one page share their names, as a reader who types them in expects."""
    if page.name == "sklearn.md" and tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 9):
        pytest.skip("the drop-ins are for scikit-learn 1.9")
    names: dict[str, object] = {"__name__": "__main__"}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=OPTIONS)
    report: list[str] = []
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        for line, code in blocks(page):
            where = f"{page.relative_to(ROOT)}:{line}"
            if ">>>" not in code:
                compile(code, where, "exec")  # not meant to be typed in, but it must be Python
                continue
            example = parser.get_doctest(code, names, where, str(page), line - 1)
            runner.run(example, out=report.append, clear_globs=False)
            names.update(example.globs)
    finally:
        os.chdir(before)
    assert runner.failures == 0, "".join(report)
