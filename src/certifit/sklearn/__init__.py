"""Scikit-learn's names, parameters, defaults and scales, fitted and certified by Certifit.

from certifit.sklearn.linear_model import Ridge      # instead of sklearn.linear_model

import certifit.sklearn
certifit.sklearn.patch()                             # for code that cannot be edited
"""

from __future__ import annotations

import sklearn

# The drop-ins inherit scikit-learn's classes and name each of their parameters: earlier releases have other ones.
if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9):
    raise ImportError(
        f"certifit.sklearn has the parameters and attributes of scikit-learn 1.9, and {sklearn.__version__} is installed: "
        'install scikit-learn>=1.9, or import the models from "certifit" itself.'
    )

from certifit.sklearn.patching import patch, patched, replacements, unpatch

__all__ = ["patch", "patched", "replacements", "unpatch"]
