"""Model files: stored samples with damaged bytes, or with altered parts and right digests, as an attacker would write them."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.mutation import chosen, mutations
from tests.persistence.test_files import forged, members_of

__all__ = ["code", "put", "sealed", "stored", "unsealed"]

FOLDERS = [Path(__file__).resolve().parents[1] / "data" / name for name in ("format1", "format2")]
SAMPLES = sorted(f"{path.parent.name}/{path.stem}" for folder in FOLDERS for path in folder.glob("*.cfit"))
NONSENSE = [
    None,
    -1,
    0,
    1,
    10**9,
    2**63,
    10**40,
    1.5,
    1e308,
    "",
    "x" * 1000,
    "\x1b[2J",
    [],
    {},
    [[]],
    {"ref": 0},
    {"ref": 1},
]
NONSENSE += [
    {"ref": -1},
    {"kind": "list", "items": [{"ref": 0}]},
    True,
    "Ridge",
    "os.system",
    "<f8",
    "|O",
    "float64",
    [0] * 50,
]


def stored(name: str) -> bytearray:
    """The bytes of a sample."""
    return bytearray((FOLDERS[0].parent / f"{name}.cfit").read_bytes())


def unsealed(name: str) -> dict[str, bytes]:
    """The members of a sample."""
    return members_of(FOLDERS[0].parent / f"{name}.cfit")


def sealed(members: dict[str, bytes]) -> bytes:
    """The members as a file whose digests are right."""
    return forged(Path(tempfile.gettempdir()) / "certifit-sealed.cfit", members).read_bytes()


def put(members: dict[str, bytes], member: str, place: list[Any], value: Any) -> None:
    """Replace a value within the JSON of a member."""
    content = json.loads(members[member])
    if not place:
        content = value
    else:
        inner = content
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = value
    members[member] = json.dumps(content).encode()


def code(rng: np.random.Generator) -> str:
    """A case: a sample, a few alterations, and the question whether the file opens or is refused."""
    name = chosen(rng, SAMPLES)
    if rng.random() < 0.4:
        lines = [
            "from tests.fuzz.files import stored",
            "from tests.fuzz.judge import check_model_file",
            f"data = stored({name!r})",
        ]
        return "\n".join([*lines, *mutations(rng, len(stored(name))), "check_model_file(data)"]) + "\n"
    lines = ["from tests.fuzz.files import put, sealed, unsealed", "from tests.fuzz.judge import check_model_file"]
    lines.append(f"members = unsealed({name!r})")
    members = unsealed(name)
    texts = [member for member in members if member.endswith(".json")]
    arrays = [member for member in members if member.endswith(".npy")]
    if arrays and rng.random() < 0.3:
        member = chosen(rng, arrays)
        lines += [f"data = bytearray(members[{member!r}])", *mutations(rng, min(len(members[member]), 200))]
        lines.append(f"members[{member!r}] = bytes(data)")
    else:
        member = chosen(rng, texts)
        places = list(_places(json.loads(members[member])))
        for _ in range(int(rng.integers(1, 4))):
            place = chosen(rng, places)[0]
            other = copy.deepcopy(chosen(rng, NONSENSE) if rng.random() < 0.7 else chosen(rng, places)[1])
            if len(repr(other)) > 2000:
                other = chosen(rng, NONSENSE)
            lines.append(f"put(members, {member!r}, {place!r}, {other!r})")
    return "\n".join([*lines, "check_model_file(sealed(members))"]) + "\n"


def _places(value: Any, place: tuple[Any, ...] = ()) -> Any:
    """Every value within nested lists and objects, with the way to it."""
    yield list(place), value
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield from _places(inner, (*place, step))
