"""The memory that a fit takes on top of its data, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["bytes_a_row", "needs_proc", "share_of_x"]

needs_proc = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from /proc")

PEAK = """
import gc
import numpy as np
from pathlib import Path
import certifit

def kilobytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

n, d = {shape}
rng = np.random.default_rng(0)
X = rng.normal(size=(n, d)).astype(np.{dtype})
y = (X[:, 0] * X[:, 1] + rng.normal(size=n) > 0).astype(np.int64)
{rows}
model = certifit.{model}
model.fit(X[:{first}], y[:{first}])
gc.collect()
Path("/proc/self/clear_refs").write_text("5")
before = kilobytes("VmRSS")
model.fit(X, y)
print((kilobytes("VmHWM") - before) * 1024)
"""


def _peak(model: str, shape: tuple[int, int], dtype: str, first: int, rows: str = "") -> float:
    given = {"{model}": model, "{shape}": str(shape), "{dtype}": dtype, "{first}": str(first), "{rows}": rows}
    script = PEAK
    for name, value in given.items():
        script = script.replace(name, value)
    return float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


def bytes_a_row(model: str, rows: str = "") -> float:
    """The peak of fitting `model`, an expression, to 300,000 rows of 12 floats (48 bytes a row), and a label.

    `rows` is what changes X and y before.
    """
    return _peak(model, (300_000, 12), "float32", 1000, rows) / 300_000


def share_of_x(model: str, n: int, d: int) -> float:
    """The same of n rows of d doubles, as a share of what they take."""
    return _peak(model, (n, d), "float64", min(n, 100)) / (8 * n * d)
