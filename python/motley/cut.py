"""Divides the recording of a layer into forward, input part and weight part of backward.

Nodes of the forward pass stay there. The nodes of the backward pass on which the gradients of the inputs depend are the
input part; the rest, on which only gradients of parameters depend, is the weight part. The arithmetic and its order are
autograd's. Saved and queued tensors are whole: a view would keep the whole tensor in memory, so it is recomputed where it
is used. So are views of parameters, nodes without tensor arguments, such as random numbers, and conversions of narrow
constants.
"""

from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Set

from . import narrow, operations, random_numbers
from .graph import Graph, Node, Ref, Shape, Take, needed, uses
from .trace import Trace


class Parts(NamedTuple):
    forward: Graph
    input_part: Graph
    weight_part: Graph


def cut(trace: Trace, takes: Dict[int, Take]) -> Parts:
    """The three graphs. `takes`: the roles of the values that no node makes, by the layer's value numbers."""
    recorder = trace.recorder
    gives = trace.gives
    nodes, shapes = _divided(recorder.nodes, recorder.shapes, takes)
    nodes = _masks_again(nodes, shapes)
    converted = _converted(trace, nodes, takes)
    maker = {result: node for node in nodes for result in node.results}
    order = {id(node): k for k, node in enumerate(nodes)}
    backward = [node for node in nodes if node.backward]
    to_inputs = [value for take, value in gives.items() if take.role == "input_grad"]
    to_weights = {take: value for take, value in gives.items() if take.role == "parameter_grad"}
    in_input = needed(backward, to_inputs)
    of_input = {id(node) for node in in_input}
    made_by_input = {result for node in in_input for result in node.results}
    late = {take: value for take, value in to_weights.items() if value not in made_by_input}
    in_weight = [node for node in needed(backward, list(late.values())) if id(node) not in of_input]

    def forward_value(value: int) -> bool:
        return value in maker and not maker[value].backward or takes.get(value, Take("", 0)).role in ("input", "target")

    def free(value: int) -> bool:
        return value in takes and takes[value].role in ("parameter", "constant")

    def again(value: int) -> bool:
        return value in maker and (value in converted or _repeatable(maker[value]) or _is_drawn(maker[value], maker))

    weight_nodes, weight_needs = _with_repeats(in_weight, list(late.values()), maker, order, again)
    queued = [v for v in weight_needs if not free(v) and not forward_value(v)]
    input_nodes, input_needs = _with_repeats(in_input, to_inputs + queued + [v for v in to_weights.values()
                                             if v in made_by_input], maker, order, again)
    saved = sorted({v for v in input_needs + weight_needs if forward_value(v)})

    out = [(take, value) for take, value in gives.items() if take.role not in ("input_grad", "parameter_grad")]
    out += [(Take("saved", k), value) for k, value in enumerate(saved)]
    forward = Graph(nodes=needed([n for n in nodes if not n.backward], [value for _, value in out]), gives=out, shapes=shapes)
    first = [(take, value) for take, value in gives.items() if take.role == "input_grad"]
    first += [(Take("queued", k), value) for k, value in enumerate(queued)]
    first += [(take, value) for take, value in to_weights.items() if take not in late]
    second = list(late.items())

    boundary = {value: Take("saved", k) for k, value in enumerate(saved)}
    later = {**boundary, **{value: Take("queued", k) for k, value in enumerate(queued)}}
    parts = Parts(forward, Graph(nodes=input_nodes, gives=first, shapes=shapes),
                  Graph(nodes=weight_nodes, gives=second, shapes=shapes))
    for graph in parts:
        narrow.where_used(graph, converted)
    forward.takes = _taken(forward, takes)
    parts.input_part.takes = _taken(parts.input_part, {**takes, **boundary})
    parts.weight_part.takes = _taken(parts.weight_part, {**takes, **later})
    return parts


def whole(trace: Trace, takes: Dict[int, Take]) -> Graph:
    """A recording without backward, as one graph."""
    graph = Graph(nodes=trace.recorder.nodes, gives=list(trace.gives.items()), shapes=trace.recorder.shapes)
    narrow.where_used(graph, _converted(trace, graph.nodes, takes))
    graph.takes = _taken(graph, takes)
    return graph


