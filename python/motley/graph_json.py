"""Graphs as the JSON of a package (docs/formats/package.md)."""

from __future__ import annotations

import math
from typing import Any, Dict

import torch

from . import operations, remedies
from .errors import ExportError
from .graph import Batch, Graph, Node, Ref, map_args

TYPES = {torch.float32: "float32", torch.int64: "int64", torch.bool: "bool"}
NARROW = {torch.bfloat16: "bfloat16", torch.float16: "float16", torch.int8: "int8", torch.uint8: "uint8"}
"""Further types of constants, which graphs convert before they compute with them (narrow.py)."""
WIDENED = {torch.int32: torch.int64}
"""Types that packages replace: int32 positions and masks become int64."""
MAX_NODES = 10_000
"""The most nodes of a graph (docs/formats/package.md, "Limits")."""

_FORMATS = {torch.contiguous_format: "contiguous", torch.preserve_format: "preserve",
            torch.channels_last: "contiguous", torch.channels_last_3d: "contiguous"}  # the layout does not change results


def graph_json(graph: Graph, layer: str) -> Dict[str, Any]:
    """`graph` with values numbered as in a package: inputs first, then results in order."""
    if len(graph.nodes) > MAX_NODES:
        raise ExportError(f"the layer has {len(graph.nodes)} operations, more than {MAX_NODES:,}",
                          "Divide it into several layers", layer)
    numbers: Dict[int, int] = {}
    for value in graph.inputs:
        numbers[value] = len(numbers)
    nodes = []
    for node in graph.nodes:
        if node.op not in operations.allowed() and not node.op.startswith("motley::"):
            raise ExportError(f"packages do not support the operation {node.op}", remedies.for_operation(node.op, node.line) or
                              "Use other operations (python/motley/operations.txt lists the supported ones)", node.module or layer, node.line)
        nodes.append(_node(node, numbers, layer))
        for value in node.results:
            numbers[value] = len(numbers)
    return {"takes": [f"{role.kind}:{role.index}" for role in graph.inputs.values()],
            "nodes": nodes,
            "gives": [[f"{role.kind}:{role.index}", numbers[value]] for role, value in graph.outputs]}


def _node(node: Node, numbers: Dict[int, int], layer: str) -> Dict[str, Any]:
    def fail(what: str, remedy: str) -> ExportError:
        return ExportError(f"an argument of {node.op} is {what}", f"Packages compute in float32, int64 and bool{remedy}",
                           node.module or layer, node.line)

    def leaf(value: Any) -> Any:
        if isinstance(value, Ref):
            return {"value": numbers[value.value]}
        if isinstance(value, Batch):
            return {"batch": [value.a, value.b]}
        if isinstance(value, torch.dtype):
            value = WIDENED.get(value, value)
            if value not in TYPES:
                raise fail(f"the type {str(value)[6:]}", f". {remedies.for_dtype(value)}")
            return {"type": TYPES[value]}
        if isinstance(value, torch.memory_format):
            if value not in _FORMATS:
                raise fail(f"the memory format {value}", ", in contiguous memory")
            return {"memory_format": _FORMATS[value]}
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
        if isinstance(value, str):
            return {"text": value}
        if value is None or isinstance(value, (bool, int, float)):
            return value
        raise fail(f"a {type(value).__name__}", ", with numbers and strings as further arguments")

    def argument(value: Any) -> Any:
        if isinstance(value, (list, tuple)) and any(isinstance(v, Ref) for v in value) and not isinstance(value, (Ref, Batch)):
            return {"values": [None if v is None else numbers[v.value] for v in value]}
        return map_args(value, leaf)

    return {"op": node.op, "args": [argument(a) for a in node.args],
            "kwargs": {key: argument(value) for key, value in sorted(node.kwargs.items())}, "results": len(node.results)}
