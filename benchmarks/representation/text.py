"""Bags of words beside scikit-learn's vectorizers.

    python benchmarks/representation/text.py [FILE]

FILE is by default the one of text messages beside the repository; it has a label, a tab and a text on each line. Times are of the
processor, on one thread, the least of five, both in turn.
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from certifit import BagOfWords

MESSAGES = Path(__file__).resolve().parents[3] / "shared" / "data" / "sms_spam" / "sms.tsv.gz"
TASKS: dict[str, tuple[dict[str, Any], Any]] = {
    "words": ({}, CountVectorizer()),
    "words and pairs": ({"ngram_range": (1, 2)}, CountVectorizer(ngram_range=(1, 2))),
    "characters within words": (
        {"analyzer": "char_wb", "ngram_range": (2, 4)},
        CountVectorizer(analyzer="char_wb", ngram_range=(2, 4)),
    ),
    "tf-idf": ({"values": "tfidf"}, TfidfVectorizer()),
    "hashes": ({"hashing": 2**20}, HashingVectorizer(norm=None)),
}


def seconds(*works: Callable[[], Any]) -> list[float]:
    """The least time of each, taken in turn."""
    best = [float("inf")] * len(works)
    for _ in range(5):
        for k, work in enumerate(works):
            began = time.process_time()
            work()
            best[k] = min(best[k], time.process_time() - began)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description="Bags of words beside scikit-learn's vectorizers.")
    parser.add_argument("file", type=Path, nargs="?", default=MESSAGES)
    file = parser.parse_args().file
    if not file.exists():
        print(f"{file} is absent: give a file of texts.")
        return
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    texts = [line.split("\t", 1)[1] for line in lines]
    print(f"{len(texts):,} texts, {sum(map(len, texts)):,} characters")
    print("| task | Certifit, ms | scikit-learn, ms | ratio | transform: ratio |")
    print("|---|---|---|---|---|")
    for name, (ours, theirs) in TASKS.items():
        bag = BagOfWords(**ours)
        found, wanted = bag.fit_transform(texts), theirs.fit_transform(texts)
        assert abs(found - wanted).max() < 1e-12, name
        a, b, c, d = seconds(
            lambda bag=bag: bag.fit_transform(texts),  # type: ignore[misc]
            lambda theirs=theirs: theirs.fit_transform(texts),  # type: ignore[misc]
            lambda bag=bag: bag.transform(texts),  # type: ignore[misc]
            lambda theirs=theirs: theirs.transform(texts),  # type: ignore[misc]
        )
        print(f"| {name} | {1e3 * a:.1f} | {1e3 * b:.1f} | {b / a:.1f} | {d / c:.1f} |")


if __name__ == "__main__":
    main()
