"""The memory that a fit takes on top of its data, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["bytes_a_row", "needs_proc"]

needs_proc = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from /proc")

PEAK = """
import gc
import numpy as np
from pathlib import Path
import certifit

def kilobytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

n, d = 300_000, 12
rng = np.random.default_rng(0)
X = rng.normal(size=(n, d)).astype(np.float32)
y = (X[:, 0] * X[:, 1] + rng.normal(size=n) > 0).astype(np.int64)
{rows}
model = certifit.{model}
model.fit(X[:1000], y[:1000])
gc.collect()
Path("/proc/self/clear_refs").write_text("5")
before = kilobytes("VmRSS")
model.fit(X, y)
print((kilobytes("VmHWM") - before) * 1024 / n)
"""


def bytes_a_row(model: str, rows: str = "") -> float:
    """The peak of fitting `model`, an expression, to 300,000 rows of 12 floats (48 bytes a row), and a label.

    `rows` is what changes X and y before.
    """
    command = [sys.executable, "-c", PEAK.replace("{model}", model).replace("{rows}", rows)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
