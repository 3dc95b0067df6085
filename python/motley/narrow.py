"""Constants of narrow types, and values computed from constants alone: they are computed at each use and not stored.

Only constants of packages have the types float16, bfloat16, int8 and uint8. Graphs compute in float32, int64 and bool, so the
first operation on a narrow value converts it, or is a view or a selection (`narrow_operations.txt`). A value that is larger than
the constants that it is computed from, such as a weight in float32, does not become a constant, is not saved for backward, and is
recomputed for each use.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Set, Tuple

import torch

from . import operations
from .errors import ExportError
from .graph import Batch, Graph, Node, Ref, Shape, leaves, map_node, uses
from .graph_json import NARROW, TYPES, WIDENED

MIN_ELEMENTS = 256
"""The least number of elements of a narrow constant; smaller ones are converted at export."""


def is_narrow(tensor: torch.Tensor) -> bool:
    """Whether values computed from this constant are recomputed at each use."""
    return tensor.dtype in NARROW and tensor.numel() >= MIN_ELEMENTS


def conversions(nodes: List[Node], constants: Mapping[int, torch.Tensor], shapes: Mapping[int, Shape]) -> Set[int]:
    """Values computed from constants alone, including a narrow one, and larger than these constants; and views of such values."""
    of: Dict[int, FrozenSet[int]] = {value: frozenset((value,)) for value in constants}
    if not any(map(is_narrow, constants.values())):
        return set()
    found: Set[int] = set()
    for node in nodes:
        taken = uses(node)
        if not taken or not all(value in of for value in taken) or not _may_repeat(node):
            continue
        sources = frozenset().union(*(of[value] for value in taken))
        of.update({value: sources for value in node.results})
        if not any(is_narrow(constants[value]) for value in sources):
            continue
        own = sum(_bytes(shapes.get(value)) for value in node.results)
        if own > sum(_bytes_of(constants[value]) for value in sources) or taken[0] in found and _is_view(node):
            found.update(node.results)
    return found


def _may_repeat(node: Node) -> bool:
    if node.op not in operations.allowed() or node.op in operations.PRODUCTS:
        return False
    return not any(isinstance(leaf, Batch) for leaf in leaves([node.args, list(node.kwargs.values())]))


def _is_view(node: Node) -> bool:
    return node.op == "aten::_unsafe_view" or operations.is_view(operations.find(node.op))


def _bytes_of(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _bytes(shape: Optional[Shape]) -> int:
    count = 1
    for size in shape.sizes if shape is not None else (0,):
        if not isinstance(size, int):
            return 0
        count *= size
    return count * torch.empty(0, dtype=WIDENED.get(shape.dtype, shape.dtype)).element_size() if shape is not None else 0


def convert_at_use(graph: Graph, converted: Set[int]) -> None:
    """Copies the nodes that compute the values `converted` in front of each node that uses one, so that their results live only
    for that node. Rows are looked up in the narrow table, and only these rows are converted."""
    maker = {value: node for node in graph.nodes if node.results[0] in converted for value in node.results}
    if not maker:
        return
    copies = _Copies(graph, maker)
    nodes: List[Node] = []
    for node in graph.nodes:
        if node.results[0] in converted:
            continue
        rows = copies.lookup(node)
        if rows is not None:
            nodes += rows
            continue
        made, instead = copies.of([value for value in uses(node) if value in maker])
        if instead:
            args, kwargs = _renumbered(node, instead)
            node = dataclasses.replace(node, args=args, kwargs=kwargs)  # several graphs share the node
        nodes += made + [node]
    made, instead = copies.of([value for _, value in graph.outputs if value in maker])
    graph.nodes = nodes + made
    graph.outputs = [(role, instead.get(value, value)) for role, value in graph.outputs]


def _renumbered(node: Node, instead: Mapping[int, int]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    return map_node(node, lambda a: Ref(instead.get(a.value, a.value)) if isinstance(a, Ref) else a)


class _Copies:
    def __init__(self, graph: Graph, maker: Dict[int, Node]):
        self._shapes = graph.shapes
        self._maker = maker
        self._next = 1 + max([*graph.shapes, *graph.inputs, *(value for node in graph.nodes for value in (*node.results, *uses(node)))])

    def of(self, values: List[int]) -> Tuple[List[Node], Dict[int, int]]:
        """Copies of the nodes that compute these values, and [value] the number of its copy."""
        instead: Dict[int, int] = {}
        nodes: List[Node] = []
        for value in values:
            self._copy(value, nodes, instead)
        return nodes, instead

    def _copy(self, value: int, nodes: List[Node], instead: Dict[int, int]) -> None:
        node = self._maker.get(value)
        if node is None or value in instead:
            return
        for taken in uses(node):
            self._copy(taken, nodes, instead)
        args, kwargs = _renumbered(node, instead)
        results = tuple(self._new(self._shapes.get(result)) for result in node.results)
        instead.update(zip(node.results, results))
        nodes.append(Node(node.op, args, kwargs, results, node.backward, node.line, node.module))

    def _new(self, shape: Optional[Shape]) -> int:
        value = self._next
        self._next += 1
        if shape is not None:
            self._shapes[value] = shape
        return value

    def lookup(self, node: Node) -> Optional[List[Node]]:
        """For a lookup in a converted table: the lookup in the narrow table, and the conversion of its rows."""
        if node.op != "aten::embedding":
            return None
        made = self._maker.get(node.args[0].value)
        if made is None or made.op != "aten::_to_copy" or made.args[0].value in self._maker or node.args[1].value in self._maker:
            return None
        table, result = made.args[0], node.results[0]
        narrow, wide = self._shapes[table.value], self._shapes[result]
        rows = self._new(Shape(wide.sizes, narrow.dtype))
        return [Node(node.op, (table,) + node.args[1:], node.kwargs, (rows,), node.backward, node.line, node.module),
                Node(made.op, (Ref(rows),), made.kwargs, node.results, node.backward, node.line, node.module)]


def _taken(graph: Graph) -> Set[int]:
    """The narrow constants among a graph's inputs."""
    return {value for value, role in graph.inputs.items()
            if role.kind == "constant" and value in graph.shapes and graph.shapes[value].dtype in NARROW}


