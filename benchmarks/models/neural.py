"""Networks beside scikit-learn and, where it is installed, PyTorch on the processor: same layers, batches, epochs, optimizer.

    python benchmarks/models/neural.py [table] [small] [mnist] [--repeat 3] [--data FOLDER]

Everybody trains with Adam at a step of 1e-3 on the same columns in single precision, two threads each; a time is that of training
and of predicting the new rows, the best of some runs in turn, beside its processor time. PyTorch goes through its batches by
index in a plain loop. Accuracy is that on rows nobody has seen, after the same epochs; on MNIST our steps follow a cosine.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier as Theirs
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from certifit import MLPClassifier

try:
    import torch
except ImportError:
    torch = None

THREADS = 2
DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "mnist" / "mnist.npz"
Split = tuple[Any, Any, Any, Any]


def ours(hidden: tuple[int, ...], batch: int, epochs: int, split: Split) -> float:
    X, y, new, wanted = split
    schedule = "cosine" if epochs * len(X) > 500_000 else "constant"  # worth it once the step is what limits
    model = MLPClassifier(hidden, batch_size=batch, max_iter=epochs, n_iter_no_change=epochs, random_state=0)
    model.set_params(schedule=schedule, standardize=False, n_jobs=THREADS)
    return float(model.fit(X, y).score(new, wanted))


def scikit_learn(hidden: tuple[int, ...], batch: int, epochs: int, split: Split) -> float:
    X, y, new, wanted = split
    model = Theirs(hidden, batch_size=batch, max_iter=epochs, n_iter_no_change=epochs, random_state=0)
    with warnings.catch_warnings(), threadpool_limits(THREADS):
        warnings.simplefilter("ignore")  # the epochs are meant to be few
        return float(model.fit(X, y).score(new, wanted))


def pytorch(hidden: tuple[int, ...], batch: int, epochs: int, split: Split) -> float:
    X, y, new, wanted = split
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    rows, labels = torch.from_numpy(X), torch.from_numpy(y.astype(np.int64))
    sizes = [X.shape[1], *hidden]
    layers: list[Any] = []
    for n_in, n_out in pairwise(sizes):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], int(y.max()) + 1))
    optimizer, loss = torch.optim.Adam(net.parameters(), lr=1e-3), torch.nn.CrossEntropyLoss()
    for _ in range(epochs):
        order = torch.randperm(len(rows))
        for start in range(0, len(rows), batch):
            chosen = order[start : start + batch]
            optimizer.zero_grad(set_to_none=True)
            loss(net(rows[chosen]), labels[chosen]).backward()
            optimizer.step()
    with torch.no_grad():
        return float((net(torch.from_numpy(new)).argmax(dim=1).numpy() == wanted).mean())


def report(title: str, hidden: tuple[int, ...], batch: int, epochs: int, split: Split, repeat: int) -> None:
    """One table: everybody in turn, the best of some runs."""
    works: dict[str, Callable[..., float] | None] = {
        "certifit": ours,
        "scikit-learn": scikit_learn,
        "PyTorch": None if torch is None else pytorch,
    }
    walls: dict[str, list[float]] = {name: [] for name in works}
    costs: dict[str, list[float]] = {name: [] for name in works}
    accuracy: dict[str, float] = {}
    for _ in range(repeat):
        for name, work in works.items():
            if work is None:
                continue
            started, used = time.perf_counter(), time.process_time()
            accuracy[name] = work(hidden, batch, epochs, split)
            walls[name].append(time.perf_counter() - started)
            costs[name].append(time.process_time() - used)
    print(f"\n{title}: {'-'.join(map(str, hidden))}, batches of {batch}, {epochs} epochs")
    print(f"{'':14} {'seconds':>9} {'processor':>10} {'accuracy':>9} {'ratio':>7}")
    for name in works:
        if not walls[name]:
            print(f"{name:14} {'not installed':>20}")
            continue
        ratio = min(walls[name]) / min(walls["certifit"])
        print(f"{name:14} {min(walls[name]):9.3f} {min(costs[name]):10.3f} {accuracy[name]:9.4f} {ratio:6.1f}x")


def made(n: int, d: int, classes: int) -> Split:
    X, y = make_classification(
        n + n // 4, d, n_informative=min(d, 20), n_redundant=0, n_classes=classes, class_sep=1.5, random_state=0
    )
    X = StandardScaler().fit_transform(X).astype(np.float32)
    return X[:n], y[:n], X[n:], y[n:]


def digits(path: Path) -> Split:
    stored = np.load(path)
    train, test = (
        stored[name].reshape(len(stored[name]), -1).astype(np.float32) / 255.0 for name in ("X_train", "X_test")
    )
    return train, stored["y_train"], test, stored["y_test"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=["table", "small", "mnist"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    if "table" in options.tasks:
        report("30,000 x 100, 10 classes", (128, 64), 128, 10, made(30_000, 100, 10), options.repeat)
    if "small" in options.tasks:
        report("5,000 x 20, 3 classes", (128, 64), 32, 50, made(5000, 20, 3), options.repeat)
    if "mnist" in options.tasks:
        if options.data.exists():
            report("MNIST", (256, 128), 128, 10, digits(options.data), 1)
        else:
            print(f"\nMNIST: no file {options.data}")


if __name__ == "__main__":
    main()
