"""The families of models: one line each enrols a family's entrants, its ONNX exporter and its page of documentation.

A family called ``trees`` has, where its line says so,

    entrants    certifit/contest/entrants/trees.py    with a tuple ``ENTRANTS`` of `Entrant`
    exporter    certifit/onnx/trees.py                with a mapping ``EXPORTERS`` of classes to the function that writes them
    page        docs/methods/trees.md

The contest, the command line, the report, the exporter and the tests read this list and nothing else. Modules are named, not
imported: who asks for the entrants does not load the exporters.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType

__all__ = ["FAMILIES", "Family", "family"]


@dataclass(frozen=True)
class Family:
    """
    A family of models.

    Parameters
    ----------
    name : str
        Name of its modules.
    words : str
        What its models are called in a sentence.
    entrants, exporter : bool
        Whether it takes part in contests, and whether its models can be written as ONNX.
    page : str or None
        Its page in docs/methods.

    Examples
    --------
    >>> from certifit.families import family
    >>> [entrant.name for entrant in family("trees").entrant_module().ENTRANTS]
    ['tree', 'optimal_tree', 'forest', 'boosting']
    """

    name: str
    words: str
    entrants: bool = True
    exporter: bool = True
    page: str | None = None

    def entrant_module(self) -> ModuleType:
        """The module with its ``ENTRANTS``."""
        return importlib.import_module(f"certifit.contest.entrants.{self.name}")

    def exporter_module(self) -> ModuleType:
        """The module with its ``EXPORTERS``."""
        return importlib.import_module(f"certifit.onnx.{self.name}")


FAMILIES = (
    Family("baseline", "the trivial baseline", exporter=False),
    Family("linear", "linear models and linear classifiers", page="linear.md"),
    Family("bayes", "naive Bayes, discriminants and Bayesian regression", page="bayes.md"),
    Family("margin", "support vector machines", exporter=False, page="svm.md"),
    Family("kernel", "support vector machines on kernels", page="kernels.md"),
    Family("neighbors", "nearest neighbors and local regression", exporter=False, page="neighbors.md"),
    Family("cluster", "clusters", entrants=False, exporter=False, page="cluster.md"),
    Family("kernel_models", "models of any loss on a kernel", page="kernels.md"),
    Family("neural", "neural networks", page="neural.md"),
    Family("hierarchy", "hierarchies of clusters and maps", entrants=False, exporter=False, page="hierarchy.md"),
    Family("embedding", "principal components", entrants=False, exporter=False, page="components.md"),
    Family("selection", "selection of columns", entrants=False, exporter=False, page="selection.md"),
    Family(
        "structured", "models of sequences and trees of labels", entrants=False, exporter=False, page="structured.md"
    ),
    Family("trees", "decision trees, random forests and boosted trees", page="trees.md"),
)
"""In the order in which their entrants compete: the cheap ones first."""


def family(name: str) -> Family:
    """The family with this name."""
    for found in FAMILIES:
        if found.name == name:
            return found
    raise ValueError(f"no family {name!r}; choose among {', '.join(f.name for f in FAMILIES)}.")
