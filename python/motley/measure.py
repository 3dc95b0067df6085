"""The cost of a layer's graphs, computed from shapes: FLOPs and bytes per sample."""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, Sequence

import torch

from . import narrow, operations
from .partition import Parts
from .graph import Batch, Graph, Node, Shape, uses
from .graph_json import NARROW

_BATCH = 3  # costs per sample are the difference between 3 and 2 samples, without costs that do not grow with the batch


_SIZES = {torch.bool: 1, torch.float32: 4, **{dtype: torch.empty(0, dtype=dtype).element_size() for dtype in NARROW}}


def _count(shape: Optional[Shape], samples: int) -> int:
    count = 1
    for size in shape.sizes if shape else ():
        count *= size.at(samples) if isinstance(size, Batch) else (size or 0)
    return count


def _bytes(shape: Optional[Shape], samples: int) -> int:
    return 0 if shape is None else _count(shape, samples) * _SIZES.get(shape.dtype, 8)


def _per_sample(at_three: int, at_two: int) -> int:
    return max(0, at_three - at_two)


def memory(parts: Parts) -> Dict[str, int]:
    """Bytes per sample that a layer saves, queues, and needs temporarily in one of its graphs; and bytes of converted narrow
    constants, for any number of samples."""
    def kept(kind: str, graph: Graph) -> int:
        values = {value for role, value in graph.outputs if role.kind == kind}
        return _per_sample(*(sum(_bytes(graph.shapes.get(v), s) for v in values) for s in (_BATCH, _BATCH - 1)))

    found = {"saved_bytes": kept("saved", parts.forward), "queued_bytes": kept("queued", parts.input_part),
             "workspace_bytes": max(_per_sample(_peak(graph, _BATCH), _peak(graph, _BATCH - 1)) for graph in parts)}
    converted = max(narrow.temporary_bytes(graph) for graph in parts)
    return {**found, "converted_bytes": converted} if converted else found


Extra = Callable[[Graph, Node, Callable[[int], int]], int]
"""The bytes that a node of a graph needs besides its results, by the sizes of values."""


def training_bytes(parts: Parts, samples: int, extra: Extra) -> int:
    """The peak of the bytes of a layer's results in a forward and backward, of which only what the backward needs is held: other results
    are released after their last use. Without weights."""
    def of(kind: str, graph: Graph) -> int:
        values = {value for role, value in graph.outputs if role.kind == kind}
        return sum(_bytes(graph.shapes.get(value), samples) for value in values)

    saved, queued = of("saved", parts.forward), of("queued", parts.input_part)
    return max(live_peak(parts.forward, samples, extra), saved + live_peak(parts.input_part, samples, extra),
               saved + queued + live_peak(parts.weight_part, samples, extra))


def live_peak(graph: Graph, samples: int, extra: Extra = lambda graph, node, size: 0) -> int:
    """The peak of the bytes of a graph's results. Views need no memory, and extend the life of their base. `saved` and `queued` results
    live until the end."""
    base: Dict[int, int] = {}
    for node in graph.nodes:
        if _is_view(node):
            base.update({value: base.get(uses(node)[0], uses(node)[0]) for value in node.results})
    last: Dict[int, int] = {}
    for k, node in enumerate(graph.nodes):
        for value in (*uses(node), *node.results):
            last[base.get(value, value)] = k
    held = {base.get(value, value) for role, value in graph.outputs if role.kind in ("saved", "queued")}
    present = highest = 0
    alive: Dict[int, int] = {}

    def size(value: int) -> int:
        return _bytes(graph.shapes.get(value), samples)

    for k, node in enumerate(graph.nodes):
        for value in node.results:
            if value not in base:
                alive[value] = size(value)
                present += alive[value]
        highest = max(highest, present + extra(graph, node, size))
        for value in [v for v in alive if last[v] <= k and v not in held]:
            present -= alive.pop(value)
    return highest


def _is_view(node: Node) -> bool:
    return bool(uses(node)) and (node.op == "aten::_unsafe_view" or operations.is_view(operations.find(node.op)))


def _peak(graph: Graph, samples: int) -> int:
    """The peak of the bytes of a graph's results, each of which lives until its last use, without the saved ones."""
    made = {value for node in graph.nodes for value in node.results}
    saved = {value for role, value in graph.outputs if role.kind == "saved"} & made
    last: Dict[int, int] = {}
    for k, node in enumerate(graph.nodes):
        for value in uses(node):
            last[value] = k
    given = {value for _, value in graph.outputs}
    present = highest = 0
    alive: Dict[int, int] = {}
    for k, node in enumerate(graph.nodes):
        for value in node.results:
            alive[value] = _bytes(graph.shapes.get(value), samples)
            present += alive[value]
        highest = max(highest, present)
        for value in [v for v in alive if last.get(v, k) <= k and v not in given]:
            present -= alive.pop(value)
    return max(0, highest - sum(_bytes(graph.shapes.get(value), samples) for value in saved))


def flops(graph: Graph) -> int:
    """FLOPs per sample of products and convolutions in a graph; a multiply-add counts as two."""
    return _per_sample(*(sum(_work(node, graph.shapes, s) for node in graph.nodes) for s in (_BATCH, _BATCH - 1)))


def _work(node: Node, shapes: Dict[int, Shape], samples: int) -> int:
    operands: List[int] = uses(node)
    out = _count(shapes.get(node.results[0]), samples) if node.results else 0
    if node.op in ("aten::mm", "aten::bmm"):
        return 2 * out * _length(shapes, operands[0], -1, samples)
    if node.op in ("aten::addmm", "aten::baddbmm"):
        return 2 * out * _length(shapes, operands[1], -1, samples)
    if node.op == "aten::convolution":
        return _convolution(shapes, operands[0], operands[1], out, bool(node.args[6]), samples)
    if node.op == "aten::convolution_backward":  # each computed gradient, of input or weight, costs as much as the convolution
        grad, taken, weight = operands[:3]
        made = sum(map(bool, node.args[10][:2]))
        return made * _convolution(shapes, taken, weight, _count(shapes.get(grad), samples), bool(node.args[7]), samples)
    return 0


def _convolution(shapes: Dict[int, Shape], taken: int, weight: int, out: int, transposed: bool, samples: int) -> int:
    """FLOPs of a convolution of the value `taken` whose result has `out` elements."""
    kernel = _count(shapes[weight], samples)
    if transposed:  # each input position is multiplied by the whole kernel
        return 2 * (_count(shapes[taken], samples) // _length(shapes, taken, 1, samples)) * kernel
    return 2 * out * (kernel // _length(shapes, weight, 0, samples))


def _length(shapes: Dict[int, Shape], value: int, dim: int, samples: int) -> int:
    sizes: Sequence[object] = shapes[value].sizes
    size = sizes[dim]
    return size.at(samples) if isinstance(size, Batch) else int(size)  # type: ignore[call-overload]
