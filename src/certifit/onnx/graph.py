"""A graph of ONNX operators under construction. All arithmetic is in double precision."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

import certifit
from certifit._types import Array

__all__ = ["Graph", "import_onnx"]

OPSET, ML_OPSET, IR_VERSION = 18, 5, 10
"""TreeEnsemble with double precision came with version 5 of ai.onnx.ml."""


def import_onnx() -> ModuleType:
    """The onnx package, which is an extra."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError('to_onnx needs the onnx package: pip install "certifit[onnx]"') from error
    return onnx


class Graph:
    """Nodes, constants, inputs and outputs.

    Parameters
    ----------
    single : bool
        Whether numbers enter and leave in single precision. They are computed with in double precision either way.
    """

    def __init__(self, single: bool) -> None:
        self.onnx: Any = import_onnx()
        self.single = single
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._count = 0

    def _name(self, stem: str) -> str:
        self._count += 1
        return f"certifit/{stem}_{self._count}"  # no name of a column looks like that

    def constant(self, value: Any, stem: str = "constant") -> str:
        """A constant array."""
        name = self._name(stem)
        self._constants.append(self.tensor(value, name))
        return name

    def tensor(self, value: Any, name: str) -> Any:
        """An array as ONNX stores it."""
        array = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        return self.onnx.numpy_helper.from_array(array.astype(object) if array.dtype.kind == "U" else array, name)

    def add(self, operator: str, *inputs: str, domain: str = "", output: str | None = None, **attributes: Any) -> str:
        """One operator; returns the name of its output."""
        name = output or self._name(operator.lower())
        node = self.onnx.helper.make_node(operator, list(inputs), [name], domain=domain, **attributes)
        self._nodes.append(node)
        return name

    def cast(self, value: str, kind: str, output: str | None = None) -> str:
        """Convert to "DOUBLE", "FLOAT", "INT64", …"""
        return self.add("Cast", value, output=output, to=getattr(self.onnx.TensorProto, kind))

    def rounded(self, table: str) -> str:
        """A table as a transformer returns it: to single precision and back, where that is what rows come in."""
        return self.cast(self.cast(table, "FLOAT"), "DOUBLE") if self.single else table

    def column(self, table: str, j: int) -> str:
        """Column j of a table, of shape (rows, 1)."""
        return self.add("Gather", table, self.constant(np.array([j])), axis=1)

    def zeros(self, table: str) -> str:
        """A column of zeros, one for each row of a table, whatever the table holds."""
        first = self.column(table, 0)
        return self.add("Mul", self.cast(self.add("IsNaN", first), "DOUBLE"), self.constant(0.0))

    def input(self, name: str, width: int, text: bool = False) -> str:
        """A new input of `width` columns, in double precision unless it is text."""
        proto = self.onnx.TensorProto
        kind = proto.STRING if text else proto.FLOAT if self.single else proto.DOUBLE
        self._inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, ["rows", width]))
        return self.cast(name, "DOUBLE") if self.single and not text else name

    def output(self, name: str, value: str, shape: Sequence[Any]) -> None:
        """Give a computed value to the outside, in the precision of the input."""
        proto = self.onnx.TensorProto
        kind = proto.FLOAT if self.single else proto.DOUBLE
        self.cast(value, "FLOAT" if self.single else "DOUBLE", output=name)
        self._outputs.append(self.onnx.helper.make_tensor_value_info(name, kind, list(shape)))

    def labels(self, name: str, index: str, classes: Array) -> None:
        """Give the classes behind numbers of classes to the outside."""
        proto = self.onnx.TensorProto
        values = classes
        if classes.dtype.kind == "O":
            kinds = {type(label) for label in classes.tolist()}
            if kinds != {str}:
                raise ValueError(
                    "ONNX has labels of one type only; the classes of this model are of "
                    f"{', '.join(sorted(kind.__name__ for kind in kinds))}. Fit it on labels of one type."
                )
            values = classes.astype(str)
        kind = {"b": proto.BOOL, "i": proto.INT64, "u": proto.INT64, "f": proto.DOUBLE, "U": proto.STRING}.get(
            values.dtype.kind
        )
        if kind is None:
            raise ValueError(f"ONNX has no labels of dtype {classes.dtype}: fit the model on numbers or text.")
        wide = {proto.INT64: np.int64, proto.DOUBLE: np.float64}.get(kind)
        table = self.constant(values if wide is None else values.astype(wide), "classes")
        self.add("Gather", table, index, output=name, axis=0)
        self._outputs.append(self.onnx.helper.make_tensor_value_info(name, kind, ["rows"]))

    def model(self, title: str, features: Sequence[str] | None) -> bytes:
        """The finished and checked model."""
        helper = self.onnx.helper
        graph = helper.make_graph(self._nodes, title, self._inputs, self._outputs, self._constants)
        made = helper.make_model(
            graph,
            producer_name="certifit",
            producer_version=certifit.__version__,
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)],
        )
        about = {"model": title} if features is None else {"model": title, "features": json.dumps(list(features))}
        helper.set_model_props(made, about)
        self.onnx.checker.check_model(made)
        return bytes(made.SerializeToString())
