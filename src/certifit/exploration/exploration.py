"""From a table to a record of what is in it: plain data, of which the page is made."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.evaluation.metrics.clusters import adjusted_rand
from certifit.exploration.apart import oddities, outlying, traits
from certifit.exploration.association import Association, Coded, associations, coded
from certifit.exploration.holes import exact_copies, missing_together, near_copies
from certifit.exploration.structure import Structure, grouped, mapped_rows
from certifit.exploration.table import SAMPLE, Explored, read
from certifit.models.hierarchy.agglomerative import AgglomerativeClustering
from certifit.representation.design.products import expect_temporaries
from certifit.representation.table.dissimilarity import Dissimilarity
from certifit.representation.table.frames import Columns
from certifit.threads import one_blas_thread

__all__ = ["FORMAT", "explore"]

FORMAT = 1
PAIRED = 40  # columns whose pairs are compared
TEMPORARY = 1 << 25  # bytes of the dissimilarities that come and go at a time
DRAWN = 1500  # points of the map that the page draws


@one_blas_thread()  # many small products
def explore(
    source: Any,
    *,
    label: str | None = None,
    types: Mapping[str, str] | None = None,
    drop: Iterable[str] = (),
    rows: int = SAMPLE,
    seed: int = 0,
) -> dict[str, Any]:
    """What is in a table that has no target: columns, holes, copies, associations, groups, outliers.

    Parameters
    ----------
    source : path, "-", stream or data frame
        CSV or Parquet, as the contest takes it.
    label : str, optional
        A column that colours the map and is compared with the groups; it does not make them.
    types : mapping of column to kind, optional
        Kinds that win over what is inferred.
    drop : names of columns
        Left out.
    rows : int, default=20000
        Rows whose associations, groups and outliers are looked at; of a larger table a sample drawn without repetition.
    seed : int, default=0
        Of every draw.

    Returns
    -------
    dict
        Plain data: `certifit.exploration.page.render` makes the page of it.

    Examples
    --------
    >>> from certifit import datasets
    >>> from certifit.exploration.exploration import explore
    >>> found = explore(datasets.path("penguins"), label="species")
    >>> found["structure"]["verdict"], found["structure"]["k"] > 1
    ('groups', True)
    """
    begun = time.perf_counter()
    expect_temporaries(TEMPORARY)
    table = read(source, label, types, drop, rows, seed)
    features, kinds = table.features, table.kinds
    columns = coded(Columns(Dissimilarity(), features[table.sample], reset=True), kinds) if kinds else []
    paired = columns[:PAIRED]
    pairs = associations(paired)
    near = near_copies(features) if kinds else (0, [])
    record: dict[str, Any] = {
        "format": FORMAT,
        "kind": "exploration",
        "certifit": version("certifit"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "data": {
            "source": table.source,
            "rows": table.frame.height,
            "columns": table.frame.width,
            "sample": int(table.sample.shape[0]),
            "columns_info": table.describe(),
            "bad_rows": {
                "count": len(table.bad_rows),
                "first": [{"line": line, "why": why} for line, why in table.bad_rows[:20]],
            },
            "notes": list(table.notes),
            "label": label,
            "paired": len(paired),
            "pairable": len(columns),
            "copies": exact_copies(table.frame),
            "near": {"rows": near[0], "groups": [[row + 1 for row in group] for group in near[1]]},
            "together": [
                {"columns": list(g.columns), "any": g.any, "all": g.all} for g in missing_together(table.frame)
            ],
        },
        "associations": [_association(pair, len(pairs)) for pair in pairs],
        "tree": _column_tree(paired, pairs),
        "options": {"label": label, "types": dict(types or {}), "drop": list(drop), "rows": rows},
    }
    record |= _structure(table, columns, seed) if kinds else {"structure": None, "outliers": []}
    record["seconds"] = time.perf_counter() - begun
    return record


def _association(pair: Association, pairs: int) -> dict[str, Any]:
    return {
        "left": pair.left,
        "right": pair.right,
        "strength": pair.strength,
        "sign": pair.sign,
        "rows": pair.rows,
        "measure": pair.measure,
        "clear": pair.clear(pairs),
    }


def _column_tree(columns: list[Coded], pairs: list[Association]) -> dict[str, Any] | None:
    """The columns by how much they hang together, as merges: 1 − strength, the mean over all pairs of two groups."""
    if len(columns) < 3:
        return None
    names = [column.name for column in columns]
    place = {name: j for j, name in enumerate(names)}
    D = np.ones((len(names), len(names))) - np.eye(len(names))
    for pair in pairs:
        i, j = place[pair.left], place[pair.right]
        D[i, j] = D[j, i] = 1.0 - pair.strength
    merges = AgglomerativeClustering(linkage="average", metric="precomputed").fit(D).linkage_matrix_
    return {"names": names, "merges": [[int(a), int(b), float(h)] for a, b, h, _ in merges]}


def _structure(table: Explored, columns: list[Coded], seed: int) -> dict[str, Any]:
    """The map, the groups, and the rows that stand out."""
    found = mapped_rows(table.features, table.kinds, table.sample, seed)
    groups = grouped(found, table.features, table.kinds, seed)
    place = np.searchsorted(table.sample, found.rows)
    here = [Coded(c.name, c.ordered, c.values[place], c.levels) for c in columns]
    colour = _labels(table, found.rows)
    drawn = np.sort(
        np.random.default_rng(seed).choice(found.rows.shape[0], min(DRAWN, found.rows.shape[0]), replace=False)
    )
    flat = (
        found.points if found.points.shape[1] > 1 else np.column_stack([found.points, np.zeros(found.points.shape[0])])
    )
    far = outlying(found.near)
    known = [value is not None for value in colour] if colour else []
    return {
        "map": {
            "x": flat[drawn, 0].tolist(),
            "y": flat[drawn, 1].tolist(),
            "row": (found.rows[drawn] + 1).tolist(),
            "group": groups.labels[drawn].tolist(),
            "label": [colour[i] for i in drawn] if colour else None,
            "share": found.share[:2].tolist(),
            "non_euclidean": found.non_euclidean,
            "rows": int(found.rows.shape[0]),
        },
        "structure": {
            **_verdict(groups),
            "groups": [_group(here, groups.labels == c) for c in range(groups.k)] if groups.k > 1 else [],
            "label_agreement": (
                adjusted_rand(groups.labels[known], [value for value in colour if value is not None])
                if colour and groups.k > 1 and sum(known) > 1
                else None
            ),
        },
        "outliers": [{"row": int(found.rows[i]) + 1, "odd": oddities(here, int(i))} for i in far],
    }


def _verdict(groups: Structure) -> dict[str, Any]:
    """Verdict, number of groups, and the evidence for each number."""
    count = groups.count
    return {
        "verdict": groups.verdict,
        "k": groups.k,
        "by": dict(count.by) if count is not None else None,
        "silhouettes": {int(k): float(s) for k, s in zip(count.ks, count.silhouettes, strict=True) if np.isfinite(s)}
        if count is not None
        else {},
        "stability": {
            k: {
                "value": s.agreement,
                "low": s.low,
                "high": s.high,
                "reference": s.reference,
                "reference_low": s.reference_low,
                "reference_high": s.reference_high,
                "separation": s.separation,
                "separation_high": s.separation_high,
                "fewer": _beside_fewer(groups, k),
                "survives": k in groups.steady,
            }
            for k, s in groups.stabilities.items()
        },
        "shuffled": {
            "value": groups.shuffled.reference,
            "low": groups.shuffled.reference_low,
            "high": groups.shuffled.reference_high,
            "separation_high": groups.shuffled.separation_high,
        }
        if groups.shuffled
        else None,
    }


def _beside_fewer(groups: Structure, k: int) -> dict[str, Any] | None:
    """What is reached by tables with fewer groups, where these have the better silhouette."""
    if k not in groups.fewer:
        return None
    fewer, found = groups.fewer[k]
    return {"k": fewer, "reference_high": found.reference_high, "separation_high": found.separation_high}


def _group(columns: list[Coded], member: Array) -> dict[str, Any]:
    found = [
        {
            "column": t.column,
            "strength": t.strength,
            "level": t.level,
            "inside": t.inside,
            "outside": t.outside,
            "higher": t.higher,
        }
        for t in traits(columns, member)
    ]
    return {"rows": int(member.sum()), "share": float(member.mean()), "traits": found}


def _labels(table: Explored, rows: Array) -> list[str | None] | None:
    """The label of each row in words; quantities in four parts of equal size."""
    if table.label is None:
        return None
    values = table.frame.get_column(table.label)[rows]
    if values.dtype.is_numeric() or values.dtype.is_temporal():
        edges = [values.quantile(q) for q in (0.25, 0.5, 0.75)]
        names = ("lowest quarter", "second quarter", "third quarter", "highest quarter")
        return [None if v is None else names[sum(e is not None and v > e for e in edges)] for v in values.to_list()]
    return [None if v is None else str(v) for v in values.to_list()]
