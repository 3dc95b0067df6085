"""The forward of a whole model as one graph, with the calls of modules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

import torch
from torch.utils._pytree import TreeSpec

from ..graph import Batch, Node, Shape, uses
from ..graph_json import WIDENED

Key = Tuple[str, int]
"""Identifies a call: the module's path, and the number of its earlier calls."""


@dataclass
class Call:
    """One call of a module with the nodes [begin, end), which include those of nested calls."""

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
    inputs: Dict[str, int]
    """[name] value; a single one without name has the name ""."""
    outputs: List[int]
    structure: TreeSpec
    """The structure of the last layer's result."""
    trained: Dict[int, torch.Tensor]
    """[value] the model's parameters with a gradient."""
    constants: Dict[int, torch.Tensor]
    """[value] other tensors of the model."""
    statistics: Set[int]
    """The constants that training changes."""
    fixed: Set[int]
    """Values that depend only on constants and the number of samples."""
    calls: Call
    call_of: Dict[Key, Call] = field(init=False)
    made: Dict[int, int] = field(init=False)
    """[value] the node that computes it."""
    last_use: Dict[int, int] = field(init=False)
    """[value] the last node that uses it; the number of nodes for outputs."""
    gradient: Dict[int, bool] = field(init=False)
    """[value] whether autograd tracks it."""

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
        """The bytes of one sample at a boundary; the whole value if it has no dimension of samples."""
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
        """The sort key of boundary values: the order of their creation."""
        return (self.made.get(value, -1), value)

    def is_model_tensor(self, value: int) -> bool:
        """Whether it is a parameter or another tensor of the model."""
        return value in self.trained or value in self.constants
