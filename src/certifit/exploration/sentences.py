"""What a record says in words. Every sentence stands under the condition that makes it true."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from certifit.contest import numbers
from certifit.contest.report.cleaning import mapped, parts
from certifit.exploration.structure import LEVEL, STEADY
from certifit.printable import listing

__all__ = ["answer", "apart", "copies", "group_name", "odd", "steadiness", "strongest", "summary", "together"]

Part = dict[str, Any]
STRONG = 0.5
SAME = 0.98
"""Strength of association from which on two columns say the same."""


def group_name(k: int) -> str:
    """Groups are called A, B, C, …, from the largest on."""
    return f"Group {chr(ord('A') + k)}"


def answer(record: Part) -> str:
    """The headline: are there groups?"""
    structure = record.get("structure")
    if not structure:
        return "No column tells these rows apart"
    k = structure["k"]
    if structure["verdict"] == "groups":
        return f"The rows fall into {k} groups that survive resampling"
    if structure["verdict"] == "columns":
        return f"{k} groups survive resampling, but shuffled columns make groups as steady"
    return "No structure that survives resampling"


def summary(record: Part) -> list[str]:
    """The findings, one sentence each."""
    data = record["data"]
    said = [f"{_count(data['rows'], 'row')} and {_count(data['columns'], 'column')} were read."]
    if data["sample"] < data["rows"]:
        said.append(
            f"Associations, groups and outliers are those of {numbers.count(data['sample'])} rows drawn at random; columns, "
            "missing values and copies are those of all rows."
        )
    said += [sentence for sentence in (_missing(data), copies(data), strongest(record), _outliers(record)) if sentence]
    return said


def _count(value: int, noun: str) -> str:
    return f"{numbers.count(value)} {noun}{'' if value == 1 else 's'}"


def _joined(names: list[str]) -> str:
    return listing([f"“{name}”" for name in names])


def _missing(data: Part) -> str:
    """Where values are missing most."""
    holes = [c for c in parts(data, "columns_info") if c.get("missing")]
    if not holes:
        return "No value is missing."
    most = max(holes, key=lambda c: c["missing"])
    share = numbers.percent(most["missing"] / data["rows"])
    if len(holes) == 1:
        return f"Values are missing in “{most['name']}” alone, in {share} of the rows."
    return f"Values are missing in {len(holes)} columns, most of all in “{most['name']}”: in {share} of the rows."


def together(data: Part) -> list[str]:
    """Which columns are missing in the same rows."""
    holes = [c for c in parts(data, "columns_info") if c.get("missing")]
    if not holes:
        return ["No value is missing."]
    if len(holes) == 1:
        return [f"Only “{holes[0]['name']}” has missing values."]
    groups = parts(data, "together")
    if not groups:
        return [
            "No two columns are missing together: of the rows that miss one of any two, less than 80\u00a0% miss both."
        ]
    return [
        f"{_joined(group['columns'])} are missing together: of the {_count(group['any'], 'row')} that miss "
        f"{'either' if len(group['columns']) == 2 else 'one of them'}, {numbers.percent(group['all'] / group['any'])} miss "
        f"{'both' if len(group['columns']) == 2 else 'all'}."
        for group in groups
    ]


def copies(data: Part) -> str:
    """Rows that are there twice, exactly or nearly."""
    exact, near = data["copies"], mapped(data, "near").get("rows") or 0
    if not exact and not near:
        return "No row is a copy of another."
    said = []
    if exact:
        said.append(f"{_count(exact, 'row')} {'is a copy' if exact == 1 else 'are copies'} of an earlier row.")
    if near:
        said.append(
            f"At least {numbers.count(near)} distinct rows agree with another one but for small differences in numbers."
        )
    return " ".join(said)


def strongest(record: Part) -> str:
    """The strongest association of two columns."""
    pairs = [pair for pair in parts(record, "associations") if pair["clear"]]
    if not pairs:
        known = parts(record, "associations")
        return "No two columns are clearly associated." if known else ""
    best = max(pairs, key=lambda pair: pair["strength"])
    strength = numbers.with_format(best["strength"], ".2f")
    names = f"“{best['left']}” and “{best['right']}”"
    if best["strength"] >= SAME:
        return (
            f"{names} say nearly the same: the strength of their association is {strength}, and 1 is the most there is."
        )
    return f"The strongest association is that of {names}: {strength} of 1."


def _outliers(record: Part) -> str:
    found = parts(record, "outliers")
    if not record.get("structure"):
        return ""
    if not found:
        return "No row stands out from all others."
    return f"{_count(len(found), 'row')} {'stands' if len(found) == 1 else 'stand'} out from all others."


def steadiness(structure: Part) -> list[str]:
    """Why the groups are believed, or not."""
    if structure["k"] == 1:
        known = mapped(structure, "stability")
        if not known:
            return ["There are too few distinct rows to look for groups."]
        return [
            f"Rows were grouped into 2 to {max(int(k) for k in known)} groups, again and again from samples. Whatever the "
            f"number, the {100 * LEVEL:.0f}\u00a0% interval of how far two samples agree begins below {STEADY}, or they agree no "
            "better than they may for a table like this one without groups, or with the fewer groups that have a better "
            "silhouette, on groups no farther apart than it may have: no structure that survives resampling."
        ]
    own, shuffled = mapped(mapped(structure, "stability"), str(structure["k"])), mapped(structure, "shuffled")
    two = "{:.2f}".format
    said = [
        f"When two samples of the rows are grouped into {structure['k']}, each by itself, they agree to {two(own['value'])} "
        f"(adjusted Rand index; {100 * LEVEL:.0f}\u00a0% interval {two(own['low'])} to {two(own['high'])}; 1 is full agreement). "
        f"Tables like this one without groups reach {two(own['reference'])} on average, and a single one up to "
        f"{two(own['reference_high'])}.",
        f"{100 * own['separation']:.0f}\u00a0% of the variance lies between the groups; without groups it may be up "
        f"to {100 * own['separation_high']:.0f}\u00a0%.",
    ]
    if fewer := mapped(own, "fewer"):
        said.append(
            f"{fewer['k']} groups have a better silhouette, but did not survive. A single table with these alone agrees up to "
            f"{two(fewer['reference_high'])}, and up to {100 * fewer['separation_high']:.0f}\u00a0% of its variance lies between "
            "its groups."
        )
    if shuffled:
        among = (
            f"With every column shuffled by itself, tables agree to {two(shuffled['value'])} on average, a single one up to "
            f"{two(shuffled['high'])}, and up to {100 * shuffled['separation_high']:.0f}\u00a0% of the variance lies between its "
            "groups: "
        )
        steadier = "these groups are steadier, or plainly farther apart, and so lie in how columns go together."
        alike = "groups as steady, and nearly as far apart, come from the values of single columns."
        said.append(among + (steadier if structure["verdict"] == "groups" else alike))
    return said


def apart(group: Part, kinds: Part) -> list[str]:
    """What tells a group from the other rows."""
    said = []
    for trait in parts(group, "traits"):
        name = f"“{trait['column']}”"
        if trait["level"] is None:
            inside, outside = (
                " to ".join(_value(end, kinds.get(trait["column"])) for end in trait[side])
                for side in ("inside", "outside")
            )
            way = "higher" if trait["higher"] else "lower"
            said.append(f"{name} is {way}: its middle half is {inside}, elsewhere {outside}.")
        else:
            inside, outside = (numbers.percent(trait[side][0], 0) for side in ("inside", "outside"))
            said.append(f"{name} is “{trait['level']}” in {inside} of its rows, elsewhere in {outside}.")
    return said or ["No single column tells it apart plainly: it differs by how columns go together."]


def odd(outlier: Part, kinds: Part) -> str:
    """Why a row stands out."""
    said = []
    for one in parts(outlier, "odd"):
        kind = kinds.get(one["column"])
        if "share" in one:
            said.append(f"“{one['column']}” is “{one['value']}”, as in {numbers.percent(one['share'], 2)} of the rows")
        else:
            ends = f"{_value(one['low'], kind)} to {_value(one['high'], kind)}"
            said.append(f"“{one['column']}” is {_value(one['value'], kind)} (98\u00a0% of the rows: {ends})")
    return "; ".join(said) + "." if said else "Each value is usual; their combination is not."


def _value(value: Any, kind: Any) -> str:
    """A number, or a date."""
    if kind == "date":
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=float(value))).date().isoformat()
    return numbers.number(value)
