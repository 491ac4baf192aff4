"""Scikit-learn's names, parameters, defaults and scales, fitted and certified by Certifit.

from certifit.sklearn.linear_model import Ridge      # instead of sklearn.linear_model

import certifit.sklearn
certifit.sklearn.patch()                             # for code that cannot be edited
"""

from __future__ import annotations

from certifit.sklearn.patching import patch, patched, replacements, unpatch

__all__ = ["patch", "patched", "replacements", "unpatch"]
