"""k centers: k rows of which the nearest is never far.

    minimize over sets M of k rows    max_i min_{m ∈ M} d(x_i, m)

Each center is the row farthest from those before it (Gonzalez 1985). The k centers and the row farthest from them are k + 1
rows, each two at least the radius r apart; of any k balls that cover them one covers two, so no k centers, rows or not, have a
radius below r/2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.models.cluster.around_rows import AroundRows
from certifit.parameters import Fitted
from certifit.representation.kernels.base import Kernel

__all__ = ["KCenter"]

METRICS = ("euclidean", "manhattan", "chebyshev")  # in which a detour is never shorter


class KCenter(AroundRows):
    """k centers by farthest points: a radius at most twice the least possible, and the certificate says by how much.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import KCenter
    >>> model = KCenter(n_clusters=2).fit(np.array([[0.0], [1.0], [2.0], [10.0], [12.0]]))
    >>> model.radius_, model.lower_bound_, model.labels_.tolist()
    (2.0, 1.0, [1, 1, 1, 0, 0])
    """

    center_indices_: Array = Fitted("array of shape (n_clusters,)", "Numbers of the rows at the centers.")
    radius_: float = Fitted("float", "The largest distance of a row from its center.")
    lower_bound_: float = Fitted("float", "What no k centers can go below; 0 where the dissimilarity is no metric.")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KCenter:
        """Find the centers; of the weights it matters only which are zero."""
        clock, X, rows, _ = self._begin(X, sample_weight)
        chosen, radii = self._farthest(X, rows)
        self.radius_ = radii[-1]
        self._finish(X, rows[chosen])
        self.center_indices_ = self._chosen
        metric = isinstance(self.metric, Kernel) or self.metric in METRICS
        self.lower_bound_ = 0.5 * self.radius_ if metric else 0.0
        note = "At most twice the least radius." if metric else "Nothing is known without the triangle inequality."
        certificate = Certificate(
            "2-approximation",
            objective=self.radius_,
            bound=self.lower_bound_,
            scale=radii[0],
            tol=np.inf,
            iterations=chosen.shape[0],
            seconds=clock.seconds,
            note=note,
        )
        self._certify(certificate if metric else Certificate.absent(self.radius_, note, scale=radii[0] or 1.0))
        return self

    def _farthest(self, X: Array, rows: Array) -> tuple[Array, list[float]]:
        """Each row farthest from those before; the first one is farthest from the first by content. Radii as they shrink."""
        chosen = [int(np.argmax(self._between(X, rows, rows[:1])[:, 0]))]
        away = self._between(X, rows, rows[chosen])[:, 0]
        radii = [float(away.max())]
        while len(chosen) < self.n_clusters and radii[-1] > 0:
            chosen.append(int(np.argmax(away)))
            away = np.minimum(away, self._between(X, rows, rows[chosen[-1:]])[:, 0])
            radii.append(float(away.max()))
        return np.array(chosen), radii
