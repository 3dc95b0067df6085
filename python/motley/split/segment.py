"""A layer that replays a part of a model's recorded forward under autograd."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from .. import dropout, operations
from ..graph import Batch, Node, Ref, map_args, uses
from ..modules import attribute_operations
from ..named import by_name
from .boundary import BoundaryValue


class Part(NamedTuple):
    """The nodes of a layer in one mode."""

    nodes: List[Node]
    received: Optional[List[BoundaryValue]]
    """Inputs from the boundary before the layer; None for the first layer, whose input is the model's."""
    sent: List[BoundaryValue]
    outside: Dict[int, torch.Tensor]
    """[value] parameters, buffers and other tensors of the model."""
    inputs: Dict[str, int]
    outputs: List[int]
    """The outputs of the last layer, instead of `sent`."""


class Segment:
    """A layer of a model that was split by its trace. It runs in the model's mode."""

    def __init__(self, name: str, model: torch.nn.Module, train: Part, evaluate: Part, structure: Optional[TreeSpec]):
        """`structure`: of the last layer's result."""
        self.name = name
        self.train, self.evaluate = train, evaluate
        self._model = model
        self._structure = structure

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.train.nodes)} operations in training, {len(self.evaluate.nodes)} in evaluation>"

    @property
    def draw_indices(self) -> List[int]:
        """[draw in the model's current mode] the index of the same draw in the whole model."""
        return [node.args[-1] for node in self._part().nodes if node.op.startswith("motley::")]

    def _part(self) -> Part:
        return self.train if self._model.training else self.evaluate

    def with_values(self, values: Mapping[int, torch.Tensor]) -> "Segment":
        """The same layer with other tensors of the model. `values`: [id of the replaced tensor] its replacement."""
        def part(of: Part) -> Part:
            return of._replace(outside={value: values.get(id(tensor), tensor) for value, tensor in of.outside.items()})

        return Segment(self.name, self._model, part(self.train), part(self.evaluate), self._structure)

    def __call__(self, given: Any) -> Any:
        part = self._part()
        tensors = tree_flatten(given)[0]
        count = tensors[0].size(0)
        values: Dict[int, Any] = dict(part.outside)
        if part.received is None:
            named = by_name(given)
            values.update({value: named[name] for name, value in part.inputs.items()})
        else:
            values.update({taken.value: taken.unpack(tensor) for taken, tensor in zip(part.received, tensors) if not taken.is_filler})
        kept = {*part.outputs, *(boundary_value.value for boundary_value in part.sent)}
        last = {value: k for k, node in enumerate(part.nodes) for value in uses(node)}
        try:
            for k, node in enumerate(part.nodes):
                values.update(zip(node.results, _run(node, values, count)))
                for value in {*uses(node), *node.results} - kept:
                    if last.get(value, k) == k:
                        values.pop(value, None)
        finally:
            attribute_operations(None)
        if self._structure is not None:
            return tree_unflatten([values[value] for value in part.outputs], self._structure)
        packed = tuple(sent.zeros(count) if sent.is_filler else sent.pack(values[sent.value], count) for sent in part.sent)
        return packed[0] if len(packed) == 1 else packed


def _run(node: Node, values: Dict[int, Any], samples: int) -> List[Any]:
    line = node.line  # lines.py reads it from the frame
    attribute_operations(node.module)
    followed = iter(node.tracked) if node.tracked else None

    def leaf(argument: Any) -> Any:
        if isinstance(argument, Batch):
            return argument.at(samples)
        if not isinstance(argument, Ref):
            return argument
        tensor = values[argument.value]
        follows = next(followed) if followed is not None else True
        return tensor if follows or not isinstance(tensor, torch.Tensor) or not tensor.requires_grad else tensor.detach()

    args = tuple(map_args(argument, leaf) for argument in node.args)
    kwargs = {key: map_args(argument, leaf) for key, argument in node.kwargs.items()}
    with contextlib.nullcontext() if node.grad else torch.no_grad():
        out = _result(node, args, kwargs)
    del line
    return list(out) if isinstance(out, (list, tuple)) else [out]


def _result(node: Node, args: Any, kwargs: Dict[str, Any]) -> Any:
    if node.call is not None:
        return node.call(*args, **kwargs)
    if node.op.startswith("motley::"):  # random draws: the last argument is the index
        return operations.find(node.op)(*args[:-1], dropout.FRESH)
    if node.op in operations.RESHAPING_VIEWS and not args[0].is_contiguous():
        return args[0].reshape(*args[1:])
    return operations.find(node.op)(*args, **kwargs)
