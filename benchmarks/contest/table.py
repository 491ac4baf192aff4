"""A large CSV read, typed and split: seconds and peak memory against the size of the file.

    python benchmarks/contest/table.py [--rows 1000000] [--columns 30]

The work is done in a fresh process, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

WORK = """
import json, sys, time
start = time.perf_counter()
from certifit.contest.table.table import Table
from certifit.evaluation.splits.sealed import sealed_split
table = Table.from_source(sys.argv[1], "bought")
split = sealed_split(table.y, task=table.task.kind, codes=table.codes, seed=0)
seconds, busy = time.perf_counter() - start, time.process_time()
# The high-water mark of this program alone: getrusage would also count the parent that started it.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
kinds = {}
for column in table.columns:
    kinds[column.kind] = kinds.get(column.kind, 0) + 1
print(json.dumps({"seconds": seconds, "busy": busy, "peak_kib": peak, "kinds": kinds}))
"""


def write(path: Path, rows: int, columns: int, seed: int = 0) -> None:
    """A table of every kind of column: numbers of several lengths, whole numbers, categories, dates, gaps."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2020-01-01") + rng.integers(0, 1500, rows).astype("timedelta64[D]")
    data: dict[str, pl.Series] = {
        "row": pl.Series(np.arange(rows)),
        "bought": pl.Series(np.where(rng.random(rows) < 0.2, "yes", "no")),
        "day": pl.Series(days),
    }
    for j in range(columns - len(data)):
        if j % 4 == 0:
            data[f"count_{j}"] = pl.Series(rng.poisson(50, rows))
        elif j % 4 == 1:
            data[f"place_{j}"] = pl.Series(np.array(["north", "south", "east", "far west"])[rng.integers(0, 4, rows)])
        else:
            values = pl.Series(np.round(rng.normal(size=rows), 6))
            data[f"size_{j}"] = values.set(pl.Series(rng.random(rows) < 0.02), None)
    pl.DataFrame(data).write_csv(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.csv"
        write(path, options.rows, options.columns)
        size = path.stat().st_size
        done = subprocess.run([sys.executable, "-c", WORK, str(path)], check=True, capture_output=True, text=True)
    result = json.loads(done.stdout)
    peak = 1024 * result["peak_kib"]
    print(f"{options.rows} rows × {options.columns} columns, {size / 1e6:.0f} MB; {result['kinds']}")
    print(f"read, typed and split in {result['seconds']:.2f} s (limit 10), {result['busy']:.2f} s of processor time")
    print(f"peak memory {peak / 1e6:.0f} MB = {peak / size:.2f} × the file (limit 3)")


if __name__ == "__main__":
    main()
