"""Constants of narrow types, and what is computed of them alone: it runs where it is used and is not kept.

Packages hold float16, bfloat16, int8 and uint8 in constants only. Graphs compute in float32, int64 and bool, so that the first
operation on a narrow value converts it, or shows or selects a part of it (`narrow_operations.txt`). What would be larger than the
constants that it follows from, such as a weight in float32, is no constant of its own, crosses neither from forward to backward
nor from one use to the next, and is made again for each use.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Set, Tuple

import torch

from . import operations
from .errors import ExportError
from .graph import Batch, Graph, Node, Ref, Shape, leaves, map_node, uses
from .graph_json import NARROW, TYPES, WIDENED

LEAST = 256
"""Elements of a narrow constant; smaller ones are converted when a package is made, as tables that follow from them are."""


def is_narrow(tensor: torch.Tensor) -> bool:
    """Whether what follows from it is computed where it is used."""
    return tensor.dtype in NARROW and tensor.numel() >= LEAST


def conversions(nodes: List[Node], constants: Mapping[int, torch.Tensor], shapes: Mapping[int, Shape]) -> Set[int]:
    """Values that follow from constants alone, a narrow one among them, and are larger than these; and views of such values."""
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


def where_used(graph: Graph, converted: Set[int]) -> None:
    """Moves the nodes that make the values `converted` in front of each node that takes one, with values of their own, so that
    they live no longer than it runs. A lookup of rows is made in the narrow table, and the rows are converted."""
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
            node = dataclasses.replace(node, args=args, kwargs=kwargs)  # several graphs have it
        nodes += made + [node]
    made, instead = copies.of([value for _, value in graph.gives if value in maker])
    graph.nodes = nodes + made
    graph.gives = [(take, instead.get(value, value)) for take, value in graph.gives]


def _renumbered(node: Node, instead: Mapping[int, int]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    return map_node(node, lambda a: Ref(instead.get(a.value, a.value)) if isinstance(a, Ref) else a)


class _Copies:
    def __init__(self, graph: Graph, maker: Dict[int, Node]):
        self._shapes = graph.shapes
        self._maker = maker
        self._next = 1 + max([*graph.shapes, *graph.takes, *(value for node in graph.nodes for value in (*node.results, *uses(node)))])

    def of(self, values: List[int]) -> Tuple[List[Node], Dict[int, int]]:
        """New nodes that make these values, and by which number they go there."""
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
        """Of rows of a table that is only converted: the lookup, and the conversion of what it gives."""
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
    """The narrow constants that a graph takes."""
    return {value for value, take in graph.takes.items()
            if take.role == "constant" and value in graph.shapes and graph.shapes[value].dtype in NARROW}


def temporary_bytes(graph: Graph) -> int:
    """The most bytes that what follows from constants alone occupies at once while a graph runs, where it takes a narrow one."""
    if not _taken(graph):
        return 0
    fixed = {value for value, take in graph.takes.items() if take.role == "constant"}
    alive: Dict[int, int] = {}
    last = {value: k for k, node in enumerate(graph.nodes) for value in uses(node)}
    shown: Dict[int, int] = {}  # [view] what it is of
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
    """Refuses operations that would compute with a narrow constant, as readers do."""
    found = _taken(graph)
    for node in graph.nodes:
        taken = [value for value in uses(node) if value in found]
        if not taken or node.op == "aten::_to_copy" and node.kwargs.get("dtype") in (*TYPES, *WIDENED):
            continue
        if node.op not in operations.of_narrow():
            raise _computes(str(graph.shapes[taken[0]].dtype)[6:], node, layer)
        found.update(node.results)
    for _, value in graph.gives:
        if value in found:
            raise ExportError("the layer hands on a constant of a type that no layer computes with", "Convert it with .float()", layer)


def _computes(dtype: str, node: Node, layer: str) -> ExportError:
    return ExportError(f"{node.op} computes with a constant of {dtype}; packages compute with float32, int64 and bool",
                       "Convert it first, with .float() or .long(); a frozen parameter in its state_dict is converted automatically",
                       node.module or layer, node.line)
