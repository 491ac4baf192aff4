"""How a class of scikit-learn's becomes one of ours: tables of parameters, questions to our model, arguments on their way."""

from certifit.sklearn.translation.table import *  # noqa: F403
from certifit.sklearn.translation.table import __all__ as __all__
