"""What the contest of taggers ships: a tagger that reads and writes annotated text; and its trivial baseline."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from certifit.data.conll import CONLLU, Corpus, read_conll, read_conllu
from certifit.names import stored

__all__ = ["TaggingModel", "WordMajority", "read_corpus", "tagged_text"]


def read_corpus(path: str | Path) -> Corpus:
    """A file of annotated text: CoNLL-U by its suffix, plain columns otherwise."""
    return read_conllu(path) if is_conllu(path) else read_conll(path)


def is_conllu(path: str | Path) -> bool:
    """Whether a name is that of a CoNLL-U file."""
    return str(path).removesuffix(".gz").endswith(".conllu")


@stored("WordMajority")
class WordMajority:
    """The most frequent label of each word, and the most frequent of all for words that were not seen.

    Examples
    --------
    >>> from certifit.contest.tagging.model import WordMajority
    >>> WordMajority().fit([["a", "b", "b"]], [["x", "y", "y"]]).predict([["b", "new"]])
    [['y', 'y']]
    """

    def __init__(self) -> None:
        self.labels_: dict[str, Any] = {}
        self.common_: Any = None

    def fit(self, X: list[list[str]], y: list[list[Any]]) -> WordMajority:
        """Count."""
        counts: defaultdict[str, Counter[Any]] = defaultdict(Counter)
        total: Counter[Any] = Counter()
        for words, labels in zip(X, y, strict=True):
            total.update(labels)
            for word, label in zip(words, labels, strict=True):
                counts[word][label] += 1
        first = {label: k for k, label in enumerate(sorted(total, key=str))}

        def most(some: Counter[Any]) -> Any:
            return min(some, key=lambda label: (-some[label], -total[label], first[label]))

        self.labels_ = {word: most(some) for word, some in counts.items()}
        self.common_ = most(total)
        return self

    def predict(self, X: list[list[str]]) -> list[list[Any]]:
        """Look up."""
        return [[self.labels_.get(word, self.common_) for word in words] for words in X]


@stored("TaggingModel")
class TaggingModel:
    """A fitted tagger with the names of the columns it reads and fills.

    Parameters
    ----------
    tagger : object
        With a method ``predict`` of lists of words.
    label : str
        What the tagger is called.
    target : str
        The column it fills.
    origin : dict
        Where it was trained.
    """

    def __init__(self, tagger: Any, label: str, target: str, origin: dict[str, Any]) -> None:
        self.tagger, self.label, self.target, self.origin = tagger, label, target, origin

    @property
    def certificate_(self) -> Any:
        """That of the tagger."""
        return getattr(self.tagger, "certificate_", None)

    def predict(self, X: list[list[str]]) -> list[list[Any]]:
        """Labels of sentences of words."""
        labels: list[list[Any]] = self.tagger.predict(X)
        return labels


def tagged_text(model: TaggingModel, path: str | Path) -> tuple[str, int]:
    """A file with the labels of the model in its target column, and its number of words.

    CoNLL-U comes back as CoNLL-U without what the reader leaves out; columns come back with the label in the last one.
    """
    corpus = read_corpus(path)
    labels = model.predict(corpus.tokens)
    columns = dict(corpus.columns)
    names = list(CONLLU) if is_conllu(path) else [name for name in columns if name != model.target] + [model.target]
    if model.target not in names:
        raise ValueError(
            f"The model fills the column {model.target!r}, which CoNLL-U does not have: give plain columns."
        )
    columns[model.target] = [[str(label) for label in some] for some in labels]
    separator = "\t" if is_conllu(path) else " "
    sentences = []
    for i in range(len(corpus)):
        rows = zip(*(columns[name][i] for name in names), strict=True)
        sentences.append("".join(separator.join(row) + "\n" for row in rows))
    return "\n".join(sentences) + "\n", corpus.n_tokens
