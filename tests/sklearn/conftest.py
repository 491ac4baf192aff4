"""The drop-ins are compared with scikit-learn 1.9, whose parameters their tables name."""

from __future__ import annotations

import sklearn

RELEASE = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
collect_ignore_glob = [] if RELEASE >= (1, 9) else ["test_*.py"]
