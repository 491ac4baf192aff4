"""The lowest versions that pyproject.toml allows, as constraints for pip: ``python -m tests.lowest > floors.txt``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

__all__ = ["floors"]


def floors(project: dict[str, Any]) -> list[str]:
    """``name==version`` for each requirement ``name>=version`` of the package and of its tests."""
    found = []
    for text in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
        name, sign, version = text.partition(">=")
        if not sign:
            raise SystemExit(f"{text!r} has no floor: write name>=version.")
        found.append(f"{name}=={version}")
    return found


if __name__ == "__main__":
    path = Path(__file__).resolve().parents[1] / "pyproject.toml"
    print("\n".join(floors(tomllib.loads(path.read_text(encoding="utf-8"))["project"])))
