"""Labels of sequences at the gate: codes, and which label may follow which."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from certifit._types import Array

__all__ = ["allowed_transitions", "check_allowed", "clean_labels", "encode_sequences", "flatten_labels", "tree_of"]


def flatten_labels(y: Any, offset: Array, flat: bool) -> Array:
    """All labels in one array; `flat` when they come that way, with lengths."""
    if y is None:
        raise ValueError("y must be the labels of the sequences; got None.")
    total, n = int(offset[-1]), offset.shape[0] - 1
    if flat:
        labels = y if isinstance(y, np.ndarray) else np.asarray(y, dtype=object)
        if labels.ndim != 1 or labels.shape[0] != total:
            raise ValueError(f"y must have one label for each of the {total} rows of X; its shape is {labels.shape}.")
        return clean_labels(labels.tolist() if labels.dtype.kind == "O" else labels)
    if isinstance(y, (str, bytes)) or not isinstance(y, Iterable):
        raise TypeError(f"y must be a list of sequences of labels; got {y!r:.60}.")
    sequences = list(y)
    if len(sequences) != n:
        raise ValueError(f"X has {n} sequences, y has {len(sequences)}: give the labels of every sequence.")
    found: list[Any] = []
    for i, (labels, length) in enumerate(zip(sequences, np.diff(offset).tolist(), strict=True)):
        if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__"):
            raise TypeError(f"y[{i}] must be a list of labels; got {labels!r:.60}.")
        if len(labels) != length:
            raise ValueError(
                f"X[{i}] has {length} positions, y[{i}] has {len(labels)} labels: features and labels must match."
            )
        found.extend(labels.tolist() if isinstance(labels, np.ndarray) else labels)
    return clean_labels(found)


def clean_labels(given: Array | list[Any], name: str = "y") -> Array:
    """Labels that can be told apart and sorted, as an array."""
    if isinstance(given, list):
        odd = {type(label): label for label in given if not isinstance(label, str)}
        for kind, label in odd.items():
            if not issubclass(kind, (bytes, numbers.Number, np.generic)):
                raise TypeError(
                    f"{name} must hold labels that are text or numbers; got {label!r:.60} of type {kind.__name__}."
                )
        if odd and (any(isinstance(label, str) for label in given) or (bytes in odd and len(odd) > 1)):
            raise TypeError(
                f"{name} mixes labels of text with others, such as {next(iter(odd.values()))!r}: use one type."
            )
    labels = np.array(given)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{name} contains NaN or infinity: the labels of a fit must be known.")
    return labels


def encode_sequences(labels: Array, classes: Array) -> Array:
    """Codes of labels of known classes."""
    at = np.minimum(np.searchsorted(classes, labels), classes.shape[0] - 1)
    wrong = np.flatnonzero(classes[at] != labels)
    if wrong.shape[0]:
        unseen = sorted({str(label) for label in labels[wrong].tolist()})
        raise ValueError(
            f"y has labels that were not seen at training: {', '.join(map(repr, unseen[:5]))}"
            f"{' and more' if len(unseen) > 5 else ''}. "
            f"The model knows {', '.join(map(repr, classes.tolist()[:12]))}."
        )
    return at.astype(np.int32)


def allowed_transitions(forbidden: Any, required: Any, classes: Array) -> Array:
    """Whether a label may follow another; row and column K stand for the boundary."""
    known = classes.tolist()
    K = len(known)
    allowed = np.ones((K + 1, K + 1), dtype=bool)

    def code(label: Any, name: str) -> int:
        if label is None:
            return K
        if label not in known:
            raise ValueError(
                f"{name} names the label {label!r}, which is not in y. The labels are {known!r}; None is the boundary."
            )
        return known.index(label)

    if isinstance(forbidden, str):
        if forbidden != "bio":
            raise ValueError(f"forbidden must be 'bio', a list of pairs of labels or None; got {forbidden!r}.")
        for a, label in enumerate(known):
            kind, _, name = str(label).partition("-")
            if kind == "I":  # goes on with what B-name or I-name began
                for b, before in enumerate([*known, None]):
                    if str(before) not in (f"B-{name}", f"I-{name}"):
                        allowed[b, a] = False
    elif forbidden is not None:
        if not isinstance(forbidden, Iterable) or isinstance(forbidden, Mapping):
            raise ValueError(f"forbidden must be 'bio', a list of pairs of labels or None; got {forbidden!r}.")
        for pair in forbidden:
            if isinstance(pair, str) or not isinstance(pair, Iterable) or len(tuple(pair)) != 2:
                raise ValueError(f"forbidden must hold pairs (label, next label); got {pair!r}.")
            before, after = pair
            allowed[code(before, "forbidden"), code(after, "forbidden")] = False
    if required is not None:
        if not isinstance(required, Mapping):
            raise ValueError(f"required must be a dictionary of label → the labels that may follow; got {required!r}.")
        for before, following in required.items():
            listed = (
                [following] if isinstance(following, str) or not isinstance(following, Iterable) else list(following)
            )
            row = np.zeros(K + 1, dtype=bool)
            row[[code(label, "required") for label in listed]] = True
            allowed[code(before, "required")] &= row
    allowed[K, K] = False
    _check_possible(allowed, known)
    return allowed


def _check_possible(allowed: Array, known: list[Any]) -> None:
    """Sequences of every length must have a labelling."""
    K = len(known)
    alive = allowed[K, :K].copy()
    seen = set()
    while alive.any():
        if not (alive & allowed[:K, K]).any():
            break
        key = alive.tobytes()
        if key in seen:
            return
        seen.add(key)
        alive = np.asarray((alive[:, None] & allowed[:K, :K]).any(axis=0))
    raise ValueError(
        f"forbidden and required leave sequences of {len(seen) + 1} positions without a labelling: allow more transitions."
    )


def check_allowed(y: Array, parent: Array, offset: Array, allowed: Array, classes: Array) -> None:
    """The labels of the training data must obey the rules."""
    K = classes.shape[0]
    if bool(allowed[:K, :K].all() and allowed[K, :K].all() and allowed[:K, K].all()):
        return
    begin = np.repeat(offset[:-1], np.diff(offset))
    before = np.where(parent < 0, K, y[np.maximum(begin + parent, 0)])
    has_child = np.zeros(y.shape[0], dtype=bool)
    has_child[(begin + parent)[parent >= 0]] = True
    wrong = ~allowed[before, y] | (~has_child & ~allowed[y, K])
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        i = int(np.searchsorted(offset, at, side="right")) - 1
        names = [*classes.tolist(), None]
        pair = (names[before[at]], names[y[at]]) if not allowed[before[at], y[at]] else (names[y[at]], None)
        raise ValueError(
            f"y[{i}] has the forbidden transition {pair!r} at position {at - int(offset[i])}: correct the labels or allow it."
        )


def tree_of(parents: Any, offset: Array) -> tuple[Array, Array]:
    """Parents of all positions, and an order in which parents come before their children."""
    if isinstance(parents, (str, bytes)) or not isinstance(parents, Iterable):
        raise TypeError(f"parents must be a list with the parents of every sequence; got {parents!r:.60}.")
    given = list(parents)
    if len(given) != offset.shape[0] - 1:
        raise ValueError(f"parents has {len(given)} sequences, X has {offset.shape[0] - 1}.")
    all_parents, all_orders = [], []
    for i, (one, length) in enumerate(zip(given, np.diff(offset).tolist(), strict=True)):
        parent = np.asarray(one)
        if parent.shape != (length,) or parent.dtype.kind not in "iu":
            raise ValueError(
                f"parents[{i}] must be {length} whole numbers, one for each position of X[{i}]; got {one!r:.60}."
            )
        if (parent < -1).any() or (parent >= length).any():
            raise ValueError(
                f"parents[{i}] must name positions 0 to {length - 1}, or −1 for a root; got {parent.tolist()!r:.80}."
            )
        depth = np.zeros(length, dtype=np.int64)
        at = parent.copy()
        for _ in range(length):  # every round climbs one step
            depth += at >= 0
            if not (at >= 0).any():
                break
            at = np.where(at >= 0, parent[at], -1)
        if (at >= 0).any():
            raise ValueError(
                f"parents[{i}] goes in a circle: position {int(np.flatnonzero(at >= 0)[0])} is among its own ancestors."
            )
        all_parents.append(parent)
        all_orders.append(np.argsort(depth, kind="stable"))
    return np.concatenate(all_parents).astype(np.int32), np.concatenate(all_orders).astype(np.int32)
