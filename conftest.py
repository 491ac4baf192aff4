"""Which folders are collected: the drop-ins are for scikit-learn 1.9, and refuse to be imported beside an earlier one."""

from __future__ import annotations

import sklearn

RELEASE = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
collect_ignore = [] if RELEASE >= (1, 9) else ["src/certifit/sklearn", "tests/sklearn", "tests/compatibility"]