def temporary_bytes(graph: Graph) -> int:
    """The peak of the bytes of values computed from constants alone; 0 if a graph has no narrow constant."""
    if not _taken(graph):
        return 0
    fixed = {value for value, role in graph.inputs.items() if role.kind == "constant"}
    alive: Dict[int, int] = {}
    last = {value: k for k, node in enumerate(graph.nodes) for value in uses(node)}
    shown: Dict[int, int] = {}  # [view] its base value
    highest = 0
    for k, node in enumerate(graph.nodes):
        taken = uses(node)
        if taken and all(value in fixed for value in taken):
            fixed.update(node.results)
            if _is_view(node):
                shown.update({value: shown.get(taken[0], taken[0]) for value in node.results})
            else:
                alive.update({value: _bytes(graph.shapes.get(value)) for value in node.results})
        highest = max(highest, sum(alive.values()))
        held = {shown.get(value, value) for value in fixed if last.get(value, -1) > k}
        alive = {value: size for value, size in alive.items() if value in held}
    return highest


def check_uses(graph: Graph, layer: str) -> None:
    """Refuses operations that compute with a narrow constant, like readers of packages."""
    found = _taken(graph)
    for node in graph.nodes:
        taken = [value for value in uses(node) if value in found]
        if not taken or node.op == "aten::_to_copy" and node.kwargs.get("dtype") in (*TYPES, *WIDENED):
            continue
        if node.op not in operations.accepts_narrow():
            raise _computes(str(graph.shapes[taken[0]].dtype)[6:], node, layer)
        found.update(node.results)
    for _, value in graph.outputs:
        if value in found:
            raise ExportError("the layer returns a constant of a narrow type, with which no layer computes",
                              "Convert it with .float()", layer)


def _computes(dtype: str, node: Node, layer: str) -> ExportError:
    return ExportError(f"{node.op} computes with a constant of {dtype}; packages compute with float32, int64 and bool",
                       "Convert it first, with .float() or .long(); a frozen parameter in its state_dict is converted automatically",
                       node.module or layer, node.line)
