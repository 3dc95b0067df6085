"""Merges recordings with several batch sizes: integers that differ become `Batch`."""

from __future__ import annotations

from typing import Any, List, Sequence

import torch

from .errors import ExportError
from .graph import Batch, Node, Shape
from .trace import Trace
from .virtual import Virtual, address


def merge(name: str, traces: Sequence[Trace], sizes: Sequence[int]) -> Trace:
    """The first trace with its sizes replaced by functions of the batch size. Its recorder is changed and reused.

    REQUIRES: two sizes or more, all different.
    """
    first = traces[0].recorder
    for other, trace in zip(sizes[1:], traces[1:]):
        _alike(name, first.nodes, trace.recorder.nodes, sizes[0], other)
        if trace.results != traces[0].results or trace.recorder.roles != first.roles:
            raise ExportError(f"the layer returns other values with {sizes[0]} samples than with {other}",
                              "Compute the same for any number of samples", name)
        for value, content in first.constants.items():
            if not _same(content, trace.recorder.constants[value]):
                what = first.names.get(value, "a tensor that the layer creates or closes over")
                raise ExportError(f"{what} differs between calls", "Constants must be equal in each call; compute "
                                  "values that depend on the batch from the layer's input", name)
    for k, node in enumerate(first.nodes):
        alike = [trace.recorder.nodes[k] for trace in traces]
        node.args = tuple(_merged(node, values, sizes) for values in zip(*(n.args for n in alike)))
        node.kwargs = {key: _merged(node, [n.kwargs[key] for n in alike], sizes) for key in node.kwargs}
    for value, shape in first.shapes.items():
        shapes = [trace.recorder.shapes[value] for trace in traces]
        lengths = list(zip(*(s.sizes for s in shapes)))
        first.shapes[value] = Shape(tuple(_number(length, sizes) for length in lengths), shape.dtype,
                                    all(s.contiguous for s in shapes))
    return traces[0]


def _alike(name: str, a: List[Node], b: List[Node], size_a: int, size_b: int) -> None:
    for x, y in zip(a, b):
        if x.op != y.op or x.results != y.results or len(x.args) != len(y.args) or x.kwargs.keys() != y.kwargs.keys():
            raise ExportError(f"with {size_a} samples {x.op} runs, with {size_b} samples {y.op}",
                              "Compute the same for any number of samples", x.module or name, x.line)
    if len(a) != len(b):
        raise ExportError(f"with {size_a} samples {len(a)} operations run, with {size_b} samples {len(b)}",
                          "Compute the same for any number of samples", name)


def _merged(node: Node, values: Sequence[Any], sizes: Sequence[int]) -> Any:
    first = values[0]
    if isinstance(first, list):
        if any(not isinstance(v, list) or len(v) != len(first) for v in values):
            raise _differs(node, values)
        return [_merged(node, part, sizes) for part in zip(*values)]
    if all(_equal(first, v) for v in values[1:]):
        return first
    whole = all(type(v) is int for v in values) or all(type(v) is float and v.is_integer() for v in values)
    number = _number([int(v) for v in values], sizes) if whole else None
    if number is None:
        raise _differs(node, values)
    return number


def _number(values: Sequence[int], sizes: Sequence[int]) -> Any:
    """An integer, a `Batch`, or None if the values are not linear in the batch size."""
    if all(v == values[0] for v in values):
        return values[0]
    b, rest = divmod(values[1] - values[0], sizes[1] - sizes[0])
    line = Batch(values[0] - b * sizes[0], b)
    return line if rest == 0 and all(line.at(s) == v for s, v in zip(sizes, values)) else None


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a == b or (a != a and b != b))


def _differs(node: Node, values: Sequence[Any]) -> ExportError:
    return ExportError(f"an argument of {node.op} is not linear in the number of samples: {', '.join(map(str, values))}",
                       "Use sizes of the form a + b * batch size", node.module, node.line)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if isinstance(a, Virtual) or isinstance(b, Virtual):
        return address(a) == address(b) and a.shape == b.shape
    return a is b or a.dtype == b.dtype and a.shape == b.shape and bool(torch.equal(a, b))
