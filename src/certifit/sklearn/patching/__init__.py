"""Code that cannot be edited: modules with a counterpart, their names bound to the drop-ins, a command that runs a script so."""

from __future__ import annotations

from certifit.sklearn.patching.binding import patch, patched, replacements, unpatch

__all__ = ["patch", "patched", "replacements", "unpatch"]
