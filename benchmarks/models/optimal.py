"""The best tree beside ConTree (pip install pycontree), which finds it too.

    python benchmarks/models/optimal.py [--rows 10000] [--columns 20] [--depths 2 3]

Times are of the processor, on one thread. Both must find as few wrong labels.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from certifit import OptimalTreeClassifier

try:
    from pycontree import ConTree
except ImportError:
    ConTree = None


def timed(model: Any, X: Any, y: Any) -> tuple[float, int]:
    began = time.process_time()
    model.fit(X, y)
    return time.process_time() - began, int((model.predict(X) != y).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 3])
    options = parser.parse_args()
    X, y = make_classification(options.rows, options.columns, n_informative=8, n_redundant=4, random_state=0)
    print("| depth | Certifit | wrong | ConTree | wrong | ratio |\n|---|---|---|---|---|---|")
    for depth in options.depths:
        model = OptimalTreeClassifier(depth, 0.0, time_limit=None, n_jobs=1)
        ours, wrong = timed(model, X, y)
        row = f"| {depth} | {ours:.3f} s, certified {model.certificate_.certified} | {wrong} |"
        if ConTree is None:
            print(f"{row} not installed | | |")
            continue
        theirs, other = timed(ConTree(max_depth=depth, time_limit=3600), X, y.astype(np.intc))
        print(f"{row} {theirs:.3f} s | {other} | {theirs / ours:.1f} |")


if __name__ == "__main__":
    main()
