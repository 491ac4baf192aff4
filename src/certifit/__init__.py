"""Machine learning that shows its proof.

Every classical method behind scikit-learn's API, and every fit says how far it is from the best possible one:

>>> import numpy as np
>>> from certifit import Lasso
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(100, 20))
>>> y = X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=100)
>>> model = Lasso(alpha=0.1).fit(X, y)
>>> model.certificate_.certified
True
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def _exports(stub: Path) -> dict[str, str]:
    """Public name → module, read from the imports of the type stub: the one list of what the package offers."""
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                module = f"{node.module}.{name.name}" if node.module == __name__ else node.module
                found[name.name] = module
    return found


# Names load on first use, so that `import certifit` stays fast; editors read the same list from the stub.
_EXPORTS = _exports(Path(__file__).with_suffix(".pyi"))
# `from certifit import *` must neither hide scikit-learn itself nor load drop-ins that refuse its earlier releases.
__all__ = sorted(_EXPORTS.keys() - {"sklearn"})


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'certifit' has no attribute {name!r}; see certifit.__all__ for what it has")
    module = importlib.import_module(_EXPORTS[name])
    value = module if module.__name__ == f"certifit.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})
