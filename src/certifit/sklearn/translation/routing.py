"""Arguments on their way through a model to what it is made of: scikit-learn's metadata routing, by its public names."""

from __future__ import annotations

from typing import Any

from sklearn import get_config
from sklearn.utils.metadata_routing import process_routing

__all__ = ["for_the_estimator", "routed"]


def routed(owner: Any, method: str, params: dict[str, Any]) -> Any:
    """What goes where; arguments are refused unless metadata routing is switched on, which has to say who wants them."""
    if not params:
        return {}
    if not get_config()["enable_metadata_routing"]:
        raise ValueError(
            f"Passing extra keyword arguments to {type(owner).__name__}.{method} is only supported if "
            "enable_metadata_routing=True, which you can set using sklearn.set_config. Extra parameters passed are: "
            f"{', '.join(sorted(params))}."
        )
    return process_routing(owner, method, **params)


def for_the_estimator(owner: Any, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """What the inner estimator asked for."""
    found = routed(owner, method, params)
    return dict(found["estimator"][method]) if "estimator" in found else {}
