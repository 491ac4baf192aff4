"""A parameter declared once: name, type, default, domain and text in one line of its class.

    class Ridge(Declared, BaseEstimator):
        '''Least squares with an L2 penalty.'''

        alpha: float = Parameter(1.0, Real(0), "Strength of the penalty.")
        fit_intercept: bool = FIT_INTERCEPT
        tol: float = TOL.but(1e-4)

        coef_: Array = Fitted("array of shape (n_features,)", "Coefficients.")

From the declaration come the constructor (with a signature that scikit-learn, editors and type checkers read), the
"Parameters" and "Attributes" sections of the docstring, the check at the start of `fit` (the gate of `certifit.data.gate`
calls `check_parameters`), and the values that the contract tests try and must see refused.

`declared` is the mechanism, `domains` the values a parameter may have, `common` the parameters that mean the same everywhere.
"""

from __future__ import annotations

from certifit.parameters import common, domains
from certifit.parameters.common import *  # noqa: F403 - what it lists is this package's own
from certifit.parameters.declared import Declared, Fitted, OneOf, Parameter, check_parameters, parameters_of
from certifit.parameters.domains import *  # noqa: F403 - as above

__all__ = ["Declared", "Fitted", "OneOf", "Parameter", "check_parameters", "parameters_of"]
__all__ += common.__all__
__all__ += domains.__all__
