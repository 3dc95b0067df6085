"""The graph of recorded operations: built by the tracer, divided by partition.py and run by the interpreter.

A graph's values are numbered; `Ref(n)` is value n as an argument of a node. `Batch(a, b)` is the integer a + b * B in a
micro-batch of B samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import torch


class Ref(NamedTuple):
    """Value `value` of the graph."""

    value: int


class Batch(NamedTuple):
    """The integer `a + b * B`."""

    a: int
    b: int

    def at(self, samples: int) -> int:
        return self.a + self.b * samples


class Role(NamedTuple):
    """The role of a graph's input or result, e.g. parameter 0."""

    kind: str
    index: int


@dataclass
class Node:
    """One operation: `op` is called with `args` and `kwargs` and returns the values `results`."""

    op: str
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]
    results: Tuple[int, ...]
    backward: bool = False
    """Whether the operation ran in the backward pass."""
    line: Optional[str] = None
    """The user's source line, `file:number`, if known."""
    module: Optional[str] = None
    """The path of the module that was running."""
    tracked: Tuple[bool, ...] = ()
    """For each argument value, in the order of `uses`, whether autograd tracked it; empty if unknown."""
    grad: bool = True
    """Whether autograd was enabled."""
    call: Optional[Callable[..., Any]] = None
    """The function that runs instead of the operation `op`."""


@dataclass
class Shape:
    """Shape (integers or, after merging, `Batch`) and type of a value."""

    sizes: Tuple[Any, ...]
    dtype: torch.dtype
    contiguous: bool = True


@dataclass
class Graph:
    """Nodes in an order of execution, with the inputs and outputs of the graph."""

    inputs: Dict[int, Role] = field(default_factory=dict)
    nodes: List[Node] = field(default_factory=list)
    outputs: List[Tuple[Role, int]] = field(default_factory=list)
    shapes: Dict[int, Shape] = field(default_factory=dict)


def is_ref(value: Any) -> bool:
    return isinstance(value, Ref)


def map_args(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """`value` with `leaf` applied to everything that is not a list; lists and tuples become lists."""
    if isinstance(value, (list, tuple)) and not isinstance(value, (Ref, Batch)):
        return [map_args(part, leaf) for part in value]
    return leaf(value)


def map_node(node: Node, leaf: Callable[[Any], Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """A node's arguments with `leaf` applied to each."""
    return tuple(map_args(a, leaf) for a in node.args), {k: map_args(v, leaf) for k, v in node.kwargs.items()}


def use_instead(nodes: List[Node], instead: Mapping[int, int]) -> None:
    """Replaces the argument values in `instead`, by number."""
    for node in nodes:
        node.args, node.kwargs = map_node(node, lambda a: Ref(instead.get(a.value, a.value)) if isinstance(a, Ref) else a)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)) and not isinstance(value, (Ref, Batch)):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def uses(node: Node) -> List[int]:
    """The argument values of a node, in order and with repetitions."""
    return [leaf.value for part in (node.args, list(node.kwargs.values())) for leaf in leaves(part) if is_ref(leaf)]


def needed(nodes: List[Node], wanted: List[int]) -> List[Node]:
    """The `nodes` on which the values `wanted` depend, in order."""
    alive = set(wanted)
    kept = []
    for node in reversed(nodes):
        if any(result in alive for result in node.results):
            kept.append(node)
            alive.update(uses(node))
    return kept[::-1]
