"""``sklearn.feature_extraction``, as far as Certifit has it: texts."""

from __future__ import annotations