def _converted(trace: Trace, nodes: List[Node], takes: Dict[int, Take]) -> Set[int]:
    constants = trace.recorder.constants
    taken = {value: constants[value] for value, take in takes.items() if take.role == "constant" and value in constants}
    return narrow.conversions(nodes, taken, trace.recorder.shapes)


def _taken(graph: Graph, takes: Dict[int, Take]) -> Dict[int, Take]:
    made = {result for node in graph.nodes for result in node.results}
    used = {value for node in graph.nodes for value in uses(node)} | {value for _, value in graph.gives}
    return {value: takes[value] for value in sorted(used - made, key=lambda v: (_ROLES.index(takes[v].role), takes[v].index))}


_ROLES = ("input", "target", "saved", "queued", "grad", "parameter", "constant", "statistic")


def _repeatable(node: Node) -> bool:
    """Whether recomputing a node is cheaper than saving its result."""
    return not uses(node) or node.op == "aten::_unsafe_view" or operations.is_view(operations.find(node.op))


def _is_drawn(node: Node, maker: Dict[int, Node]) -> bool:
    """Whether it is a copy of drawn numbers, which in-place draws produce."""
    return node.op == "aten::clone" and any(value in maker and maker[value].op in random_numbers.OPERATIONS for value in uses(node))


def _with_repeats(nodes: List[Node], wanted: List[int], maker: Dict[int, Node], order: Dict[int, int],
                  again: Callable[[int], bool]) -> "tuple[List[Node], List[int]]":
    """`nodes` with the nodes that they recompute, in order, and the external values that they need."""
    chosen = {id(node): node for node in nodes}
    outside: Set[int] = set()
    asked = [value for node in nodes for value in uses(node)] + wanted
    while asked:
        value = asked.pop()
        node = maker.get(value)
        if node is not None and id(node) in chosen:
            continue
        if node is not None and again(value):
            chosen[id(node)] = node
            asked += uses(node)
        else:
            outside.add(value)
    return sorted(chosen.values(), key=lambda n: order[id(n)]), sorted(outside)


def _divided(nodes: List[Node], shapes: Dict[int, Shape], takes: Dict[int, Take]
             ) -> "tuple[List[Node], Dict[int, Shape]]":
    """Splits convolution_backward, which PyTorch has as one operation with a mask, into input and weight gradients."""
    result = []
    next_value = 1 + max([max(node.results) for node in nodes if node.results] + list(takes) + list(shapes))
    shapes = dict(shapes)
    for node in nodes:
        if node.op != "aten::convolution_backward" or not node.args[10][0] or not any(node.args[10][1:]):
            result.append(node)
            continue
        mask = node.args[10]
        unused = (next_value, next_value + 1, next_value + 2)
        next_value += 3
        result.append(Node(node.op, node.args[:10] + ([True, False, False],), node.kwargs,
                           (node.results[0],) + unused[:2], True, node.line, node.module))
        result.append(Node(node.op, node.args[:10] + ([False, mask[1], mask[2]],), node.kwargs,
                           (unused[2],) + node.results[1:], True, node.line, node.module))
    return result, shapes


def _masks_again(nodes: List[Node], shapes: Dict[int, Shape]) -> List[Node]:
    """A dropout mask is a function of its position. The backward pass recomputes it in the shape of the gradient that it
    multiplies, so it is not saved."""
    masks = {node.results[0]: node for node in nodes if node.op == "motley::dropout_mask" and not node.backward}
    next_value = 1 + max([*shapes, *(result for node in nodes for result in node.results)], default=0)
    result = []
    for node in nodes:
        operands = uses(node)
        if node.backward and node.op == "aten::mul.Tensor" and len(operands) == 2 and operands[1] in masks:
            grad, mask = operands
            if shapes[grad].sizes == shapes[mask].sizes and shapes[grad].dtype == shapes[mask].dtype:
                made = masks[mask]
                result.append(Node(made.op, (Ref(grad),) + made.args[1:], made.kwargs, (next_value,), True, None, made.module))
                shapes[next_value] = shapes[mask]
                node = Node(node.op, (Ref(grad), Ref(next_value)), node.kwargs, node.results, True, node.line, node.module)
                next_value += 1
        result.append(node)
    return result
