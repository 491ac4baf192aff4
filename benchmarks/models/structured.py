"""Conditional random fields beside CRFsuite (python-crfsuite, which sklearn-crfsuite drives), to the same objective.

    python benchmarks/models/structured.py [pos] [labels12] [labels60] [viterbi] [features] [--sentences 2000] [--data FOLDER]

Both minimize Σ negative log-likelihood + c2·‖w‖² over the same weights: features with the labels they were seen with, and all
transitions. Each gets the same lists of feature names. A time is that of training from these lists until the objective is within
1e-3 of the optimum; CRFsuite's is read off its own log of iterations, plus the time it took to take the data in. Two threads for
Certifit; CRFsuite has one.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tasks import parse_tasks

from certifit import LinearChainCRF, read_conllu
from certifit.representation.sequences.templates import TAGGING, TemplateFeatures

try:
    import pycrfsuite
except ImportError:
    pycrfsuite = None

WITHIN = 1e-3
THREADS = 2
DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "ud_english_ewt"
TEMPLATES = [template for template in TAGGING if template not in ("w[-1].brief", "w[1].brief")]
Sequences = list[list[Any]]


def brief(text: str) -> str:
    kinds = ("X" if c.isupper() else "0" if c.isdigit() else "x" if c.isalpha() else c for c in text)
    out: list[str] = []
    for kind in kinds:
        if not out or out[-1] != kind:
            out.append(kind)
    return "".join(out)


def by_hand(words: list[str]) -> list[dict[str, str]]:
    """The templates as everybody writes them: a dictionary for each token."""
    padded = ["<s>", "<s>", *words, "</s>", "</s>"]
    found = []
    for t, word in enumerate(words, start=2):
        features = {"w": word, "lower": word.lower(), "brief": brief(word)}
        features |= {f"suffix{n}": word[-n:] for n in (1, 2, 3, 4)}
        features |= {f"prefix{n}": word[:n] for n in (1, 2, 3)}
        features |= {"-1": padded[t - 1], "+1": padded[t + 1], "-2": padded[t - 2], "+2": padded[t + 2]}
        features["-1|0"] = f"{padded[t - 1]}|{word}"
        features["0|+1"] = f"{word}|{padded[t + 1]}"
        found.append(features)
    return found


def named(words: list[str]) -> list[list[str]]:
    return [[f"{name}={value}" for name, value in features.items()] for features in by_hand(words)]


def synthetic(labels: int, n: int = 1500, seed: int = 0) -> tuple[Sequences, Sequences]:
    """Labels from a Markov chain, five noisy symbols at each position."""
    rng = np.random.default_rng(seed)
    steps = rng.dirichlet(np.full(labels, 0.3), size=labels)
    symbols = rng.dirichlet(np.full(400, 0.05), size=labels)
    X, y = [], []
    for _ in range(n):
        path = [int(rng.integers(labels))]
        for _ in range(int(rng.integers(5, 35))):
            path.append(int(rng.choice(labels, p=steps[path[-1]])))
        X.append([[f"{j}:{rng.choice(400, p=symbols[k])}" for j in range(5)] for k in path])
        y.append([str(k) for k in path])
    return X, y


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    wall, busy = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - busy, result


def crfsuite(X: Sequences, y: Sequences, c2: float) -> tuple[float, list[tuple[float, float]], str]:
    """Seconds to take the data in, (seconds, loss) of its iterations, and the model file."""
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.select("lbfgs")
    trainer.set_params({"c1": 0.0, "c2": c2, "max_iterations": 2000, "feature.possible_transitions": True})

    def read() -> None:
        for features, labels in zip(X, y, strict=True):
            trainer.append(features, labels)

    seconds, _, _ = timed(read)
    handle, path = tempfile.mkstemp(suffix=".crfsuite")
    os.close(handle)
    trainer.train(path)
    spent, steps = 0.0, []
    for step in trainer.logparser.iterations:
        spent += float(step["time"])
        steps.append((spent, float(step["loss"])))
    return seconds, steps, path


def train(name: str, X: Sequences, y: Sequences, c2: float, Xt: Sequences, yt: Sequences) -> None:
    n = len(X)
    options = {"alpha": 2.0 * c2 / n, "bias": False, "boundaries": False, "n_jobs": THREADS}
    exact = LinearChainCRF(**options, tol=1e-6).fit(X, y)
    bound = exact.certificate_.bound
    unit = exact.certificate_.gap / exact.certificate_.relative_gap
    wall, busy, model = timed(lambda: LinearChainCRF(**options, tol=0.9 * WITHIN * bound / unit).fit(X, y))
    tokens = sum(len(labels) for labels in yt)
    print(
        f"{name}: {n} sequences, {sum(map(len, y))} positions, {exact.n_features_} features, {len(exact.classes_)} labels"
    )
    print(
        f"  certifit  {wall:7.2f} s ({busy:.2f} s of processor), objective {model.certificate_.objective / bound - 1:.1e} above "
        f"the bound, {model.n_iter_} iterations; accuracy {model.score(Xt, yt):.4f} of {tokens}, at the optimum "
        f"{exact.score(Xt, yt):.4f}"
    )
    if pycrfsuite is None:
        print("  CRFsuite is not installed here: pip install sklearn-crfsuite.")
        return
    reading, steps, path = crfsuite(X, y, c2)
    reached = next((seconds for seconds, loss in steps if loss / n <= (1.0 + WITHIN) * bound), np.inf)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    right = sum(
        a == b
        for features, labels in zip(Xt, yt, strict=True)
        for a, b in zip(tagger.tag(features), labels, strict=True)
    )
    print(
        f"  CRFsuite  {reading + reached:7.2f} s, {reading + steps[-1][0]:.2f} s until it stops by itself "
        f"({steps[-1][1] / n / bound - 1:.1e} above, {len(steps)} iterations); accuracy {right / tokens:.4f}"
    )
    print(f"  ratio     {(reading + reached) / wall:7.2f}")


def pos(arguments: argparse.Namespace) -> None:
    train_set, test_set = (read_conllu(arguments.data / f"en_ewt-ud-{part}.conllu.gz") for part in ("train", "test"))
    some = slice(arguments.sentences)
    X, Xt = [named(words) for words in train_set.tokens[some]], [named(words) for words in test_set.tokens]
    train("part of speech, UD English-EWT", X, train_set["upos"][some], 1.0, Xt, test_set["upos"])


def few_labels(arguments: argparse.Namespace) -> None:
    X, y = synthetic(12)
    train("synthetic, 12 labels", X, y, 1.0, X[:200], y[:200])


def many_labels(arguments: argparse.Namespace) -> None:
    X, y = synthetic(60)
    train("synthetic, 60 labels", X, y, 1.0, X[:200], y[:200])


def viterbi(arguments: argparse.Namespace) -> None:
    """From prepared features: both have looked at the text before the clock starts."""
    corpus = read_conllu(arguments.data / "en_ewt-ud-train.conllu.gz")
    X, y = [named(words) for words in corpus.tokens[:1500]], corpus["upos"][:1500]
    model = LinearChainCRF(alpha=2.0 / len(X), bias=False, boundaries=False, tol=1e-3, n_jobs=THREADS).fit(X, y)
    test = [named(words) for words in corpus.tokens[1500:4500]]
    tokens = sum(map(len, test))
    positions = model.encoder_.transform(test)
    wall = min(timed(lambda: model._viterbi(positions))[0] for _ in range(3))
    print(f"Viterbi: certifit {tokens / wall:,.0f} positions a second")
    if pycrfsuite is None:
        print("  CRFsuite is not installed here: pip install sklearn-crfsuite.")
        return
    _, _, path = crfsuite(X, y, 1.0)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    items = [pycrfsuite.ItemSequence(features) for features in test]
    peer = min(timed(lambda: [tagger.tag(one) for one in items])[0] for _ in range(3))
    print(f"  CRFsuite {tokens / peer:,.0f}; ratio {peer / wall:.2f}")


def features(arguments: argparse.Namespace) -> None:
    """From words to numbered features, vocabulary included."""
    corpus = read_conllu(arguments.data / "en_ewt-ud-train.conllu.gz")
    words = corpus.tokens[: 3 * arguments.sentences if arguments.sentences else None]
    tokens = sum(map(len, words))

    def loop() -> list[int]:
        index: dict[str, int] = {}
        return [
            index.setdefault(f"{name}={value}", len(index))
            for sentence in words
            for token in by_hand(sentence)
            for name, value in token.items()
        ]

    ours = min(timed(lambda: TemplateFeatures(TEMPLATES).fit(words))[0] for _ in range(3))
    plain = min(timed(loop)[0] for _ in range(2))
    print(
        f"features: templates {tokens / ours:,.0f} tokens a second, loop over dictionaries {tokens / plain:,.0f}; "
        f"ratio {plain / ours:.1f}"
    )


TASKS = {"pos": pos, "labels12": few_labels, "labels60": many_labels, "viterbi": viterbi, "features": features}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=None, help="of the training file; all by default")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the files en_ewt-ud-*.conllu.gz")
    arguments, chosen = parse_tasks(parser, TASKS)
    for name in chosen:
        if name in ("pos", "viterbi", "features") and not (arguments.data / "en_ewt-ud-train.conllu.gz").exists():
            print(f"{name}: {arguments.data} has no en_ewt-ud-train.conllu.gz; give --data.")
            continue
        TASKS[name](arguments)


if __name__ == "__main__":
    main()
