"""Training on a GPU beside a plain PyTorch loop on the same device: 10^6 rows of 100 columns, 512-256-128, batches of 8,192.

    python benchmarks/gpu/neural.py [--rows 1000000] [--epochs 5]

Rows and labels lie on the device for both; a time is that of the epochs after a first one that warms up, with the device idle
at both ends.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from certifit.losses import Softmax
from certifit.models.neural.layers import Columns, initial
from certifit.models.neural.objective import Target
from certifit.models.neural.trainers.cuda import CudaTrainer, import_torch
from certifit.models.neural.training import Recipe, State

HIDDEN, BATCH, CLASSES = (512, 256, 128), 8192, 10


def made(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 100)).astype(np.float32)
    return X, (X[:, :20] @ rng.normal(size=(20, CLASSES)) + np.abs(X[:, 20:30])).argmax(axis=1)


def ours(X: Any, y: Any, epochs: int) -> tuple[float, float]:
    weight, sizes = np.ones(len(X)), (X.shape[1], *HIDDEN, CLASSES)
    target, columns = Target.of(Softmax(CLASSES), y, weight), Columns.of(X, weight, True)
    trainer = CudaTrainer(import_torch(), sizes, "relu", 0.0, columns, X, target)
    rng = np.random.default_rng(0)
    trainer.load(State.start(initial(sizes, "glorot", 0.0, rng)))
    recipe = Recipe(
        "adam", 1e-3, "constant", 0.9, (0.9, 0.999), 1e-8, 0.0, BATCH, 0.0, 0.0, 0.0, 0.0, epochs, 9, 0.0, 0
    )
    loss = 0.0
    for epoch in range(epochs + 1):
        if epoch == 1:
            torch.cuda.synchronize()
            started = time.perf_counter()
        loss, _ = trainer.epoch(rng.permutation(len(X)).astype(np.uint32), recipe, 1e-3)
    torch.cuda.synchronize()
    return time.perf_counter() - started, loss


def loop(X: Any, y: Any, epochs: int) -> tuple[float, float]:
    rows, labels = torch.from_numpy(X).cuda(), torch.from_numpy(y).cuda()
    layers: list[Any] = []
    for n_in, n_out in pairwise((X.shape[1], *HIDDEN)):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(HIDDEN[-1], CLASSES)).cuda()
    optimizer, criterion = torch.optim.Adam(net.parameters(), lr=1e-3), torch.nn.CrossEntropyLoss()
    for epoch in range(epochs + 1):
        if epoch == 1:
            torch.cuda.synchronize()
            started = time.perf_counter()
        order, total = torch.randperm(len(rows), device="cuda"), torch.zeros((), device="cuda")
        for start in range(0, len(rows), BATCH):
            chosen = order[start : start + BATCH]
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(net(rows[chosen]), labels[chosen])
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(chosen)
    mean = float(total) / len(rows)
    torch.cuda.synchronize()
    return time.perf_counter() - started, mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    X, y = made(options.rows)
    print(f"{options.rows:,} x 100, {'-'.join(map(str, HIDDEN))}, batches of {BATCH:,}, {options.epochs} epochs")
    theirs, mine = (min(work(X, y, options.epochs) for _ in range(3)) for work in (loop, ours))
    for name, (seconds, loss) in (("certifit", mine), ("PyTorch loop", theirs)):
        print(f"{name:14} {seconds:8.3f} s   loss {loss:.4f}   ratio {theirs[0] / seconds:5.2f}")


if __name__ == "__main__":
    main()
