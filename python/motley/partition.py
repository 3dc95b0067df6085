"""Partitions the recording of a layer into forward, input part and weight part of backward.

The nodes of the backward pass on which the gradients of the inputs depend are the input part; the others, on which only
gradients of parameters depend, are the weight part. The arithmetic and its order are autograd's. Saved and queued tensors are
not views, which would keep their base in memory: views are recomputed at their use. Views of parameters, nodes without tensor
arguments, such as random numbers, and conversions of narrow constants are recomputed too.
"""

from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Set

from . import narrow, operations, random_numbers
from .graph import Graph, Node, Ref, Shape, Role, needed, uses
from .trace import Trace


class Parts(NamedTuple):
    forward: Graph
    input_part: Graph
    weight_part: Graph


def partition(trace: Trace, roles: Dict[int, Role]) -> Parts:
    """The three graphs. `roles`: [value] the roles of the values that no node computes."""
    recorder = trace.recorder
    results = trace.results
    nodes, shapes = _split_convolutions(recorder.nodes, recorder.shapes, roles)
    nodes = _recompute_masks(nodes, shapes)
    converted = _converted(trace, nodes, roles)
    maker = {result: node for node in nodes for result in node.results}
    order = {id(node): k for k, node in enumerate(nodes)}
    backward = [node for node in nodes if node.backward]
    to_inputs = [value for role, value in results.items() if role.kind == "input_grad"]
    to_weights = {role: value for role, value in results.items() if role.kind == "parameter_grad"}
    in_input = needed(backward, to_inputs)
    of_input = {id(node) for node in in_input}
    made_by_input = {result for node in in_input for result in node.results}
    late = {role: value for role, value in to_weights.items() if value not in made_by_input}
    in_weight = [node for node in needed(backward, list(late.values())) if id(node) not in of_input]

    def forward_value(value: int) -> bool:
        return value in maker and not maker[value].backward or roles.get(value, Role("", 0)).kind in ("input", "target")

    def is_stored(value: int) -> bool:
        return value in roles and roles[value].kind in ("parameter", "constant")

    def is_recomputed(value: int) -> bool:
        return value in maker and (value in converted or _is_cheap(maker[value]) or _is_drawn(maker[value], maker))

    weight_nodes, weight_needs = _with_recomputed(in_weight, list(late.values()), maker, order, is_recomputed)
    queued = [v for v in weight_needs if not is_stored(v) and not forward_value(v)]
    input_nodes, input_needs = _with_recomputed(in_input, to_inputs + queued + [v for v in to_weights.values()
                                                if v in made_by_input], maker, order, is_recomputed)
    saved = sorted({v for v in input_needs + weight_needs if forward_value(v)})

    out = [(role, value) for role, value in results.items() if role.kind not in ("input_grad", "parameter_grad")]
    out += [(Role("saved", k), value) for k, value in enumerate(saved)]
    forward = Graph(nodes=needed([n for n in nodes if not n.backward], [value for _, value in out]), outputs=out, shapes=shapes)
    first = [(role, value) for role, value in results.items() if role.kind == "input_grad"]
    first += [(Role("queued", k), value) for k, value in enumerate(queued)]
    first += [(role, value) for role, value in to_weights.items() if role not in late]
    second = list(late.items())

    boundary = {value: Role("saved", k) for k, value in enumerate(saved)}
    later = {**boundary, **{value: Role("queued", k) for k, value in enumerate(queued)}}
    parts = Parts(forward, Graph(nodes=input_nodes, outputs=first, shapes=shapes),
                  Graph(nodes=weight_nodes, outputs=second, shapes=shapes))
    for graph in parts:
        narrow.convert_at_use(graph, converted)
    forward.inputs = _inputs_of(forward, roles)
    parts.input_part.inputs = _inputs_of(parts.input_part, {**roles, **boundary})
    parts.weight_part.inputs = _inputs_of(parts.weight_part, {**roles, **later})
    return parts


def single_graph(trace: Trace, roles: Dict[int, Role]) -> Graph:
    """A recording without backward, as one graph."""
    graph = Graph(nodes=trace.recorder.nodes, outputs=list(trace.results.items()), shapes=trace.recorder.shapes)
    narrow.convert_at_use(graph, _converted(trace, graph.nodes, roles))
    graph.inputs = _inputs_of(graph, roles)
    return graph


def _converted(trace: Trace, nodes: List[Node], roles: Dict[int, Role]) -> Set[int]:
    constants = trace.recorder.constants
    taken = {value: constants[value] for value, role in roles.items() if role.kind == "constant" and value in constants}
    return narrow.conversions(nodes, taken, trace.recorder.shapes)


def _inputs_of(graph: Graph, roles: Dict[int, Role]) -> Dict[int, Role]:
    made = {result for node in graph.nodes for result in node.results}
    used = {value for node in graph.nodes for value in uses(node)} | {value for _, value in graph.outputs}
    return {value: roles[value] for value in sorted(used - made, key=lambda v: (_ROLES.index(roles[v].kind), roles[v].index))}


_ROLES = ("input", "target", "saved", "queued", "grad", "parameter", "constant", "statistic")


def _is_cheap(node: Node) -> bool:
    """Whether recomputing a node is cheaper than saving its result."""
    return not uses(node) or node.op == "aten::_unsafe_view" or operations.is_view(operations.find(node.op))


def _is_drawn(node: Node, maker: Dict[int, Node]) -> bool:
    """Whether it is a copy of random numbers, as of in-place draws."""
    return node.op == "aten::clone" and any(value in maker and maker[value].op in random_numbers.OPERATIONS for value in uses(node))


def _with_recomputed(nodes: List[Node], wanted: List[int], maker: Dict[int, Node], order: Dict[int, int],
                     is_recomputed: Callable[[int], bool]) -> "tuple[List[Node], List[int]]":
    """`nodes` and the recomputed nodes that they depend on, in order, and the external values that they need."""
    chosen = {id(node): node for node in nodes}
    outside: Set[int] = set()
    asked = [value for node in nodes for value in uses(node)] + wanted
    while asked:
        value = asked.pop()
        node = maker.get(value)
        if node is not None and id(node) in chosen:
            continue
        if node is not None and is_recomputed(value):
            chosen[id(node)] = node
            asked += uses(node)
        else:
            outside.add(value)
    return sorted(chosen.values(), key=lambda n: order[id(n)]), sorted(outside)


def _split_convolutions(nodes: List[Node], shapes: Dict[int, Shape], roles: Dict[int, Role]
                        ) -> "tuple[List[Node], Dict[int, Shape]]":
    """Splits convolution_backward, one operation with a mask in PyTorch, into one for the input gradient and one for the
    others."""
    result = []
    next_value = 1 + max([max(node.results) for node in nodes if node.results] + list(roles) + list(shapes))
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


def _recompute_masks(nodes: List[Node], shapes: Dict[int, Shape]) -> List[Node]:
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
