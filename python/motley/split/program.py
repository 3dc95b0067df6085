"""The forward of a whole model as one graph, and the calls of modules that it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

import torch
from torch.utils._pytree import TreeSpec

from ..graph import Batch, Node, Shape, uses
from ..graph_json import WIDENED

Key = Tuple[str, int]
"""A call: the module's path, and how many calls of it were before."""


@dataclass
class Call:
    """One call of a module: it ran the nodes from `begin` to before `end`, some of them in calls of its own."""

    key: Key
    module: Optional[torch.nn.Module]
    begin: int
    end: int = 0
    calls: List["Call"] = field(default_factory=list)

    def all(self) -> Iterator["Call"]:
        yield self
        for call in self.calls:
            yield from call.all()

    @property
    def path(self) -> str:
        return self.key[0]


@dataclass
class Program:
    """One forward in training or in evaluation, for any batch."""

    nodes: List[Node]
    shapes: Dict[int, Shape]
    input: int
    outputs: List[int]
    structure: TreeSpec
    """How the outputs lie in what the last layer returns."""
    trained: Dict[int, torch.Tensor]
    """[value] parameters with a gradient, as they are in the model."""
    constants: Dict[int, torch.Tensor]
    """[value] other tensors from outside, as they are in the model."""
    statistics: Set[int]
    """Those of the constants that move while a model trains."""
    fixed: Set[int]
    """Values that follow from constants and the number of samples alone."""
    calls: Call
    call_of: Dict[Key, Call] = field(init=False)
    made: Dict[int, int] = field(init=False)
    """[value] the node that makes it."""
    last_use: Dict[int, int] = field(init=False)
    """[value] the last node that takes it; one behind the last node for outputs."""
    gradient: Dict[int, bool] = field(init=False)
    """[value] whether autograd follows it."""

    def __post_init__(self) -> None:
        self.call_of = {call.key: call for call in self.calls.all()}
        self.made = {value: k for k, node in enumerate(self.nodes) for value in node.results}
        self.last_use = {value: k for k, node in enumerate(self.nodes) for value in uses(node)}
        self.last_use.update({value: len(self.nodes) for value in self.outputs})
        self.gradient = {value: True for value in self.trained}
        for node in self.nodes:
            taken = uses(node)
            tracked = node.tracked or (True,) * len(taken)
            follows = node.grad and node.op != "aten::detach" and any(
                flag and self.gradient.get(value, False) for value, flag in zip(taken, tracked))
            for value in node.results:
                shape = self.shapes.get(value)
                self.gradient[value] = follows and (shape is None or shape.dtype.is_floating_point)

    def bytes(self, value: int) -> float:
        """Of one sample, as it crosses a boundary; all of what has no dimension of samples."""
        shape = self.shapes.get(value)
        if shape is None:
            return float("inf")
        count = 1
        for size in shape.sizes:
            if isinstance(size, Batch):
                count *= max(1, abs(size.b))
            elif isinstance(size, int):
                count *= size
            else:
                return float("inf")
        return float(count * torch.empty(0, dtype=WIDENED.get(shape.dtype, shape.dtype)).element_size())

    def has_batch(self, value: int) -> bool:
        shape = self.shapes.get(value)
        return shape is None or any(not isinstance(size, int) for size in shape.sizes)

    def order(self, value: int) -> Any:
        """By which values that cross are listed: as they came to be."""
        return (self.made.get(value, -1), value)

    def is_from_outside(self, value: int) -> bool:
        """Whether it is a parameter or another tensor of the model."""
        return value in self.trained or value in self.constants
