"""A small contest of taggers: each chooses its settings inside the training file and is scored once on the test file.

1. A tenth of the training sentences is set aside; settings are tried on (at most some thousand of) the others.
2. Each tagger is fitted with its best setting on all training sentences.
3. Each labels the test file once. Intervals resample sentences; pairs of taggers are compared on the same sentences.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from certifit.contest.record import RUN_FORMAT
from certifit.contest.tagging.model import TaggingModel, WordMajority, read_corpus
from certifit.data.conll import Corpus
from certifit.evaluation.risk.comparison import Comparison
from certifit.evaluation.sequences.report import SequenceReport, compare_sequences, sequence_report
from certifit.evaluation.sequences.spans import has_spans
from certifit.models.structured.crf import LinearChainCRF
from certifit.models.structured.hmm import HMM
from certifit.models.structured.perceptron import StructuredPerceptron
from certifit.models.structured.svm import StructuredSVM

__all__ = ["TAGGERS", "Tagger", "TaggingContest", "TaggingResult"]

SEARCH = 3000  # sentences that settings are tried on
METRICS = {
    "accuracy": ("token accuracy", "Share of words with the right label."),
    "span_f1": ("span F1", "Harmonic mean of precision and recall of whole spans."),
}


@dataclass(frozen=True)
class Tagger:
    """An entrant: `build(setting, sentences, jobs, seed)` makes a tagger for so many training sentences."""

    name: str
    label: str
    description: str
    settings: tuple[dict[str, Any], ...]
    build: Callable[[dict[str, Any], int, int | None, int], Any]
    baseline: bool = False


def _crf(setting: dict[str, Any], n: int, jobs: int | None, seed: int) -> Any:
    return LinearChainCRF(alpha=setting["strength"] / n, tol=1e-4, max_iter=300, n_jobs=jobs)


def _svm(setting: dict[str, Any], n: int, jobs: int | None, seed: int) -> Any:
    return StructuredSVM(alpha=setting["strength"] / n, max_iter=40, tol=0.02, n_jobs=jobs, random_state=seed)


def _perceptron(setting: dict[str, Any], n: int, jobs: int | None, seed: int) -> Any:
    return StructuredPerceptron(max_iter=setting["epochs"], n_jobs=jobs, random_state=seed)


def _hmm(setting: dict[str, Any], n: int, jobs: int | None, seed: int) -> Any:
    return HMM(smoothing=setting["smoothing"], n_jobs=jobs)


TAGGERS = (
    Tagger(
        "crf",
        "Conditional random field",
        "The probability of the whole labelling, certified.",
        tuple({"strength": c} for c in (0.03, 0.1, 0.3, 1.0)),
        _crf,
    ),
    Tagger(
        "svm",
        "Structured SVM",
        "The right labelling wins by the number of its wrong labels.",
        tuple({"strength": c} for c in (1.0, 5.0)),
        _svm,
    ),
    Tagger(
        "perceptron",
        "Averaged perceptron",
        "Learns from mistakes, one sentence after the other.",
        tuple({"epochs": e} for e in (5, 15)),
        _perceptron,
    ),
    Tagger(
        "hmm",
        "Hidden Markov model",
        "Counts of words and of neighboring labels.",
        tuple({"smoothing": s} for s in (0.01, 0.1, 1.0)),
        _hmm,
    ),
    Tagger(
        "majority",
        "Most frequent label",
        "Each word by itself: the floor.",
        ({},),
        lambda *_: WordMajority(),
        baseline=True,
    ),
)
"""The entrants, the baseline last."""


@dataclass
class _Standing:
    """What became of an entrant."""

    tagger: Tagger
    setting: dict[str, Any] = field(default_factory=dict)
    model: Any = None
    said: list[list[Any]] = field(default_factory=list)
    report: SequenceReport | None = None
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class TaggingResult:
    """The record of a contest, as plain data, and the model that won."""

    record: dict[str, Any]
    model: TaggingModel


class TaggingContest:
    r"""A contest of taggers.

    Parameters
    ----------
    train, test : path
        CoNLL-U files, or columns with the label in the last one.
    target : str or None
        The column to predict; None: ``upos`` of CoNLL-U, the last column otherwise.
    entrants : sequence of str or None
        Names of the taggers; None: all.
    metric : {"accuracy", "span_f1"} or None
        None: spans where the labels of both files mark spans.
    seed : int
    jobs : int or None
        Threads.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from certifit.contest.tagging.contest import TaggingContest
    >>> path = Path(tempfile.mkdtemp()) / "small.conll"
    >>> _ = path.write_text("the D\ndog N\n\na D\ncat N\nruns V\n\n" * 20)
    >>> result = TaggingContest(path, path, entrants=["hmm"]).run()
    >>> result.record["entrants"][0]["score"]["value"]
    1.0
    """

    def __init__(
        self,
        train: Any,
        test: Any,
        *,
        target: str | None = None,
        entrants: Sequence[str] | None = None,
        metric: str | None = None,
        seed: int = 0,
        jobs: int | None = None,
    ) -> None:
        known = {tagger.name: tagger for tagger in TAGGERS}
        for name in entrants or ():
            if name not in known:
                raise ValueError(f"entrants: there is no tagger {name!r}; choose among {', '.join(known)}.")
        if metric is not None and metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}; got {metric!r}.")
        self.train, self.test = read_corpus(train), read_corpus(test)
        default = "upos" if "upos" in self.train.columns else list(self.train.columns)[-1]
        self.target = default if target is None else target
        self.y, self.truth = _labels(self.train, self.target), _labels(self.test, self.target)
        marked = all(has_spans([label for labels in part for label in labels]) for part in (self.y, self.truth))
        if metric == "span_f1" and not marked:
            raise ValueError(
                "metric='span_f1' needs labels that mark spans, such as B-PER, I-PER and O, in both files: use accuracy."
            )
        self.metric = metric or ("span_f1" if marked else "accuracy")
        self.seed, self.jobs = seed, jobs
        self.taggers = [tagger for tagger in TAGGERS if entrants is None or tagger.name in entrants or tagger.baseline]

    def run(self, say: Callable[[str], None] = lambda text: None) -> TaggingResult:
        """Hold the contest; `say` is told what happens."""
        begun, clock = datetime.now(UTC), time.perf_counter()
        standings = []
        for tagger in self.taggers:
            standing = _Standing(tagger)
            standings.append(standing)
            try:
                self._enter(standing, say)
            except (
                ValueError,
                ArithmeticError,
                MemoryError,
            ) as error:  # one tagger's failure ends nobody else's contest
                standing.error = str(error)
                say(f"{tagger.label}: failed: {error}")
        finished = [s for s in standings if s.report is not None]
        if not finished:
            raise ValueError(f"No tagger finished: {standings[0].error}")
        said = {s.tagger.name: s.said for s in finished}
        verdict = compare_sequences(self.truth, said, metric=self.metric)
        seconds = time.perf_counter() - clock
        record = _record(self, standings, verdict, begun.isoformat(timespec="seconds"), seconds)
        best = next(s for s in finished if s.tagger.name == verdict.best)
        origin = {"train": self.train.source, "sentences": len(self.train), "seed": self.seed}
        return TaggingResult(record, TaggingModel(best.model, best.tagger.label, self.target, origin))

    def _enter(self, standing: _Standing, say: Callable[[str], None]) -> None:
        tagger = standing.tagger
        standing.setting = self._choose(tagger)
        clock = time.perf_counter()
        standing.model = self._fitted(tagger, standing.setting, self.train.tokens, self.y)
        standing.fit_seconds, clock = time.perf_counter() - clock, time.perf_counter()
        standing.said = standing.model.predict(self.test.tokens)
        standing.predict_seconds = time.perf_counter() - clock
        standing.report = sequence_report(self.truth, standing.said, random_state=self.seed)
        label = METRICS[self.metric][0]
        say(
            f"{tagger.label}: {label} {_value(standing.report, self.metric).value:.4f}, fit in {standing.fit_seconds:.1f} s"
        )

    def _fitted(self, tagger: Tagger, setting: dict[str, Any], X: list[Any], y: list[Any]) -> Any:
        import warnings

        from certifit.base import ConvergenceWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the record has the certificate
            return tagger.build(setting, len(X), self.jobs, self.seed).fit(X, y)

    def _choose(self, tagger: Tagger) -> dict[str, Any]:
        """The setting that does best on sentences set aside."""
        if len(tagger.settings) == 1 or len(self.y) < 20:
            return tagger.settings[len(tagger.settings) // 2]
        order = np.random.default_rng(self.seed).permutation(len(self.y))
        aside = max(2, len(self.y) // 10)
        held, kept = order[:aside], order[aside : aside + SEARCH]
        X, y = self.train.tokens, self.y
        scores = []
        for setting in tagger.settings:
            model = self._fitted(tagger, setting, [X[i] for i in kept], [y[i] for i in kept])
            found = sequence_report([y[i] for i in held], model.predict([X[i] for i in held]), n_resamples=10)
            # Few sentences may hold no span at all: then their labels must do.
            scores.append((_value(found, self.metric) or found.accuracy).value)
        return tagger.settings[int(np.argmax(scores))]


def _labels(corpus: Corpus, target: str) -> list[list[str]]:
    labels = corpus[target]
    for some, line in zip(labels, corpus.lines, strict=True):
        if any(label in ("_", "") for label in some):
            raise ValueError(f"{corpus.source}: the sentence of line {line} has words without a {target}.")
    return labels


def _value(report: SequenceReport, metric: str) -> Any:
    return report.accuracy if metric == "accuracy" else report.span_f1


def _record(
    contest: TaggingContest, standings: list[_Standing], verdict: Comparison, begun: str, seconds: float
) -> dict[str, Any]:
    """Plain data that becomes run.json and the page."""
    ranked = {name: k + 1 for k, name in enumerate(verdict.names)}
    floor = next((s.report for s in standings if s.tagger.baseline and s.report is not None), None)
    base = None if floor is None else _value(floor, contest.metric).value
    entrants = [_entrant(contest, s, verdict, ranked.get(s.tagger.name), base) for s in standings]
    entrants.sort(key=lambda entrant: entrant["rank"] or len(standings) + 1)
    best = next(s for s in standings if s.tagger.name == verdict.best)
    words = {word for words in contest.train.tokens for word in words}
    new = sum(word not in words for some in contest.test.tokens for word in some)
    label = METRICS[contest.metric][0]
    assert best.report is not None
    return {
        "format": RUN_FORMAT,
        "certifit": version("certifit"),
        "created": begun,
        "seconds": seconds,
        "seed": contest.seed,
        "jobs": contest.jobs,
        "task": {
            "kind": "tagging",
            "target": contest.target,
            "metric": {"name": contest.metric, "label": label, "format": ".4f", "lower_is_better": False},
        },
        "data": {
            "source": contest.train.source,
            "test": contest.test.source,
            "sentences": len(contest.train),
            "words": contest.train.n_tokens,
            "test_sentences": len(contest.test),
            "test_words": contest.test.n_tokens,
            "labels": len({label for labels in contest.y for label in labels}),
            "new_words": new / contest.test.n_tokens,
        },
        "entrants": entrants,
        "leaderboard": {
            "text": verdict.describe({s.tagger.name: s.tagger.label for s in standings}),
            **_pairs(verdict),
        },
        "winner": {
            "name": verdict.best,
            "report": best.report.as_dict(),
            "mistakes": _mistakes(contest, best.said),
            "transitions": _transitions(best.model),
            "features": _features(best.model),
        },
    }


def _pairs(verdict: Comparison) -> dict[str, Any]:
    found = verdict.as_dict()
    return {"pairs": found["pairs"]}


def _entrant(
    contest: TaggingContest, standing: _Standing, verdict: Comparison, rank: int | None, base: float | None
) -> dict[str, Any]:
    tagger = standing.tagger
    plain: dict[str, Any] = {
        "name": tagger.name,
        "label": tagger.label,
        "description": tagger.description,
        "baseline": tagger.baseline,
        "rank": rank,
        "status": "failed" if standing.error else "finished",
        "error": standing.error,
        "setting": standing.setting,
    }
    if standing.report is None or rank is None:
        return plain
    found = _value(standing.report, contest.metric)
    against = verdict.against_best(tagger.name)
    certificate = getattr(standing.model, "certificate_", None)
    return plain | {
        "score": {"value": found.value, "low": found.low, "high": found.high},
        "accuracy": standing.report.accuracy.value,
        "sequence_accuracy": standing.report.sequence_accuracy.value,
        "verdict": "best"
        if against is None
        else "worse than the best"
        if against.distinguishable
        else "tied with the best",
        "against_best": None
        if against is None
        else {
            "difference": against.difference,
            "low": against.low,
            "high": against.high,
            "p_adjusted": against.p_adjusted,
        },
        "skill": None if base is None or base >= 1.0 else (found.value - base) / (1.0 - base),
        "certificate": {}
        if certificate is None
        else {
            "verdict": "no bound possible"
            if certificate.kind == "none"
            else "certified"
            if certificate.certified
            else "not certified",
            "relative_gap": certificate.relative_gap if np.isfinite(certificate.relative_gap) else None,
            "sentence": str(certificate),
        },
        "fit_seconds": standing.fit_seconds,
        "predict_seconds": standing.predict_seconds,
        "predict_rows": contest.test.n_tokens,
    }


def _mistakes(contest: TaggingContest, said: list[list[Any]], most: int = 12) -> list[dict[str, Any]]:
    """The most frequent confusions, each with the words it happens to."""
    counts: Counter[tuple[Any, Any]] = Counter()
    words: dict[tuple[Any, Any], Counter[str]] = {}
    for tokens, labels, predicted in zip(contest.test.tokens, contest.truth, said, strict=True):
        for word, label, guess in zip(tokens, labels, predicted, strict=True):
            if label != guess:
                counts[label, guess] += 1
                words.setdefault((label, guess), Counter())[word] += 1
    return [
        {"actual": a, "predicted": b, "count": n, "words": [word for word, _ in words[a, b].most_common(5)]}
        for (a, b), n in counts.most_common(most)
    ]


def _transitions(model: Any, most: int = 12) -> list[dict[str, Any]]:
    """The transitions with the highest scores, where the model has scores of its own."""
    if not hasattr(model, "transitions"):
        return []
    found = sorted(model.transitions().items(), key=lambda item: -item[1])[:most]
    return [{"from": a, "to": b, "score": score} for (a, b), score in found if np.isfinite(score)]


def _features(model: Any, most: int = 6) -> list[dict[str, Any]]:
    """For each label the features that speak for it most."""
    if not hasattr(model, "top_features"):
        return []
    return [
        {
            "label": label,
            "features": [[name, weight] for name, weight in model.top_features(label, 4 * most) if weight > 0][:most],
        }
        for label in model.classes_.tolist()
    ]
